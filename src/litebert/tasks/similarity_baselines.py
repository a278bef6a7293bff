"""What a similarity score is worth: shared words, and the cosine of TF-IDF, on the same records."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.errors import MissingDependencyError
from litebert.tasks.bag_of_words import TextFeatures
from litebert.tasks.baselines import TFIDF, Baseline
from litebert.tasks.retrieval_scores import searched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float

    from litebert.data.similar import SimilarRecord
    from litebert.tasks.similarity import Similarity

__all__ = ["OVERLAP", "overlap_baseline", "tfidf_baseline"]

OVERLAP: Final = "overlap"
_WORD: Final = re.compile(r"\w+")


def overlap_baseline(task: Similarity, evaluation: Sequence[SimilarRecord]) -> Baseline:
    """Score the share of words that two texts have in common (Jaccard of lower-case words)."""
    start = time.perf_counter()
    firsts = [_words(record.anchor) for record in evaluation]
    seconds = [_words(record.positive) for record in evaluation]
    own = np.array([_jaccard(a, b) for a, b in zip(firsts, seconds, strict=True)])
    candidates = [_words(text) for text in searched(evaluation)[0]] if task.form == "search" else []
    postings: dict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(candidates):
        for word in words:
            postings[word].append(place)
    sizes = np.array([len(words) for words in candidates], np.float64)

    def similarities(rows: slice) -> Float[np.ndarray, "N M"]:
        table = np.zeros((len(firsts[rows]), len(candidates)))
        for line, words in zip(table, firsts[rows], strict=True):
            for word in words & postings.keys():
                line[postings[word]] += 1
            line /= np.maximum(sizes + len(words) - line, 1)
        return table

    scores = task.evaluate(evaluation, task.compared(evaluation, own, similarities))
    seconds_taken = time.perf_counter() - start
    return Baseline(OVERLAP, "share of common words", scores, seconds_taken)


def tfidf_baseline(
    task: Similarity, train: Sequence[SimilarRecord], evaluation: Sequence[SimilarRecord]
) -> Baseline | None:
    """Score the cosine of TF-IDF of words and characters, weighted by the training texts.

    Returns:
        None without scikit-learn, or where no text holds a word.
    """
    start = time.perf_counter()
    features = TextFeatures()
    try:
        known = features.fit([text for record in train for text in record.texts])
    except MissingDependencyError:
        return None
    if known is None:
        return None
    firsts = _unit(features.transform([record.anchor for record in evaluation]))
    seconds = _unit(features.transform([record.positive for record in evaluation]))
    own = np.asarray(firsts.multiply(seconds).sum(axis=1), np.float64).reshape(-1)
    texts = searched(evaluation)[0] if task.form == "search" else []
    table: Any = _unit(features.transform(texts)).T.tocsr() if texts else None

    def similarities(rows: slice) -> Float[np.ndarray, "N M"]:
        return np.asarray((firsts[rows] @ table).toarray(), np.float64)

    scores = task.evaluate(evaluation, task.compared(evaluation, own, similarities))
    method = "cosine of TF-IDF of words and characters"
    return Baseline(TFIDF, method, scores, time.perf_counter() - start)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(1, len(first | second))


def _unit(matrix: Any) -> Any:
    """Scale the rows of a sparse matrix to length 1."""
    import scipy.sparse as sparse

    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64)).reshape(-1)
    return (sparse.diags_array(1.0 / np.maximum(norms, 1e-12)) @ matrix).tocsr()
