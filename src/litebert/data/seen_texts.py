"""Which documents of a stream say what an earlier one said, in memory that does not grow.

Hashes lie in an SQLite file with a fixed cache, so that memory stays at about 70 MB however many
documents come; the file takes about 30 bytes a document for exact, 600 for near-duplicates.
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from litebert.data.document_signatures import similarity
from litebert.data.near_duplicates import NUM_BANDS
from litebert.errors import DataError

__all__ = ["DUPLICATE", "NEAR_DUPLICATE", "SeenTexts"]

DUPLICATE: Final = "duplicate"
NEAR_DUPLICATE: Final = "near-duplicate"
_CACHE_KIB: Final = 64 << 10
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS texts (key BLOB PRIMARY KEY, document INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bands (key INTEGER, document INTEGER, PRIMARY KEY (key, document))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS signatures (document INTEGER PRIMARY KEY, value BLOB);
"""
_CANDIDATES: Final = (
    f"SELECT DISTINCT document FROM bands WHERE key IN ({','.join('?' * NUM_BANDS)}) "  # noqa: S608
    "ORDER BY document LIMIT 32"
)
"""At most so many earlier documents are compared with one."""
_NUMBERS: Final = {"SQLITE_FULL": errno.ENOSPC, "SQLITE_READONLY": errno.EROFS}


class SeenTexts:
    """Remembers documents by number; only those that were not repeated.

    What is added lasts once `commit` was called. In a `with` block the file is closed at the end.
    """

    def __init__(self, path: Path, *, threshold: float = 0.8) -> None:
        """Open or make the file.

        Args:
            path: the SQLite file.
            threshold: least estimated similarity of near-duplicates, in (0, 1].

        Raises:
            DataError: the file is damaged.
            OSError: it cannot be opened or written.
        """
        self._path, self._threshold = path, threshold
        with self._errors():
            self._base = sqlite3.connect(path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode = DELETE")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._base.executescript(_SCHEMA)
            self._base.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was not committed is forgotten."""
        self._base.close()

    def add(
        self,
        document: int,
        key: bytes,
        signature: NDArray[np.uint32] | None = None,
        bands: Sequence[int] = (),
    ) -> str | None:
        """Return how a document repeats an earlier one, or remember it and return None.

        Args:
            document: its number; each is greater than the one before.
            key: hash of its text.
            signature: its signature [NUM_HASHES], to look for near-duplicates too.
            bands: the keys of that signature, see `document_signatures.band_key_table`.

        Raises:
            OSError: the disk refused.
        """
        with self._errors():
            execute = self._base.execute
            if execute("SELECT 1 FROM texts WHERE key = ?", (key,)).fetchone() is not None:
                return DUPLICATE
            if signature is not None:
                if self._is_near(bands, signature):
                    return NEAR_DUPLICATE
                execute("INSERT INTO signatures VALUES (?, ?)", (document, signature.tobytes()))
                self._base.executemany(
                    "INSERT OR IGNORE INTO bands VALUES (?, ?)", [(b, document) for b in bands]
                )
            execute("INSERT INTO texts VALUES (?, ?)", (key, document))
        return None

    def commit(self) -> None:
        """Make everything that was added last.

        Raises:
            OSError: the disk refused.
        """
        with self._errors():
            self._base.execute("COMMIT")
            self._base.execute("BEGIN")

    def forget_from(self, document: int) -> None:
        """Forget a document and all after it; they will come again.

        Raises:
            OSError: the disk refused.
        """
        with self._errors():
            for table in ("texts", "bands", "signatures"):
                self._base.execute(f"DELETE FROM {table} WHERE document >= ?", (document,))  # noqa: S608
        self.commit()

    def _is_near(self, bands: Sequence[int], signature: NDArray[np.uint32]) -> bool:
        for (other,) in self._base.execute(_CANDIDATES, list(bands)).fetchall():
            row = self._base.execute(
                "SELECT value FROM signatures WHERE document = ?", (other,)
            ).fetchone()
            if similarity(np.frombuffer(row[0], np.uint32), signature) >= self._threshold:
                return True
        return False

    @contextlib.contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OSError(
                _NUMBERS.get(error.sqlite_errorname, errno.EIO), str(error), str(self._path)
            ) from error
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"the list of seen documents is damaged ({error}); delete the folder and prepare "
                "anew",
                path=self._path,
            ) from error
