"""Texts that say almost the same: MinHash signatures, banded look-up, exact verification.

Source: Broder 1997, "On the resemblance and containment of documents"; the look-up by bands is
described in Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UInt64 = NDArray[np.uint64]

SHINGLE_CHARS = 5
"""Characters of one shingle; texts are case-folded, with single spaces, and padded by one."""
NUM_HASHES = 64
NUM_BANDS = 16
"""Bands of 4 hashes: pairs of similarity 0.8 are found with probability 0.9998, of 0.3 with 0.12."""
MAX_CHARS = 2000
"""Only this many characters at the start of a text are compared."""
_CANDIDATES_A_BAND = 4
_CHUNK_CHARS = 1 << 21
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """One text and the most similar one found for it.

    Attributes:
        index: position in the searched texts.
        other: position in the reference texts.
        similarity: Jaccard similarity of their shingle sets, in [0, 1].
    """

    index: int
    other: int
    similarity: float


def find_near_duplicates(
    texts: Sequence[str], references: Sequence[str], *, threshold: float = 0.8
) -> list[NearDuplicate]:
    """Return, for each text, its most similar reference at or above a similarity.

    Time grows with the number of characters, not with the number of pairs. The similarity of
    every reported pair is exact; a pair just above the threshold may be missed.

    Args:
        texts: searched texts, already normalised.
        references: texts to compare with, already normalised.
        threshold: least Jaccard similarity of character shingles, in (0, 1].
    """
    if not texts or not references:
        return []
    mine, theirs = signatures(texts), signatures(references)
    best = np.full(len(texts), -1, np.int64)
    best_score = np.zeros(len(texts), np.float32)
    for band in range(NUM_BANDS):
        keys, other_keys = band_keys(mine, band), band_keys(theirs, band)
        order = np.argsort(other_keys, kind="stable")
        sorted_keys = other_keys[order]
        start = np.searchsorted(sorted_keys, keys)
        for offset in range(_CANDIDATES_A_BAND):
            position = start + offset
            inside = position < len(sorted_keys)
            hit = inside.copy()
            hit[inside] = sorted_keys[position[inside]] == keys[inside]
            rows = np.flatnonzero(hit)
            if not len(rows):
                break
            others = order[position[rows]]
            score = (mine[rows] == theirs[others]).mean(axis=1, dtype=np.float32)
            better = score > best_score[rows]
            best[rows[better]] = others[better]
            best_score[rows[better]] = score[better]
    found: list[NearDuplicate] = []
    for index in np.flatnonzero(best >= 0).tolist():
        other = int(best[index])
        similarity = jaccard(texts[index], references[other])
        if similarity >= threshold:
            found.append(NearDuplicate(index, other, similarity))
    return found


def jaccard(first: str, second: str) -> float:
    """Return the exact similarity of the shingle sets of two texts, in [0, 1]."""
    a, b = _shingle_set(first), _shingle_set(second)
    return len(a & b) / len(a | b)


def signatures(texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return MinHash signatures [N, NUM_HASHES]; equal entries estimate the similarity."""
    out = np.empty((len(texts), NUM_HASHES), np.uint32)
    start = 0
    while start < len(texts):
        stop, chars = start, 0
        while stop < len(texts) and (stop == start or chars < _CHUNK_CHARS):
            chars += min(len(texts[stop]), MAX_CHARS)
            stop += 1
        out[start:stop] = _signatures(texts[start:stop])
        start = stop
    return out


def _signatures(texts: Sequence[str]) -> NDArray[np.uint32]:
    padded = [_pad(text) for text in texts]
    lengths = np.asarray([len(text) for text in padded], np.int64)
    joined = "".join(padded).encode("utf-32-le", "surrogatepass")
    shingles = shingle_hashes(np.frombuffer(joined, np.uint32))
    counts = lengths - SHINGLE_CHARS + 1  # shingles inside each text; those that straddle go
    ends = np.cumsum(lengths)
    keep = np.ones(len(shingles), bool)
    for back in range(1, SHINGLE_CHARS):
        straddling = ends[:-1] - back
        keep[straddling] = False
    shingles = shingles[keep]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    rng = np.random.default_rng(0)  # fixed: signatures must agree between calls
    factors = rng.integers(1, 1 << 63, NUM_HASHES, dtype=np.uint64) | np.uint64(1)
    rows = np.empty((NUM_HASHES, len(texts)), np.uint32)
    for number, factor in enumerate(factors):
        mixed = ((shingles * factor) >> np.uint64(32)).astype(np.uint32)
        rows[number] = np.minimum.reduceat(mixed, starts)
    return rows.T  # [N, NUM_HASHES]


def shingle_hashes(codes: NDArray[np.uint32]) -> UInt64:
    """Return a hash of each stretch of `SHINGLE_CHARS` characters, [N - SHINGLE_CHARS + 1].

    Args:
        codes: characters [N], at least `SHINGLE_CHARS` of them.
    """
    shingles = np.zeros(len(codes) - SHINGLE_CHARS + 1, np.uint64)
    for offset in range(SHINGLE_CHARS):
        window = codes[offset : offset + len(shingles)].astype(np.uint64)
        shingles = (shingles ^ window) * _MULTIPLIER
        shingles ^= shingles >> np.uint64(29)
    return shingles


def band_keys(signature: NDArray[np.uint32], band: int) -> UInt64:
    """Return one key for each signature [N, NUM_HASHES]: equal where a whole band is equal."""
    width = NUM_HASHES // NUM_BANDS
    key = np.zeros(len(signature), np.uint64)
    for column in range(band * width, (band + 1) * width):
        key = (key ^ signature[:, column].astype(np.uint64)) * _MULTIPLIER
        key ^= key >> np.uint64(31)
    return key


def _pad(text: str) -> str:
    return f" {text[:MAX_CHARS]} ".ljust(SHINGLE_CHARS)


def _shingle_set(text: str) -> set[str]:
    padded = _pad(text)
    return {padded[i : i + SHINGLE_CHARS] for i in range(len(padded) - SHINGLE_CHARS + 1)}
