"""The nearest texts of a corpus by cosine: exact, in blocks, with vectors kept on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from safetensors import SafetensorError, safe_open

from litebert.checkpoint import fs
from litebert.data.lines import read_lines
from litebert.data.tables import read_table
from litebert.errors import DataError, SettingsError
from litebert.recipes.embed import column_of, embedded
from litebert.recipes.vector_files import write_vectors

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from litebert.recipes.embed import Embedder

__all__ = ["Corpus", "Hit", "Index", "nearest", "open_index", "read_corpus", "search"]

FORMAT_VERSION: Final = 1
INDEX_FOLDER: Final = ".litebert-index"
BLOCK_ROWS: Final = 16_384
"""Vectors of the corpus that are compared at once."""
BLOCK_QUERIES: Final = 256
DIGITS: Final = 6
"""Cosines that agree so far count as equal, and the earlier line comes first: the digits behind
depend on which texts share a block."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts to search in.

    Attributes:
        path: file they came from.
        lines: 1-based line (or record) of each.
        texts: the same number of texts, none of them blank.
        sha256: hex digest of the file and of how it was read.
        notes: how it was read, in words.
    """

    path: Path
    lines: list[int]
    texts: list[str]
    sha256: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A text that was found."""

    rank: int
    """From 1."""
    score: float
    """Cosine, rounded to 6 digits."""
    line: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the published columns."""
        return {"rank": self.rank, "score": self.score, "line": self.line, "text": self.text}


@dataclass(frozen=True, slots=True)
class Index:
    """Vectors of a corpus, [N, D] of length 1.

    Attributes:
        path: where they are kept; None: in `vectors`.
        vectors: where they could not be kept.
        is_new: whether they were computed now.
        notes: what happened, in words.
    """

    path: Path | None
    vectors: Float[np.ndarray, "N D"] | None = None
    is_new: bool = False
    notes: tuple[str, ...] = ()

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Float[np.ndarray, "n D"]]:
        """Yield the vectors in order, so many at a time."""
        if self.vectors is not None:
            for start in range(0, len(self.vectors), rows):
                yield self.vectors[start : start + rows]
        elif self.path is not None:
            with safe_open(self.path, framework="np") as file:
                part = file.get_slice("vectors")
                count = int(part.get_shape()[0])
                for start in range(0, count, rows):
                    yield part[start : min(start + rows, count)]


def read_corpus(
    path: Path, column: str | None = None, *, encoding: str | None = None, option: str = "text"
) -> Corpus:
    """Read the texts of a table, or of a `.txt` file with one a line; blank ones are left out.

    Args:
        path: the file.
        column: of a table; None: found.
        encoding: codec; None: found.
        option: what messages call the texts, text or query.

    Raises:
        DataError: the file cannot be read, or holds no text.
        SettingsError: a folder, no such column, or a column of a file that has none.
    """
    if path.is_dir():
        raise SettingsError(f"{path} is a folder; give a file")
    notes: tuple[str, ...] = ()
    if ".txt" in path.suffixes:
        if column is not None:
            raise SettingsError(
                f"--{option}-column {column!r}: {path} is a text file, it has no columns"
            )
        texts, _, digest = read_lines(path, encoding)
        rows = list(enumerate(texts, start=1))
    else:
        table = read_table(path, encoding=encoding)
        column, reason = column_of(table, column)
        values = [(row.line, row.values.get(column)) for row in table.rows]
        rows = [(line, "" if value is None else str(value)) for line, value in values]
        digest, notes = table.sha256, (*table.notes, reason)
    kept = [(line, text) for line, text in rows if text.strip()]
    if not kept:
        blank = "every line is blank; give a file with texts, one a line or one a row"
        raise DataError(blank, path=path)
    how = json.dumps([digest, column, encoding])
    lines, found = [line for line, _ in kept], [text for _, text in kept]
    return Corpus(path, lines, found, hashlib.sha256(how.encode()).hexdigest(), notes)


def open_index(
    embedder: Embedder, corpus: Corpus, *, path: Path | None = None, is_kept: bool = True
) -> Index:
    """Return the vectors of a corpus: those on disk if they are of this model, file and options.

    Args:
        embedder: makes vectors of length 1.
        corpus: the texts.
        path: where the vectors are kept; None: in a hidden folder beside the corpus.
        is_kept: False: nothing is read or written.

    Raises:
        SettingsError: an embedder that does not scale to length 1; `path` is no `.safetensors`, or
            holds something else than an index.
        StorageError: a told `path` cannot be written.
    """
    if not embedder.options.normalize:
        raise SettingsError("a search compares cosines; leave normalize on")
    key = _key(embedder, corpus)
    blocks = embedded(embedder, corpus.texts)
    if not is_kept:
        return Index(None, np.concatenate([vectors for _, vectors in blocks]), is_new=True)
    target = path or _usual_place(corpus, key)
    if target.suffix != ".safetensors":
        raise SettingsError(f"the index {target} must end in .safetensors")
    if _is_good(target, key, (len(corpus.texts), embedder.width)):
        return Index(target)
    if path is not None and path.exists() and not _is_index(path):
        raise SettingsError(f"the index {path} exists and is something else; name another file")
    if path is None and not _prepare(target.parent):
        note = f"the vectors cannot be kept in {target.parent}; they are computed each time"
        vectors = np.concatenate([vectors for _, vectors in blocks])
        return Index(None, vectors, is_new=True, notes=(note,))
    write_vectors(target, blocks, embedder.width, metadata={"key": key})
    return Index(target, is_new=True)


def search(
    embedder: Embedder, corpus: Corpus, index: Index, queries: Sequence[str], top: int
) -> Iterator[list[Hit]]:
    """Yield the nearest texts of each query, best first; equal ones in the order of the corpus.

    Args:
        embedder: as for the index.
        corpus: the texts.
        index: their vectors.
        queries: what is searched with.
        top: texts to return, 1 and more; fewer where the corpus has fewer.

    Raises:
        SettingsError: `top` below 1.
    """
    for start in range(0, len(queries), BLOCK_QUERIES):
        part = queries[start : start + BLOCK_QUERIES]
        scores, rows = nearest(embedder(part), index.blocks(), top)
        for found, places in zip(scores, rows, strict=True):
            yield [
                Hit(rank, round(float(score), DIGITS), corpus.lines[row], corpus.texts[row])
                for rank, (score, row) in enumerate(zip(found, places, strict=True), start=1)
            ]


def nearest(
    queries: Float[np.ndarray, "Q D"], blocks: Iterable[Float[np.ndarray, "n D"]], top: int
) -> tuple[Float[np.ndarray, "Q K"], Int[np.ndarray, "Q K"]]:
    """Return the best products and their rows, K = min(top, all rows); ties by the lower row.

    Raises:
        SettingsError: `top` below 1.
    """
    if top < 1:
        raise SettingsError(f"top is {top}; allowed: 1 and above")
    scores = np.zeros((len(queries), 0), np.float64)
    rows = np.zeros((len(queries), 0), np.int64)
    offset = 0
    for block in blocks:
        found = np.round(queries.astype(np.float32) @ block.T, DIGITS).astype(np.float64)
        places = np.broadcast_to(np.arange(offset, offset + len(block)), found.shape)
        # Earlier rows stand first, so that a stable sort keeps them first among equals.
        scores, rows = _best(
            np.concatenate([scores, found], axis=1), np.concatenate([rows, places], axis=1), top
        )
        offset += len(block)
    return scores, rows


def _best(
    scores: Float[np.ndarray, "Q M"], rows: Int[np.ndarray, "Q M"], top: int
) -> tuple[Float[np.ndarray, "Q K"], Int[np.ndarray, "Q K"]]:
    count = scores.shape[1]
    kept = min(top, count)
    least = np.partition(scores, count - kept, axis=1)[:, count - kept]  # the kept-th best
    chosen = np.empty((len(scores), kept), np.int64)
    for i, line in enumerate(scores):
        candidates = np.flatnonzero(line >= least[i])
        order = np.argsort(-line[candidates], kind="stable")[:kept]
        chosen[i] = candidates[order]
    return np.take_along_axis(scores, chosen, 1), np.take_along_axis(rows, chosen, 1)


def _key(embedder: Embedder, corpus: Corpus) -> str:
    parts = [FORMAT_VERSION, embedder.fingerprint, corpus.sha256]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _usual_place(corpus: Corpus, key: str) -> Path:
    return corpus.path.parent / INDEX_FOLDER / f"{corpus.path.name[:100]}-{key[:16]}.safetensors"


def _prepare(folder: Path) -> bool:
    """Make the hidden folder, which git shall not see; False where that is not possible."""
    with contextlib.suppress(fs.StorageError):
        fs.make_folder(folder)
        fs.write_atomic(folder / ".gitignore", b"*\n")
        return True
    return False


def _is_index(path: Path) -> bool:
    """Whether a file is an index of any corpus, so that it may be replaced."""
    try:
        with safe_open(path, framework="np") as file:
            return "key" in (file.metadata() or {}) and list(file.keys()) == ["vectors"]
    except (OSError, SafetensorError, ValueError):
        return False


def _is_good(path: Path, key: str, shape: tuple[int, int]) -> bool:
    """Whether a file holds the vectors that the key stands for; anything else is made anew."""
    try:
        with safe_open(path, framework="np") as file:
            found = tuple(file.get_slice("vectors").get_shape())
            return (file.metadata() or {}).get("key") == key and found == shape
    except (OSError, SafetensorError, ValueError):
        return False
