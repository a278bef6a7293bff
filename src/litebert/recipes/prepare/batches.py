"""Documents of a corpus in batches for the workers, in order, with the faults met on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from litebert.data.corpus import CorpusOptions, Document, Fault, Position, read_documents

__all__ = ["Batch", "read_batches", "window_chars"]

_BATCH_CHARS: Final = 1 << 18
"""Characters of the documents that go to a worker together."""
_BATCH_DOCUMENTS: Final = 4096
_WINDOW_BATCHES: Final = 3
"""Batches under way for each worker: one in work, one waiting, one done."""
_DOCUMENT_COST: Final = 64
"""Characters that a document counts beside its own, so that empty ones fill a batch too."""


@dataclass(slots=True)
class Batch:
    """Documents for a worker, and the faults that were met before each of them."""

    documents: list[Document] = field(default_factory=list[Document])
    faults: list[tuple[Fault, ...]] = field(default_factory=list[tuple[Fault, ...]])
    size: int = 0

    @property
    def work(self) -> list[str]:
        """Their texts: what the worker gets."""
        return [document.text for document in self.documents]


def read_batches(
    paths: Sequence[Path | str], options: CorpusOptions, start: Position, trailing: list[Fault]
) -> Iterator[Batch]:
    """Yield the documents from `start` on.

    Args:
        paths: files and folders of text.
        options: how they are read.
        start: first document.
        trailing: gets the faults met after the last document, when all batches were taken.

    Raises:
        DataError: a path that cannot be read.
    """
    batch = Batch()
    faults: list[Fault] = []
    for document in read_documents(paths, options, on_fault=faults.append, start=start):
        batch.documents.append(document)
        batch.faults.append(tuple(faults))
        faults.clear()
        batch.size += len(document.text) + _DOCUMENT_COST
        if batch.size >= _BATCH_CHARS or len(batch.documents) >= _BATCH_DOCUMENTS:
            yield batch
            batch = Batch()
    if batch.documents:
        yield batch
    trailing.extend(faults)


def window_chars(workers: int) -> int:
    """Return the characters that may be under way between reading and writing."""
    return workers * _WINDOW_BATCHES * _BATCH_CHARS
