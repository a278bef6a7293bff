"""Which way to stop is the fastest of those that are good enough, and what it costs on other examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.compress.exits.candidates import Setting, Simulated, simulate

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from litebert.tasks.classification import SequenceClassification

__all__ = ["Candidate", "choose", "expected_drop", "front", "try_settings"]

Score = Callable[["Float[np.ndarray, 'N C']", "Int[np.ndarray, ' n']"], float]
"""(answers of all sequences, numbers of the texts that count) -> main score."""
FEW: Final = 20
"""Texts below which halves say nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A setting with what it gives on all texts.

    Attributes:
        setting: how to stop.
        answers: answers and depths of all sequences.
        score: main score of all texts.
        mean_depth: depths that a token goes through on average.
    """

    setting: Setting
    answers: Simulated
    score: float
    mean_depth: float


def try_settings(
    table: Float[np.ndarray, "L N C"],
    lengths: Int[np.ndarray, " N"],
    settings: Sequence[Setting],
    task: SequenceClassification,
    score: Score,
    num_texts: int,
) -> list[Candidate]:
    """Return each setting with its score and cost; the first must run all depths.

    Args:
        table: answers of each depth to each sequence.
        lengths: tokens of each sequence.
        settings: what to try.
        task: what the answers mean.
        score: scores the answers.
        num_texts: texts that are scored; a text may be several sequences.

    Raises:
        SettingsError: a criterion that the task does not have.
    """
    everything = np.arange(num_texts)
    found: list[Candidate] = []
    for setting in settings:
        answers = simulate(table, setting, task)
        found.append(
            Candidate(
                setting, answers, score(answers.logits, everything), answers.mean_depth(lengths)
            )
        )
    return found


def choose(
    candidates: Sequence[Candidate],
    scores: Sequence[float],
    max_drop: float,
    *,
    higher_is_better: bool,
) -> int:
    """Return the number of the candidate with the fewest depths whose score is good enough.

    Args:
        candidates: the first runs all depths, and is good enough by definition.
        scores: of each of them.
        max_drop: how much worse than the first a score may be.
        higher_is_better: direction of the score.
    """
    sign = 1.0 if higher_is_better else -1.0
    best = 0
    for number, candidate in enumerate(candidates):
        drop = sign * (scores[0] - scores[number])
        if not drop <= max_drop + 1e-12:
            continue
        old, new = candidates[best], candidate
        is_better = sign * scores[number] > sign * scores[best]
        if new.mean_depth < old.mean_depth or (new.mean_depth == old.mean_depth and is_better):
            best = number
    return best


def expected_drop(
    candidates: Sequence[Candidate],
    score: Score,
    num_texts: int,
    max_drop: float,
    *,
    higher_is_better: bool,
    seed: int = 0,
) -> float:
    """Return how much worse a chosen setting is on texts that did not choose it; NaN for too few.

    Each half of the texts chooses, and the other half scores the choice.

    Args:
        candidates: as `choose`.
        score: scores the answers to some texts.
        num_texts: texts there are.
        max_drop: as `choose`.
        higher_is_better: as `choose`.
        seed: of the halves.
    """
    if num_texts < FEW:
        return float("nan")
    order = np.random.default_rng(seed).permutation(num_texts)
    halves = np.sort(order[::2]), np.sort(order[1::2])
    sign = 1.0 if higher_is_better else -1.0
    drops: list[float] = []
    for fitted, held in (halves, halves[::-1]):
        scores = [score(item.answers.logits, fitted) for item in candidates]
        chosen = choose(candidates, scores, max_drop, higher_is_better=higher_is_better)
        full, new = (score(candidates[n].answers.logits, held) for n in (0, chosen))
        drops.append(sign * (full - new) * len(held) / num_texts)
    return float(sum(drops))


def front(candidates: Sequence[Candidate], *, higher_is_better: bool) -> list[int]:
    """Return the numbers of the candidates that no other beats in both score and cost, cheapest first."""
    sign = 1.0 if higher_is_better else -1.0
    order = sorted(
        range(len(candidates)),
        key=lambda n: (candidates[n].mean_depth, -sign * candidates[n].score),
    )
    kept: list[int] = []
    for number in order:
        score = sign * candidates[number].score
        if np.isfinite(score) and (not kept or score > sign * candidates[kept[-1]].score):
            kept.append(number)
    return kept
