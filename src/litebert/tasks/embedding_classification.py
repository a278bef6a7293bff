"""Classification by a linear head on the vector of a text, for very few examples.

The published sequence head sits on the pooler of the first token and cannot hold it, so the head is
kept in `task.json`: the folder is an encoder with mean pooling, whose vectors serve for search, too.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from pydantic import model_validator

from litebert.tasks.base import TASKS
from litebert.tasks.classification import SequenceClassification

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["EmbeddingClassification"]

DIGITS: Final = 7
"""Significant digits that are stored of a weight: those of float32."""


class EmbeddingClassification(SequenceClassification):
    """One label for a text, from its vector.

    `decode`, `score`, `probabilities` and `calibrated` take the vectors of the embedding head [N, H]
    where `SequenceClassification` takes logits [N, C]; they take those, too, from baselines.
    """

    weights: tuple[tuple[float, ...], ...]
    """[C, H] weights on vectors of length 1."""
    biases: tuple[float, ...]
    """[C] biases."""

    @model_validator(mode="after")
    def _check_head(self) -> Self:
        count = len(self.labels)
        widths = {len(row) for row in self.weights}
        if self.kind not in ("binary", "multiclass"):
            raise ValueError(f"kind: {self.kind!r} has no such head; allowed: binary, multiclass")
        if len(self.weights) != count or len(self.biases) != count or len(widths) != 1:
            raise ValueError(
                f"weights: {len(self.weights)} rows of {sorted(widths)} and {len(self.biases)} biases "
                f"for {count} labels; each label needs one of equal length"
            )
        if widths == {count} or widths == {0}:
            raise ValueError(
                f"weights: vectors of {widths.pop()} numbers cannot be told from the scores of {count} "
                "labels; use the sequence head"
            )
        return self

    @classmethod
    def from_head(
        cls,
        task: SequenceClassification,
        weights: Float[np.ndarray, "C H"],
        biases: Float[np.ndarray, " C"],
    ) -> Self:
        """Return the task with a head, the numbers rounded to what is stored.

        Raises:
            ValueError: a head that does not fit the labels.
        """
        known = {name: getattr(task, name) for name in SequenceClassification.model_fields}
        head = {
            "weights": tuple(tuple(map(_rounded, row)) for row in weights.tolist()),
            "biases": tuple(map(_rounded, biases.tolist())),
        }
        return cls.model_validate(known | head)

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        return "embedding_classification"

    @property
    def head(self) -> str:
        """Word for the model head."""
        return "embedding"

    @property
    def pooling(self) -> str:
        """`litebert.pooling` of the configuration that this task needs."""
        return "mean"

    @cached_property
    def _matrix(self) -> Float[np.ndarray, "C H"]:
        return np.array(self.weights, np.float64)

    def _checked(self, logits: np.ndarray) -> Float[np.ndarray, "N C"]:
        vectors = np.asarray(logits, np.float64)
        if vectors.ndim == 2 and vectors.shape[1] == self._matrix.shape[1]:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            logits = vectors / np.maximum(lengths, 1e-12) @ self._matrix.T + np.array(self.biases)
        return super()._checked(logits)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


TASKS.register("embedding_classification")(EmbeddingClassification)
