"""What a score is worth: the constant answer and a bag-of-words model on the same split."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.errors import DataError
from litebert.tasks import bag_of_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Num

    from litebert.data.examples import Example
    from litebert.tasks.classification import SequenceClassification

__all__ = ["MAJORITY", "TFIDF", "Baseline", "majority_baseline", "tfidf_baseline"]

MAJORITY: Final = "majority"
TFIDF: Final = "tfidf"


@dataclass(frozen=True, slots=True)
class Baseline:
    """Scores of a simple model, trained and scored on the same examples as the encoder."""

    name: str
    """"majority", "tfidf", or a task's own."""
    method: str
    """What it does, in a few words, for reports."""
    scores: dict[str, float]
    """The same names as the task's own scores."""
    seconds: float
    """Wall-clock time of fitting and scoring."""
    logits: Float[np.ndarray, "N C"] | None = None
    """Its answers to the evaluation examples, as logits of the task, where the task has any."""


def majority_baseline(
    task: SequenceClassification, train: Sequence[Example], evaluation: Sequence[Example]
) -> Baseline:
    """Score the best constant answer: most frequent class, mean target, or most frequent labels.

    Multi-label answers the k most frequent labels, k being best for micro F1 on the training
    examples (answering none would score 0 and flatter the model).

    Raises:
        DataError: no labelled examples in one of the two lists.
    """
    start = time.perf_counter()
    known, truth = _labels(task, train, "training"), _labels(task, evaluation, "evaluation")
    if task.kind == "regression":
        row, method = np.array([known.mean()]), "always the mean of the training targets"
    elif task.kind == "multilabel":
        row, method = _constant_labels(known, task.threshold), "always the most frequent labels"
    else:
        count = np.bincount(known.astype(np.int64), minlength=len(task.labels))
        row = np.log(np.maximum(count / count.sum(), np.exp(bag_of_words.MIN_LOGIT)))
        method = "always the most frequent class"
    logits = np.tile(row, (len(truth), 1))
    scores = _uncalibrated(task).score(logits, truth)
    return Baseline(MAJORITY, method, scores, time.perf_counter() - start, logits)


def tfidf_baseline(
    task: SequenceClassification,
    train: Sequence[Example],
    evaluation: Sequence[Example],
    *,
    seed: int = 0,
) -> Baseline:
    """Score TF-IDF of words and character n-grams with logistic (or ridge) regression.

    Raises:
        DataError: no labelled examples in one of the two lists.
        MissingDependencyError: scikit-learn is not installed.
    """
    start = time.perf_counter()
    known, truth = _labels(task, train, "training"), _labels(task, evaluation, "evaluation")
    features = bag_of_words.TextFeatures()
    matrix = features.fit(*_texts(task, train))
    single = task.kind in ("binary", "multiclass") and len(np.unique(known)) < 2
    if matrix is None or single:
        constant = majority_baseline(task, train, evaluation)
        reason = "one class only" if single else "no words in the texts"
        method = f"{constant.method} ({reason}, so nothing to fit)"
        seconds = time.perf_counter() - start
        return Baseline(TFIDF, method, constant.scores, seconds, constant.logits)
    test = features.transform(*_texts(task, evaluation))
    if task.kind == "regression":
        logits = bag_of_words.fit_numbers(matrix, known, test)[:, None]
        method = "TF-IDF of words and characters + ridge regression"
    elif task.kind == "multilabel":
        logits = bag_of_words.fit_labels(matrix, known, test, seed)
        method = "TF-IDF of words and characters + logistic regression per label"
    else:
        logits = bag_of_words.fit_classes(
            matrix, known.astype(np.int64), test, len(task.labels), seed
        )
        method = "TF-IDF of words and characters + logistic regression"
    scores = _uncalibrated(task).score(logits, truth)
    return Baseline(TFIDF, method, scores, time.perf_counter() - start, logits)


def _labels(
    task: SequenceClassification, examples: Sequence[Example], role: str
) -> Num[np.ndarray, "*S"]:
    codes = [task.encode_label(example) for example in examples]
    if not codes or any(code is None for code in codes):
        missing = sum(code is None for code in codes)
        raise DataError(
            f"{missing} of {len(codes)} {role} examples have no label; baselines need at least "
            "one example, and a label on each"
        )
    return np.array(codes)


def _texts(
    task: SequenceClassification, examples: Sequence[Example]
) -> tuple[list[str], list[str] | None]:
    texts = [example.text for example in examples]
    return texts, [example.pair or "" for example in examples] if task.is_pair else None


def _uncalibrated(task: SequenceClassification) -> SequenceClassification:
    return task.model_copy(update={"temperature": 1.0})


def _constant_labels(
    targets: Float[np.ndarray, "N C"], threshold: float
) -> Float[np.ndarray, " C"]:
    share = targets.mean(axis=0)
    order = np.argsort(-share, kind="stable")
    size = np.arange(1, len(share) + 1)
    # Micro F1 of answering the k most frequent labels to every example.
    value = 2 * np.cumsum(share[order]) / (size + share.sum())
    chosen = np.zeros(len(share), dtype=bool)
    chosen[order[: int(value.argmax()) + 1]] = True
    edge = 1e-6
    low, high = np.clip([threshold - edge, threshold + edge], edge, 1 - edge)
    p = np.where(chosen, np.maximum(share, high), np.minimum(share, low))
    p = np.clip(p, edge, 1 - edge)
    return np.log(p) - np.log1p(-p)
