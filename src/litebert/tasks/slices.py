"""Scores by slice of the evaluation examples: where a model is weaker than its one number says.

Slices are quarters by length, by shared words of the two texts of a pair, by target, and each class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.text.words import word_boundaries

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from litebert.data.examples import Example
    from litebert.tasks.classification import SequenceClassification
    from litebert.tasks.records import Answer, RecordTask

__all__ = ["SliceScore", "record_slices", "shared_words", "slice_scores"]

MIN_EXAMPLES: Final = 20
"""Fewer examples make quarters that say nothing."""
MAX_CLASSES: Final = 60
MAX_CHARACTERS: Final = 4_000
"""Characters of one text in which shared words are looked for."""

Scores = dict[str, float]
Groups = list[tuple[str, "np.ndarray"]]


@dataclass(frozen=True, slots=True)
class SliceScore:
    """The scores of one slice."""

    by: str
    """"length", "overlap", "target" or "class"."""
    name: str
    """Which part, for example "12 to 40 characters"."""
    count: int
    scores: dict[str, float]
    """The main score where a part has one, and the share of right answers or the mean error."""


def slice_scores(
    task: SequenceClassification,
    logits: Float[np.ndarray, "N C"],
    labels: Num[np.ndarray, "*S"],
    examples: Sequence[Example],
) -> tuple[SliceScore, ...]:
    """Return the scores by length, by class, and for pairs by the words that both texts share.

    Args:
        task: labels, temperature, metric.
        logits: answers, one row an example.
        labels: as `task.encode_label` gives them.
        examples: in the same order.

    Returns:
        Nothing for fewer than 20 examples.
    """
    if len(examples) < MIN_EXAMPLES:
        return ()
    share = {"regression": "mae", "multilabel": "subset_accuracy"}.get(task.kind, "accuracy")
    truth = np.asarray(labels)

    def scores(chosen: np.ndarray) -> Scores:
        found = task.score(logits[chosen], truth[chosen])
        return {name: found[name] for name in dict.fromkeys((task.metric, share)) if name in found}

    def share_alone(chosen: np.ndarray) -> Scores:
        return {share: task.score(logits[chosen], truth[chosen])[share]}

    lengths = [len(e.text) + len(e.pair or "") for e in examples]
    found = _scored("length", _quarters(lengths, "{:,.0f} to {:,.0f} characters"), scores)
    if task.is_pair:
        overlap = [shared_words(e.text, e.pair or "") for e in examples]
        found += _scored("overlap", _quarters(overlap, "{:.0%} to {:.0%} of the words"), scores)
    if task.kind == "regression":
        targets = (truth.astype(np.float64) * task.target_scale + task.target_mean).tolist()
        # A correlation within a narrow range of targets is another question: the error alone.
        found += _scored("target", _quarters(targets, "{:.4g} to {:.4g}"), share_alone)
    elif task.kind == "multilabel":
        groups = [(name, np.flatnonzero(truth[:, i] == 1)) for i, name in enumerate(task.labels)]
        found += _scored("class", groups[:MAX_CLASSES], share_alone)
    else:
        groups = [(name, np.flatnonzero(truth == i)) for i, name in enumerate(task.labels)]
        found += _scored("class", groups[:MAX_CLASSES], share_alone)
    return tuple(found)


def record_slices(
    task: RecordTask, records: Sequence[Any], answers: Sequence[Answer], lengths: Sequence[int]
) -> tuple[SliceScore, ...]:
    """Return the main score of answers to records by length, and by label where that is a word.

    Args:
        task: scores answers.
        records: labelled.
        answers: one each.
        lengths: characters of each record.

    Returns:
        Nothing for fewer than 20 records.
    """
    if len(records) < MIN_EXAMPLES:
        return ()

    def scores(chosen: np.ndarray) -> Scores:
        found = task.evaluate([records[i] for i in chosen], [answers[i] for i in chosen])
        return {task.metric: found[task.metric]}

    found = _scored("length", _quarters(lengths, "{:,.0f} to {:,.0f} characters"), scores)
    labels = [task.show(record).get("label") for record in records]
    words = sorted({label for label in labels if isinstance(label, str)})
    is_word = all(isinstance(label, str) for label in labels)
    if is_word and 1 < len(words) <= min(MAX_CLASSES, len(records) // 4):
        groups = [(w, np.flatnonzero([label == w for label in labels])) for w in words]
        found += _scored("class", groups, scores)
    return tuple(found)


def shared_words(first: str, second: str) -> float:
    """Return the share in [0, 1] of the shorter text's different words that the other has as well."""
    words = [_words(text) for text in (first, second)]
    fewer = min(len(side) for side in words)
    return len(words[0] & words[1]) / fewer if fewer else 0.0


def _words(text: str) -> set[str]:
    text = text[:MAX_CHARACTERS].casefold()
    starts = [*np.flatnonzero(np.frombuffer(word_boundaries(text), np.uint8)).tolist(), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(starts))
    return {part for part in parts if any(character.isalnum() for character in part)}


def _quarters(values: Sequence[float], name: str) -> Groups:
    """Return up to four groups of about equal size; equal values are never in two of them."""
    numbers = np.asarray(values, np.float64)
    edges = np.unique(np.quantile(numbers, (0.25, 0.5, 0.75), method="lower"))
    group = np.searchsorted(edges, numbers, side="left")
    found = [np.flatnonzero(group == number) for number in range(len(edges) + 1)]
    kept = [chosen for chosen in found if len(chosen)]
    return (
        [(name.format(float(numbers[c].min()), float(numbers[c].max())), c) for c in kept]
        if len(kept) > 1
        else []
    )


def _scored(by: str, groups: Groups, scores: Callable[[np.ndarray], Scores]) -> list[SliceScore]:
    return [
        SliceScore(by, name, len(chosen), scores(chosen)) for name, chosen in groups if len(chosen)
    ]
