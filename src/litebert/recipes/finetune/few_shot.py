"""A classifier from a handful of examples: vectors are pulled together by class, then a linear head.

Ordinary fine-tuning of a few dozen examples gives a head too few updates. Pairs of examples are many
more, and a linear head on good vectors needs few. Source: Tunstall et al. 2022, Efficient Few-Shot
Learning Without Prompts (SetFit). Differs from it: all texts of a step are compared, not those of a drawn
pair alone, which takes half to a fifth of the steps (docs/log.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pydantic import Field

from litebert.checkpoint.folder import load_model
from litebert.data.batch import EncodedExample
from litebert.errors import DataError
from litebert.settings import Settings
from litebert.tasks.embedding_classification import EmbeddingClassification
from litebert.tasks.similarity import unit_rows
from litebert.train.class_pairs_loss import ClassPairsLoss
from litebert.train.evaluate import predict_outputs
from litebert.train.logistic import fit_logistic
from litebert.train.loop import fit
from litebert.train.settings import TrainSettings

if TYPE_CHECKING:
    from jaxtyping import Int

    from litebert.data.examples import Example
    from litebert.model.albert import AlbertWithHead
    from litebert.tasks.classification import SequenceClassification
    from litebert.text.tokenizer import Tokenizer
    from litebert.train.events import OnEvent
    from litebert.train.state import FitResult
    from litebert.train.stop import StopRequest

__all__ = [
    "FewShot", "FewShotSettings", "PairSchedule", "label_pairs", "pair_schedule", "run_few_shot",
    "wants_few_shot",
]  # fmt: skip

MOST_PER_CLASS: Final = 64
"""Examples of the largest class up to which pairs are learnt from."""
LEAST_ROUNDS: Final = 3
"""Times that each example is at least the first of a pair, if as many are asked for."""
NARROW: Final = 384
"""Up to this width an encoder wants a higher rate."""


class FewShotSettings(Settings):
    """How few examples are learnt from."""

    pairs_per_example: int = Field(default=20, ge=1, le=1000)
    """Pairs of its class drawn for each example; a step compares all texts of its pairs."""
    max_pairs: int = Field(default=1_280, ge=2, le=10_000_000)
    """Pairs in all above which fewer are drawn for each example, though three at least."""
    batch_size: int = Field(default=16, ge=1)
    learning_rate: float | None = Field(default=None, gt=0, lt=1)
    """Peak rate; None: 2e-4 for narrow encoders, else 2e-5."""
    strength: float = Field(default=10.0, gt=0)
    """Inverse regularisation of the linear head on vectors of length 1."""


@dataclass(frozen=True, slots=True)
class PairSchedule:
    """How pairs are learnt from, known before they are drawn.

    Attributes:
        rounds: times that each example is the first of a pair.
        pairs: pairs in all; an example that is alone in its class stands alone.
        batch_size: pairs of a step.
        learning_rate: peak rate.
    """

    rounds: int
    pairs: int
    batch_size: int
    learning_rate: float

    @property
    def steps(self) -> int:
        """Optimizer steps of one seed: each pair is seen once."""
        return math.ceil(self.pairs / self.batch_size)


@dataclass(frozen=True, slots=True, eq=False)
class FewShot:
    """What came out.

    Attributes:
        model: the encoder with the embedding head.
        task: the classification task with its linear head.
        result: how the training on pairs ended.
        pairs: pairs that were learnt from.
    """

    model: AlbertWithHead
    task: EmbeddingClassification
    result: FitResult
    pairs: int


def wants_few_shot(
    *,
    kind: str,
    is_pair: bool,
    label_counts: Sequence[int],
    is_pretrained: bool,
    hidden_size: int,
) -> str | None:
    """Return why training should be on pairs of examples, or None if it should not.

    Args:
        kind: of the labels, for example "binary".
        is_pair: whether an example has two texts.
        label_counts: training examples of each class.
        is_pretrained: whether training starts from pretrained weights.
        hidden_size: numbers of a vector.
    """
    counts = [count for count in label_counts if count]
    if not is_pretrained or is_pair or kind not in ("binary", "multiclass"):
        return None
    if len(counts) < 2 or max(counts) > MOST_PER_CLASS or max(counts) < 2:
        return None
    if hidden_size == len(label_counts):
        return None  # such a head cannot be told from the scores of its labels
    return (
        f"{sum(counts):,} examples, at most {max(counts)} of a class, are too few for ordinary "
        "fine-tuning: the encoder learns from pairs of them, and a linear head from its vectors"
    )


def pair_schedule(
    label_counts: Sequence[int], hidden_size: int, settings: FewShotSettings | None = None
) -> PairSchedule:
    """Return how many pairs are drawn, and how they are learnt from.

    Args:
        label_counts: training examples of each class.
        hidden_size: numbers of a vector.
        settings: sizes and rates.
    """
    settings = settings or FewShotSettings()
    total = sum(label_counts)
    rounds = min(settings.pairs_per_example, max(LEAST_ROUNDS, settings.max_pairs // max(1, total)))
    rate = settings.learning_rate or (2e-4 if hidden_size <= NARROW else 2e-5)
    return PairSchedule(rounds, rounds * total, settings.batch_size, rate)


def run_few_shot(
    folder: Path,
    tokenizer: Tokenizer,
    task: SequenceClassification,
    examples: Sequence[Example],
    *,
    seed: int = 0,
    settings: FewShotSettings | None = None,
    train: TrainSettings | None = None,
    changes: dict[str, Any] | None = None,
    state_dir: Path | None = None,
    resume: bool = False,
    on_event: OnEvent | None = None,
    stop: StopRequest | None = None,
) -> FewShot | None:
    """Train the encoder in `folder` on pairs of examples, then a linear head on its vectors.

    Save the outcome with `save_model(model, folder, tokenizer, task.to_json())`.

    Args:
        folder: model folder to start from.
        tokenizer: of that folder.
        task: labels and length; binary or multiclass over one text.
        examples: labelled.
        seed: of pairs and training.
        settings: sizes and rates.
        train: further settings of the loop, such as device and threads; its batch size, rate and
            length are those of `settings`.
        changes: configuration values to change.
        state_dir: as `fit`.
        resume: as `fit`.
        on_event: as `fit`.
        stop: as `fit`.

    Returns:
        None when a stop was requested before the end.

    Raises:
        DataError: examples without labels, or none of which two are of one class.
        CheckpointError: the folder is not usable.
    """
    settings = settings or FewShotSettings()
    encoded = [task.encode(example, tokenizer, index=i) for i, example in enumerate(examples)]
    labels = np.array([-1 if e.label is None else e.label for e in encoded], np.int64)
    if not len(labels) or labels.min() < 0:
        raise DataError("few-shot training needs labelled examples; name the label column")
    model = load_model(
        folder,
        "embedding",
        changes={
            **(changes or {}),
            "id2label": task.config_labels(),
            "problem_type": task.problem_type,
            "litebert": {**(changes or {}).get("litebert", {}), "pooling": "mean"},
        },
    )
    pairs = label_pairs(labels, settings, np.random.default_rng([seed, len(labels)]))
    data = [
        _joined([encoded[member] for member in pair], index) for index, pair in enumerate(pairs)
    ]
    counts = np.unique(labels, return_counts=True)[1].tolist()
    schedule = pair_schedule(counts, model.config.hidden_size, settings)
    loop = (train or TrainSettings()).model_copy(
        update={
            "epochs": 1.0,
            "max_steps": None,
            "batch_size": schedule.batch_size,
            "learning_rate": schedule.learning_rate,
            "seed": seed,
        }
    )
    result = fit(
        model,
        data,
        loop,
        step_loss=ClassPairsLoss(),
        state_dir=state_dir,
        resume=resume,
        on_event=on_event,
        stop=stop,
    )
    outputs = None if result.status == "interrupted" else predict_outputs(model, encoded, stop=stop)
    if outputs is None:
        return None
    vectors = unit_rows(np.concatenate(outputs))
    weights, biases = fit_logistic(vectors, labels, len(task.labels), strength=settings.strength)
    head = EmbeddingClassification.from_head(task, weights, biases)
    return FewShot(model, head, result, len(pairs))


def label_pairs(
    labels: Int[np.ndarray, " N"], settings: FewShotSettings, random: np.random.Generator
) -> list[tuple[int, ...]]:
    """Return pairs (first, second) of one class; an example that is alone in its class stands alone.

    Every example is the first of equally many pairs.

    Raises:
        DataError: one class only, or no class with two examples.
    """
    groups = {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}
    sizes = [len(members) for members in groups.values()]
    if len(groups) < 2 or max(sizes) < 2:
        raise DataError(
            f"{len(labels)} examples of {len(groups)} classes make no pairs; give two classes and "
            "more, and two examples of a class"
        )
    pairs: list[tuple[int, ...]] = []
    for _ in range(pair_schedule(sizes, 0, settings).rounds):
        for first in random.permutation(len(labels)).tolist():
            members = groups[int(labels[first])]
            mates = members[members != first]
            pairs.append((first, int(random.choice(mates))) if len(mates) else (first,))
    return pairs


def _joined(members: Sequence[EncodedExample], index: int) -> EncodedExample:
    return EncodedExample(
        ids=np.concatenate([member.ids for member in members]),
        type_ids=np.concatenate([member.type_ids for member in members]),
        label=members[0].label,
        index=index,
        sequence_lengths=tuple(len(member) for member in members),
    )
