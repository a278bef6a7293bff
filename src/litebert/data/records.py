"""Records: labelled things that are more than a text or a pair, such as a question with a passage.

Each kind of record has its own frozen class and reader; what they share is here: where a record
came from, what it must not be separated from, and the split into training and evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from litebert.data.rows import SkippedRow
from litebert.errors import DataError, SettingsError

__all__ = ["Record", "RecordSource", "RecordSplit", "split_records"]


class Record(Protocol):
    """What every record says about itself."""

    @property
    def id(self) -> str:
        """Name of the record in its file; not empty, not necessarily unique."""
        ...

    @property
    def group(self) -> str:
        """What the record belongs to (article, document, dialogue): never split in two."""
        ...

    @property
    def path(self) -> Path:
        """File it came from."""
        ...

    @property
    def line(self) -> int:
        """1-based line, or number of the record where lines mean nothing."""
        ...


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class RecordSplit(Generic[R]):
    """The records of one file or folder.

    Attributes:
        records: in file order.
        path: the file or folder.
        sha256: hex digest of the bytes that were read, of several files of their digests.
        skipped: records that were left out, each with its reason.
    """

    records: list[R]
    path: Path
    sha256: str = ""
    skipped: tuple[SkippedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordSource(Generic[R]):
    """What a reader found.

    Attributes:
        train: records to train on, or the only ones there are.
        eval: records to choose by, if the source has them.
        test: labelled records to report on, if the source has them.
        notes: what was found and decided, in words.
    """

    train: RecordSplit[R]
    eval: RecordSplit[R] | None = None
    test: RecordSplit[R] | None = None
    notes: tuple[str, ...] = field(default=())


def split_records(records: Sequence[R], eval_fraction: float, seed: int) -> tuple[list[R], list[R]]:
    """Split records by their groups into train and eval, both in the given order.

    Args:
        records: of at least two groups.
        eval_fraction: share of records for eval, in (0, 1); each side gets at least one group.
        seed: non-negative.

    Raises:
        DataError: fewer than two groups.
        SettingsError: `eval_fraction` or `seed` out of range.
    """
    if not 0.0 < eval_fraction < 1.0:
        raise SettingsError(f"eval_fraction is {eval_fraction}; allowed: more than 0, less than 1")
    if seed < 0:
        raise SettingsError(f"seed is {seed}; allowed: 0 and above")
    sizes: dict[str, int] = {}
    for record in records:
        sizes[record.group] = sizes.get(record.group, 0) + 1
    if len(sizes) < 2:
        raise DataError(
            f"{len(records)} records of {len(sizes)} documents cannot be split; give more, or a "
            "file to score on with --eval",
            path=records[0].path if records else None,
        )
    names = sorted(sizes)
    order = np.random.default_rng(np.random.SeedSequence([seed, len(records)])).permutation(
        len(names)
    )
    wanted, taken = eval_fraction * len(records), 0
    chosen: set[str] = set()
    for position in order[:-1].tolist():  # one group always stays in train
        size = sizes[names[position]]
        if chosen and taken + size / 2 > wanted:
            continue
        chosen.add(names[position])
        taken += size
    train = [record for record in records if record.group not in chosen]
    return train, [record for record in records if record.group in chosen]
