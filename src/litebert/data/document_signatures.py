"""MinHash signatures of whole documents of any length, from one pass over their characters.

Each stretch of characters falls into one of 64 bins by its hash, and each bin keeps its smallest
value; an empty bin borrows from the next one. So the time does not grow with the number of hashes,
and a long document is looked at from its first to its last character.

Source: Li, Owen, Zhang 2012, "One permutation hashing"; empty bins as in Shrivastava, Li 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from litebert.data.near_duplicates import (
    NUM_BANDS,
    NUM_HASHES,
    SHINGLE_CHARS,
    band_keys,
    shingle_hashes,
)

__all__ = ["band_key_table", "document_signatures", "similarity"]

_WINDOW_CHARS: Final = 1 << 17
_EMPTY: Final = np.uint32(0xFFFFFFFF)
_BORROWED: Final = 0x9E3779B1
"""Added once for each bin that a borrowed value has travelled."""
_BIN_SHIFT: Final = np.uint64(64 - NUM_HASHES.bit_length() + 1)
_MIX: Final = np.uint64(0xD6E8FEB86659FD93)


def document_signatures(texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return signatures [N, NUM_HASHES]; the share of equal entries estimates the similarity.

    Args:
        texts: documents, already normalised.
    """
    result = np.full((len(texts), NUM_HASHES), _EMPTY, np.uint32)
    for row, text in zip(result, texts, strict=True):
        padded = f" {text} ".ljust(SHINGLE_CHARS)
        for start in range(0, len(padded) - SHINGLE_CHARS + 1, _WINDOW_CHARS):
            part = padded[start : start + _WINDOW_CHARS + SHINGLE_CHARS - 1]
            codes = np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32)
            hashes = shingle_hashes(codes) * _MIX
            hashes ^= hashes >> np.uint64(32)
            values = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
            np.minimum.at(row, (hashes >> _BIN_SHIFT).astype(np.intp), values)
    return _fill(result)


def similarity(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> float:
    """Return the estimated similarity of two signatures [NUM_HASHES], in [0, 1].

    Its standard deviation is at most 0.07, for documents of some hundred characters or more.
    """
    return float((first == second).mean())


def band_key_table(signatures: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the band keys of signatures [N, NUM_HASHES] as signed numbers, [N, NUM_BANDS]."""
    keys = [band_keys(signatures, band).view(np.int64) for band in range(NUM_BANDS)]
    return np.stack(keys, axis=1)


def _fill(signatures: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Give each empty bin the value of the nearest full one to its right, marked by the distance."""
    empty = signatures == _EMPTY
    source, waiting = signatures.copy(), empty.copy()
    for step in range(1, NUM_HASHES):
        if not waiting.any():
            break
        right = np.roll(signatures, -step, axis=1)
        takes = waiting & ~np.roll(empty, -step, axis=1)
        source[takes] = right[takes] + np.uint32(_BORROWED * step & 0xFFFFFFFF)
        waiting &= ~takes
    return source
