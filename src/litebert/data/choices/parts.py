"""The parts of a data set (train, eval, test) to one `RecordSource`, missing answers looked after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from litebert.data.choices.record import ChoiceRecord
from litebert.data.records import RecordSource, RecordSplit
from litebert.data.rows import BadRows
from litebert.errors import DataError

__all__ = ["PARTS", "Part", "close_part", "make_source", "promote"]

PARTS: Final = ("train", "eval", "test")
F = TypeVar("F")
Part = RecordSplit[ChoiceRecord]


def promote(files: Mapping[str, F]) -> tuple[dict[str, F], tuple[str, ...]]:
    """Return the files by part, with the first one as `train` where there is no such part.

    Args:
        files: part -> files; at least one.

    Returns:
        The parts in order, and a note about what was promoted.
    """
    known = {part: files[part] for part in PARTS if part in files}
    if "train" in known or len(known) < 1:
        return known, ()
    first = next(iter(known))
    rest = {part: value for part, value in known.items() if part != first}
    note = f"there is no train part, so the {first} part takes its place"
    return {"train": known[first]} | rest, (note,)


def close_part(
    part: str,
    records: list[ChoiceRecord],
    bad_rows: BadRows,
    *,
    sha256: str = "",
    labelled: bool,
) -> Part | None:
    """Return a part after its questions without an answer have been looked at.

    Args:
        part: train, eval or test.
        records: what was read.
        bad_rows: told about questions without an answer, where answers are needed.
        sha256: of the file, or of all that were read.
        labelled: whether answers are needed.

    Returns:
        None for a test part without any answer: public test sets often hide them.

    Raises:
        DataError: no usable questions, or one without an answer under the policy "error".
    """
    if labelled and records:
        open_ones = [record for record in records if record.label is None]
        if part == "test" and len(open_ones) == len(records):
            return None
        for record in open_ones:
            bad_rows.add(record.line, "the question has no answer; give one", path=record.path)
        records = [record for record in records if record.label is not None]
    if not records:
        first = f"; the first: {bad_rows.skipped[0].reason}" if bad_rows.skipped else ""
        raise DataError(
            f"no usable questions ({len(bad_rows.skipped):,} left out{first}); give a file with "
            "questions, choices" + (" and answers" if labelled else ""),
            path=bad_rows.path,
        )
    return RecordSplit(records, bad_rows.path, sha256, tuple(bad_rows.skipped))


def make_source(
    files: Mapping[str, F], read: Callable[[str, F], Part | None], notes: tuple[str, ...] = ()
) -> RecordSource[ChoiceRecord]:
    """Read the parts there are.

    Args:
        files: part -> what `read` takes; at least one.
        read: returns a part, or None for one without answers.
        notes: what is known already.

    Raises:
        DataError: as `read`.
    """
    chosen, promoted = promote(files)
    parts = {part: read(part, file) for part, file in chosen.items()}
    hidden = tuple(
        f"the {part} part has no answers and is left out"
        for part, split in parts.items()
        if split is None
    )
    train = parts["train"]
    assert train is not None  # noqa: S101 - only a test part may be None
    return RecordSource(train, parts.get("eval"), parts.get("test"), (*notes, *promoted, *hidden))
