"""Similarity of texts by the cosine of their vectors: scored pairs, or anchors and positives.

The model has the head "embedding" with mean pooling; every text is a sequence of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

import numpy as np
from pydantic import Field, model_validator

from litebert.data.batch import EncodedExample
from litebert.data.similar import SimilarRecord
from litebert.errors import DataError
from litebert.tasks.base import TASKS
from litebert.tasks.correlation import pearson, spearman
from litebert.tasks.records import Answer, Feature
from litebert.tasks.retrieval_scores import (
    Similarities,
    accuracy_at_1,
    find_ranks,
    mrr_at_10,
    searched,
)
from litebert.tasks.stored import StoredTask

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.tasks.baselines import Baseline
    from litebert.text.tokenizer import Tokenizer

__all__ = ["Similarity", "unit_rows"]

SCORED_METRICS: Final = ("spearman", "pearson", "pearson_spearman")
SEARCH_METRICS: Final = ("mrr_at_10", "accuracy_at_1")
COLLAPSED: Final = 0.95
"""Mean cosine of texts that have nothing to do with each other from which vectors are all alike."""
CONSTANT: Final = 1e-3
"""Standard deviation of the cosines below which they are one number."""
BACKGROUND: Final = 16
"""Other texts that each text is compared with to know what unrelated means."""


class Similarity(StoredTask):
    """How alike two texts are, or which text belongs to which."""

    form: Literal["scored", "search"] = "scored"
    """Pairs with a score, or anchors with positives (and negatives)."""
    metric: str = "spearman"
    """spearman, pearson or pearson_spearman; for anchors mrr_at_10 or accuracy_at_1."""
    max_length: int = Field(default=128, ge=3, le=100_000)
    """Tokens of one text, special ones included; longer ones are cut."""
    score_low: float = Field(default=0.0, ge=-1e30, le=1e30)
    """Score of texts that have nothing in common: cosine 0."""
    score_high: float = Field(default=1.0, ge=-1e30, le=1e30)
    """Score of texts that say the same: cosine 1."""
    scale: float = Field(default=20.0, gt=0, le=1000)
    """Contrastive: factor of the cosines before the softmax."""
    symmetric: bool = False
    """Contrastive: whether positives must find their anchors too."""
    dims: tuple[int, ...] = Field(default=(), max_length=16)
    """Lengths of prefixes that shall be good vectors too, such as 32, 64; the whole always is."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        allowed = SCORED_METRICS if self.form == "scored" else SEARCH_METRICS
        if self.metric not in allowed:
            raise ValueError(f"metric: {self.metric!r} is none of {', '.join(allowed)}")
        if self.score_high <= self.score_low:
            raise ValueError(
                f"score_high: {self.score_high:g} must be above score_low, {self.score_low:g}"
            )
        if any(dim < 2 for dim in self.dims) or len(set(self.dims)) != len(self.dims):
            raise ValueError(f"dims: {list(self.dims)} must be different numbers of 2 and above")
        return self

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        return "similarity"

    @property
    def head(self) -> str:
        """Word for the model head."""
        return "embedding"

    @property
    def pooling(self) -> str:
        """`litebert.pooling` of the configuration that this task needs."""
        return "mean"

    @property
    def loss(self) -> str:
        """Word for what is minimised."""
        return "cosine_mse" if self.form == "scored" else "contrastive"

    @property
    def problem_type(self) -> str | None:
        """None: the head has no loss of its own."""
        return None

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`: one output, no classes."""
        return {0: "similarity"}

    def features(
        self, records: Sequence[SimilarRecord], tokenizer: Tokenizer, *, labelled: bool
    ) -> list[Feature]:
        """Return one feature for each record, its texts as sequences of one example.

        With `labelled` scored pairs have the score as cosine for their label.

        Raises:
            DataError: with `labelled`, no record has a score.
        """
        texts = [text for record in records for text in record.texts]
        encodings = iter(tokenizer.encode_batch(texts, max_length=self.max_length) if texts else ())
        features: list[Feature] = []
        for index, record in enumerate(records):
            parts = [next(encodings) for _ in record.texts]
            label = self._target(record) if labelled else None
            if labelled and self.form == "scored" and label is None:
                continue
            lengths = tuple(len(part.ids) for part in parts)
            ids = np.concatenate([np.asarray(part.ids, np.int32) for part in parts])
            types = np.zeros(len(ids), np.int32)
            features.append(Feature(EncodedExample(ids, types, label, index, lengths)))
        if labelled and records and not features:
            raise DataError(
                "no pair has a score, so nothing can be learnt; give a file with a score column",
                path=records[0].path,
            )
        return features

    def from_text(self, text: str, pair: str | None = None) -> SimilarRecord:
        """Return two texts as a record without score, for `predict`.

        Raises:
            DataError: one text only, or a blank one.
        """
        if pair is None or not text.strip() or not pair.strip():
            raise DataError("two texts are compared, neither blank: give the other one with --pair")
        return SimilarRecord("0", text, Path("<text>"), 0, (text, pair))

    def answers(
        self,
        records: Sequence[SimilarRecord],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows C"]],
    ) -> list[Answer]:
        """Return the similarity of the first two texts of each record.

        The answer is in units of the scores, `score` is the cosine. `background` is the mean cosine
        with other texts of the records. For anchors, `rank` is the place of the right text among the
        texts of all records, and `nearest` the most similar one.

        Raises:
            DataError: not one vector for each text.
        """
        del features  # the outputs have a row for each text, and records know their texts
        for record, rows in zip(records, outputs, strict=True):
            if rows.ndim != 2 or len(rows) != len(record.texts):
                raise DataError(
                    f"outputs have shape {rows.shape}, {len(record.texts)} texts need one vector each; "
                    "the model and its task.json do not belong together"
                )
        vectors = [unit_rows(rows) for rows in outputs]
        if not vectors:
            return []
        firsts = np.stack([rows[0] for rows in vectors])
        seconds = np.stack([rows[1] for rows in vectors])
        places = {
            text: (row, offset)
            for row, record in enumerate(records)
            for offset, text in enumerate(record.texts[1:], start=1)
        }
        candidates, _ = searched(records) if self.form == "search" else ([], [])
        table = np.stack(
            [vectors[a][b] for a, b in map(places.__getitem__, candidates)] or [seconds[0]]
        )
        return self.compared(
            records,
            np.einsum("nh,nh->n", firsts, seconds),
            lambda rows: firsts[rows] @ table.T,
            _backgrounds(firsts, seconds, records),
        )

    def compared(
        self,
        records: Sequence[SimilarRecord],
        cosines: Float[np.ndarray, " N"],
        similarities: Similarities,
        background: Float[np.ndarray, " N"] | None = None,
    ) -> list[Answer]:
        """Return answers from similarities, however they were made.

        Args:
            records: N.
            cosines: similarity of the first two texts of each.
            similarities: of some anchors with all candidates of `searched`; for anchors only.
            background: mean similarity of each first text with texts of other records.
        """
        details: list[dict[str, Any]] = [
            {}
            if background is None or np.isnan(background[i])
            else {"background": float(background[i])}
            for i in range(len(records))
        ]
        if self.form == "search":
            candidates, targets = searched(records)
            ranks, nearest = find_ranks(similarities, targets)
            for i, found in enumerate(details):
                found |= {"rank": int(ranks[i]), "nearest": candidates[int(nearest[i])]}
            values = [float(cosine) for cosine in cosines]
        else:
            width = self.score_high - self.score_low
            values = [float(self.score_low + width * cosine) for cosine in cosines]
        return [
            Answer(value, float(cosine), found)
            for value, cosine, found in zip(values, cosines, details, strict=True)
        ]

    def evaluate(
        self, records: Sequence[SimilarRecord], answers: Sequence[Answer]
    ) -> dict[str, float]:
        """Return correlations of cosine and score; for anchors how well positives are found.

        An anchor that occurs in several records counts once.

        Raises:
            DataError: a record without a score.
        """
        if self.form == "search":
            ranks = {
                record.anchor: int(answer.details["rank"])
                for record, answer in zip(records, answers, strict=True)
            }
            found = list(ranks.values())
            return {"mrr_at_10": mrr_at_10(found), "accuracy_at_1": accuracy_at_1(found)}
        missing = next((record for record in records if record.score is None), None)
        if missing is not None:
            raise DataError(
                "the pair has no score to compare with; give scores or leave it out",
                path=missing.path,
                line=missing.line,
            )
        truth = np.array([record.score for record in records], np.float64)
        guess = np.array([answer.score for answer in answers], np.float64)
        ranked, linear = spearman(guess, truth), pearson(guess, truth)
        return {
            "spearman": ranked,
            "pearson": linear,
            "pearson_spearman": (ranked + linear) / 2,
        }

    def fitted(
        self,
        records: Sequence[SimilarRecord],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows C"]],
    ) -> Self:
        """Return the task itself: nothing is chosen after training."""
        del records, features, outputs
        return self

    def faults(self, records: Sequence[SimilarRecord], answers: Sequence[Answer]) -> list[str]:
        """Say whether all vectors point the same way, or all cosines are one number."""
        del records
        found: list[str] = []
        cosines = np.array([answer.score for answer in answers], np.float64)
        others = [
            answer.details["background"] for answer in answers if "background" in answer.details
        ]
        if others and float(np.mean(others)) > COLLAPSED:
            found.append(
                f"all vectors point the same way: texts that have nothing to do with each other have a "
                f"mean cosine of {np.mean(others):.3f}. An encoder that was only pretrained is like "
                "that; after training it is a collapse: lower train.learning_rate, train longer, or "
                "learn from anchors with positives, whose in-batch negatives push texts apart"
            )
        if len(cosines) > 1 and float(cosines.std()) < CONSTANT:
            found.append(
                f"all cosines are {cosines.mean():.3f}: the model does not tell the pairs apart; "
                "lower train.learning_rate, and look whether the scores in the file vary"
            )
        return found

    def baselines(
        self, train: Sequence[SimilarRecord], evaluation: Sequence[SimilarRecord]
    ) -> list[Baseline]:
        """Return the overlap of words, and the cosine of TF-IDF where scikit-learn is installed."""
        from litebert.tasks.similarity_baselines import overlap_baseline, tfidf_baseline

        found = [overlap_baseline(self, evaluation), tfidf_baseline(self, train, evaluation)]
        return [baseline for baseline in found if baseline is not None]

    def show(self, record: SimilarRecord) -> dict[str, Any]:
        """Return the texts, the label (score, or the right text), and the place."""
        place = {"file": str(record.path), "line": record.line}
        if self.form == "scored":
            texts: dict[str, Any] = {"text": record.anchor, "pair": record.positive}
            return {"id": record.id} | texts | {"label": record.score} | place
        return {"id": record.id, "text": record.anchor, "label": record.positive} | place

    def _target(self, record: SimilarRecord) -> float | None:
        if self.form == "search" or record.score is None:
            return None
        return (record.score - self.score_low) / (self.score_high - self.score_low)


def unit_rows(rows: Float[np.ndarray, "N H"]) -> Float[np.ndarray, "N H"]:
    """Return the rows scaled to length 1, in float64; a row of zeros stays one."""
    wide = np.asarray(rows, np.float64)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)


def _backgrounds(
    firsts: Float[np.ndarray, "N H"],
    seconds: Float[np.ndarray, "N H"],
    records: Sequence[SimilarRecord],
) -> Float[np.ndarray, " N"]:
    """Mean cosine of each first text with second texts of records of other groups; NaN without."""
    count = len(records)
    shifts = sorted({max(1, round(count * k / (BACKGROUND + 1))) for k in range(1, BACKGROUND + 1)})
    sums, seen = np.zeros(count), np.zeros(count)
    _, groups = np.unique([record.group for record in records], return_inverse=True)
    for shift in shifts if count > 1 else ():
        is_other = groups != np.roll(groups, -shift)
        sums += np.where(is_other, np.einsum("nh,nh->n", firsts, np.roll(seconds, -shift, 0)), 0.0)
        seen += is_other
    return np.where(seen > 0, sums / np.maximum(seen, 1), np.nan)


TASKS.register("similarity")(cast(Any, Similarity))
