"""Counts of a preparation: what was read, kept and dropped, and the first faults by place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Self, cast

from litebert.data.corpus import Fault

__all__ = ["MAX_LISTED", "DroppedReason", "SplitCounts", "Tally"]

MAX_LISTED: Final = 1000
"""Faults that are listed with their place; all are counted."""

DroppedReason = str
"""A word or two, such as "too short", "duplicate", "near-duplicate", "bad bytes"."""


@dataclass(slots=True)
class SplitCounts:
    """Numbers of one output: documents, sentences, tokens, words, unknown tokens."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    words: int = 0
    unknown: int = 0


@dataclass(slots=True)
class Tally:
    """All counts.

    Attributes:
        documents: documents that were read and could be used as text.
        num_bytes: their UTF-8 bytes.
        cut_sentences: sentences that were cut because they are too long.
        train: what went to the shards.
        eval: what went to the held-out shards.
        dropped: reason -> documents.
        faults: kind -> how often the reader left out or cut something.
        listed: the first faults, as lines.
    """

    documents: int = 0
    num_bytes: int = 0
    cut_sentences: int = 0
    train: SplitCounts = field(default_factory=SplitCounts)
    eval: SplitCounts = field(default_factory=SplitCounts)
    dropped: dict[DroppedReason, int] = field(default_factory=dict[str, int])
    faults: dict[str, int] = field(default_factory=dict[str, int])
    listed: list[str] = field(default_factory=list[str])

    def drop(self, reason: DroppedReason) -> None:
        """Count a dropped document."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def note(self, fault: Fault) -> None:
        """Count, and at first list, what the reader left out."""
        self.faults[fault.kind] = self.faults.get(fault.kind, 0) + 1
        if len(self.listed) < MAX_LISTED:
            self.listed.append(str(fault)[:1000])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "documents": self.documents,
            "num_bytes": self.num_bytes,
            "cut_sentences": self.cut_sentences,
            "train": _values(self.train),
            "eval": _values(self.eval),
            "dropped": dict(sorted(self.dropped.items())),
            "faults": dict(sorted(self.faults.items())),
            "listed": list(self.listed),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Read what `to_json` gave.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        return cls(
            documents=int(values["documents"]),
            num_bytes=int(values["num_bytes"]),
            cut_sentences=int(values["cut_sentences"]),
            train=SplitCounts(**_ints(values["train"])),
            eval=SplitCounts(**_ints(values["eval"])),
            dropped=_ints(values["dropped"]),
            faults=_ints(values["faults"]),
            listed=[str(line) for line in values["listed"]],
        )


def _values(counts: SplitCounts) -> dict[str, int]:
    return {name: cast(int, getattr(counts, name)) for name in SplitCounts.__slots__}


def _ints(values: dict[str, Any]) -> dict[str, int]:
    return {str(name): int(value) for name, value in values.items()}
