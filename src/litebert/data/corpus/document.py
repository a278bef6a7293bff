"""What a corpus is made of: documents with their place, and the faults met on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Document", "Fault", "FaultHandler", "Position"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between documents, where reading can go on.

    Attributes:
        file: 0-based index of the file in `corpus_files(paths)`.
        document: 0-based number of the document in that file; dropped ones count too.
    """

    file: int
    document: int

    def after(self) -> Position:
        """Return the position behind the document that stands here."""
        return Position(self.file, self.document + 1)


@dataclass(frozen=True, slots=True)
class Document:
    r"""One text that belongs together.

    Attributes:
        text: the text; lines end with "\n", paragraphs are parted by an empty line.
        path: file it came from.
        member: name inside that file, if the file is an archive.
        number: 0-based number in the file, over all members, with the dropped documents.
        line: 1-based line (record of Parquet and JSON lists) of the file or member it starts in.
        file: 0-based index of the file in `corpus_files(paths)`.
    """

    text: str
    path: Path
    member: str | None
    number: int
    line: int
    file: int

    @property
    def position(self) -> Position:
        """Where this document stands; `position.after()` is where to go on."""
        return Position(self.file, self.number)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was left out or changed, and why.

    Attributes:
        kind: a word or two that faults are counted by, such as "bad bytes".
        reason: the whole sentence, with the remedy.
        path: file.
        member: name inside an archive.
        number: 0-based number of the document, None if the fault is the file's or member's.
        line: 1-based line or record, if known.
    """

    kind: str
    reason: str
    path: Path
    member: str | None = None
    number: int | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = str(self.path) + (f" [{self.member}]" if self.member is not None else "")
        return f"{place}{f':{self.line}' if self.line is not None else ''}: {self.reason}"


FaultHandler = Callable[[Fault], None]
"""Told about every fault that does not end the reading."""
