"""TF-IDF features and linear models on them: the opponent every encoder has to beat.

Words in ones and twos, and character n-grams, which also serve languages without spaces. Needs
scikit-learn (extra "train"), imported on first use.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from litebert.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int

__all__ = ["Features", "TextFeatures", "fit_classes", "fit_labels", "fit_numbers"]

Features = Any
"""A scipy CSR matrix [N, F] of float32; scipy has no types of its own."""

MAX_FEATURES: Final = 100_000
"""Most features of one kind (words, characters), the most frequent ones."""
MAX_CHARACTERS: Final = 4_000
"""Characters read of one text; more than 512 tokens, so never less than the model sees."""
RARE_FROM: Final = 500
"""From this many texts on, a character n-gram must occur in two of them."""
STRENGTH: Final = 10.0
"""Inverse regularisation C of the classifiers; 1 was weaker on some public sets, 30 no stronger."""
RIDGE_PENALTY: Final = 1.0
EXACT_DECISIONS: Final = 100_000
"""Rows times yes/no models up to which the exact solver is used."""
MAX_EPOCHS: Final = 50
MIN_LOGIT: Final = -20.0
"""Logit of a class without training examples: never the answer, but a finite loss."""


class TextFeatures:
    """TF-IDF of single texts or of pairs, fitted on the training texts.

    A pair is described by both texts, by the product and the absolute difference of their vectors,
    and by overlap shares (cosine, containment either way, Jaccard) and the ratio of lengths.
    """

    def __init__(self) -> None:
        self._vectorizers: list[Any] = []

    def fit(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Features | None:
        """Learn the vocabulary and return the features of the training texts [N, F].

        Returns:
            None when no text holds a word or a character n-gram.

        Raises:
            MissingDependencyError: scikit-learn is not installed.
        """
        vectorizer = _import_sklearn("feature_extraction.text").TfidfVectorizer
        every = [text[:MAX_CHARACTERS] for text in (*texts, *(pairs or ()))]
        common: dict[str, Any] = {
            "sublinear_tf": True, "max_features": MAX_FEATURES, "dtype": np.float32,
        }  # fmt: skip
        rare = 2 if len(every) >= RARE_FROM else 1
        self._vectorizers = []
        words = {"token_pattern": r"(?u)\b\w+\b"}  # one-letter words count too
        for candidate in (
            vectorizer(ngram_range=(1, 2), **words, **common),
            vectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=rare, **common),
        ):
            try:
                candidate.fit(every)
            except ValueError:  # scikit-learn's way to say that the vocabulary is empty
                continue
            self._vectorizers.append(candidate)
        return self.transform(texts, pairs) if self._vectorizers else None

    def transform(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Features:
        """Return the features of texts or pairs [N, F]."""
        import scipy.sparse as sparse

        first = self._vectors(texts)
        if pairs is None:
            return sparse.hstack(first, format="csr")
        second = self._vectors(pairs)
        together = list(zip(first, second, strict=True))
        overlap = np.hstack([_overlap(a, b) for a, b in together])
        dense = np.hstack([overlap, overlap**2, _length_ratio(texts, pairs)])
        blocks = [
            *first,
            *second,
            *(a.multiply(b) for a, b in together),
            *(abs(a - b) for a, b in together),
            sparse.csr_matrix(dense.astype(np.float32)),
        ]
        return sparse.hstack(blocks, format="csr")

    def _vectors(self, texts: Sequence[str]) -> list[Features]:
        cut = [text[:MAX_CHARACTERS] for text in texts]
        return [vectorizer.transform(cut) for vectorizer in self._vectorizers]


def fit_classes(
    features: Features, labels: Int[np.ndarray, " N"], test: Features, num_classes: int, seed: int
) -> Float[np.ndarray, "M C"]:
    """Fit one-vs-rest logistic regression and return log-probabilities of the test rows.

    At least two classes must occur in `labels`.
    """
    present = len(np.unique(labels))
    model = _classifier(features.shape[0], 1 if present == 2 else present, seed)
    if present > 2:
        model = _import_sklearn("multiclass").OneVsRestClassifier(model)
    _quietly_fit(model, features, labels)
    logits = np.full((test.shape[0], num_classes), MIN_LOGIT)
    p = np.asarray(model.predict_proba(test), dtype=np.float64)
    logits[:, np.asarray(model.classes_)] = np.log(np.maximum(p, np.exp(MIN_LOGIT)))
    return logits


def fit_labels(
    features: Features, targets: Float[np.ndarray, "N C"], test: Features, seed: int
) -> Float[np.ndarray, "M C"]:
    """Fit one yes/no logistic regression per label and return the logits of the test rows."""
    logits = np.zeros((test.shape[0], targets.shape[1]))
    for column in range(targets.shape[1]):
        yes = targets[:, column] == 1
        if yes.all() or not yes.any():
            logits[:, column] = -MIN_LOGIT if yes.all() else MIN_LOGIT
            continue
        model = _classifier(features.shape[0], targets.shape[1], seed)
        _quietly_fit(model, features, yes)
        logits[:, column] = model.decision_function(test)
    return logits


def fit_numbers(
    features: Features, targets: Float[np.ndarray, " N"], test: Features
) -> Float[np.ndarray, " M"]:
    """Fit ridge regression and return the numbers for the test rows."""
    ridge = _import_sklearn("linear_model").Ridge
    model = ridge(alpha=RIDGE_PENALTY, solver="lsqr")
    _quietly_fit(model, features, targets)
    return np.asarray(model.predict(test), dtype=np.float64)


def _classifier(num_rows: int, num_models: int, seed: int) -> Any:
    """Return an unfitted yes/no model: exact while that takes seconds, else stochastic.

    Stochastic descent came within half a point of the exact optimum on 77 classes of 10,000 rows,
    in a fifth of the time.
    """
    linear = _import_sklearn("linear_model")
    if num_rows * num_models <= EXACT_DECISIONS:
        return linear.LogisticRegression(C=STRENGTH, solver="liblinear", random_state=seed)
    return linear.SGDClassifier(
        loss="log_loss",
        alpha=1.0 / (STRENGTH * num_rows),
        max_iter=MAX_EPOCHS,
        random_state=seed,
    )


def _quietly_fit(model: Any, features: Features, targets: np.ndarray) -> None:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the limit
        model.fit(features, targets)


def _overlap(first: Features, second: Features) -> Float[np.ndarray, "N 4"]:
    cosine = np.asarray(first.multiply(second).sum(axis=1)).reshape(-1)
    has_first, has_second = (first > 0).astype(np.float32), (second > 0).astype(np.float32)
    shared = np.asarray(has_first.multiply(has_second).sum(axis=1)).reshape(-1)
    size_first = np.asarray(has_first.sum(axis=1)).reshape(-1)
    size_second = np.asarray(has_second.sum(axis=1)).reshape(-1)
    union = size_first + size_second - shared
    shares = [shared / np.maximum(size, 1) for size in (size_first, size_second, union)]
    return np.stack([cosine, *shares], axis=1)


def _length_ratio(texts: Sequence[str], pairs: Sequence[str]) -> Float[np.ndarray, "N 2"]:
    first = np.array([len(text) for text in texts], dtype=np.float64)
    second = np.array([len(text) for text in pairs], dtype=np.float64)
    ratio = np.log((first + 1) / (second + 1)) / 2
    return np.stack([ratio, np.abs(ratio)], axis=1)


def _import_sklearn(module: str) -> Any:
    import importlib

    try:
        return cast(Any, importlib.import_module(f"sklearn.{module}"))
    except ImportError as error:
        raise MissingDependencyError(
            "scikit-learn", extra="train", purpose="the bag-of-words baseline"
        ) from error
