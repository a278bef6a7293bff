"""Token embeddings to start from, out of the texts alone: which pieces occur near each other.

Positive pointwise mutual information of pieces within a window, factorised by a truncated SVD. It
takes seconds, needs no labels, and gives pieces of like use like vectors before the first update.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.errors import MissingDependencyError

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["cooccurrence_vectors"]

WINDOW: Final = 8
"""Pieces on each side that count as near; nearer ones count more (weight 1 / distance)."""
CONTEXT_POWER: Final = 0.75
"""Context counts are raised to this, which tames rare pieces (Levy et al. 2015)."""
MAX_TOKENS: Final = 3_000_000
"""Tokens that are counted at most; more change the vectors little."""


def cooccurrence_vectors(
    texts: Iterable[NDArray[np.integer[Any]]], vocab_size: int, dimensions: int, *, seed: int
) -> Float[np.ndarray, "V E"]:
    """Return one vector for each piece, with standard deviation 1 over all; unseen pieces are 0.

    Args:
        texts: ids of each text, without special tokens; no more is read than is counted.
        vocab_size: V.
        dimensions: E; columns beyond what the counts support are 0.
        seed: of the randomised SVD.

    Source: Levy, Goldberg and Dagan 2015, Improving Distributional Similarity (PPMI, SVD, context
    distribution smoothing).

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    sparse, extmath = _import("scipy.sparse"), _import("sklearn.utils.extmath")
    ids, sequence = _joined(texts)
    counts = sparse.csr_array((vocab_size, vocab_size), dtype=np.float64)
    for distance in range(1, WINDOW + 1):
        near = sequence[:-distance] == sequence[distance:]
        pair = (ids[:-distance][near], ids[distance:][near])
        weight = np.full(len(pair[0]), 1.0 / distance)
        counts = counts + sparse.coo_array((weight, pair), shape=counts.shape).tocsr()
    counts = (counts + counts.T).tocoo()
    vectors = np.zeros((vocab_size, dimensions), np.float32)
    rank = min(dimensions, int(np.count_nonzero(np.bincount(ids, minlength=vocab_size))) - 1)
    if counts.nnz == 0 or rank < 1:
        return vectors
    rows, context = counts.sum(axis=1), counts.sum(axis=0) ** CONTEXT_POWER
    information = np.log(counts.data * context.sum() / (rows[counts.row] * context[counts.col]))
    positive = np.maximum(information, 0.0)
    matrix = sparse.csr_array((positive, (counts.row, counts.col)), shape=counts.shape)
    left, values, _ = extmath.randomized_svd(matrix, rank, random_state=seed)
    vectors[:, :rank] = left * np.sqrt(values)
    return vectors / max(float(vectors.std()), 1e-9)


def _joined(texts: Iterable[NDArray[np.integer[Any]]]) -> tuple[np.ndarray, np.ndarray]:
    """Return all ids, and the number of the text that each belongs to."""
    parts: list[np.ndarray] = []
    total = 0
    for text in texts:
        parts.append(text.astype(np.int64))
        total += len(text)
        if total >= MAX_TOKENS:
            break
    sequence = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return np.concatenate(parts), sequence


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            "scikit-learn", extra="train", purpose="starting embeddings from the training texts"
        ) from error
