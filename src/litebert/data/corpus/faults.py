"""One policy for everything in a corpus that cannot be used: raise it, or count it and go on."""

from __future__ import annotations

from pathlib import Path

from litebert.data.corpus.document import Fault, FaultHandler
from litebert.errors import DataError

__all__ = ["Refused", "Reporter"]


class Refused(Exception):  # noqa: N818 - it ends a file or member, not the program
    """A file or member cannot be read on. Never leaves `read_documents`.

    Attributes:
        kind: word or two to count by.
        reason: the sentence, with the remedy.
        line: 1-based line or record, if known.
        is_foreign: True if it is no text to begin with: left out where it was only found.
    """

    def __init__(
        self, kind: str, reason: str, *, line: int | None = None, is_foreign: bool = False
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.line = line
        self.is_foreign = is_foreign


class Reporter:
    """Knows where the reader stands, and tells the handler or raises.

    Attributes:
        path: file that is read.
        member: member that is read, in an archive.
        number: 0-based number of the next document in the file.
        is_strict: whether faults of content raise.
    """

    def __init__(
        self, path: Path, handler: FaultHandler, *, is_strict: bool, first: int = 0
    ) -> None:
        """Start at the beginning of a file.

        Args:
            path: the file.
            handler: told about faults.
            is_strict: faults of content raise.
            first: documents before this one were read earlier, and so were their faults.
        """
        self.path = path
        self.member: str | None = None
        self.number = 0
        self._handler = handler
        self.is_strict = is_strict
        self._first = first

    def drop(self, kind: str, reason: str, *, line: int | None = None, at: bool = True) -> None:
        """Count something that is left out as a rule; `at` blames the next document."""
        if self.number >= self._first:
            number = self.number if at else None
            self._handler(Fault(kind, reason, self.path, self.member, number, line))

    def fail(self, kind: str, reason: str, *, line: int | None = None, at: bool = True) -> None:
        """Raise a fault of the content, or count it if the user said so.

        Raises:
            DataError: the policy is "error".
        """
        if self.is_strict:
            raise self.error(f"{reason} (or leave such documents out with --on-bad skip)", line)
        self.drop(kind, reason, line=line, at=at)

    def error(self, reason: str, line: int | None = None) -> DataError:
        """Return the error that names file, member and line."""
        inside = f"in member {self.member!r:.200}: " if self.member is not None else ""
        return DataError(inside + reason, path=self.path, line=line)
