"""Texts to compare: pairs with a score, or an anchor with its positive and its negatives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from litebert.data.header import ID_NAMES, PAIR_NAMES, plain_name
from litebert.data.labels import label_number
from litebert.data.readers import ReadOptions, Source
from litebert.data.records import RecordSource, RecordSplit
from litebert.data.rows import BadRows, Row, row_names
from litebert.data.sources import READERS, load_source
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

__all__ = ["SimilarColumns", "SimilarRecord", "read_named_pairs", "read_similar", "similar_columns"]

_ANCHORS: Final = ("anchor", "query", "question", "sentence", "text", "sentence1", "text1")
_POSITIVES: Final = ("positive", "positives", "pos")
_NEGATIVE: Final = re.compile(r"(hard)?(neg|negative)s?\d*")
_PAIRS: Final = (
    *PAIR_NAMES, ("anchor", "positive"), ("query", "document"), ("query", "answer"),
    ("query", "text"), ("question", "answer"), ("question", "context"), ("question", "passage"),
    ("sourcesentence", "targetsentence"),
)  # fmt: skip
_SCORES: Final = (
    "score", "similarity", "similarityscore", "relatedness", "relatednessscore", "goldscore",
    "label", "goldlabel", "isduplicate", "quality", "target", "y",
)  # fmt: skip
_BARE: Final = re.compile(r"column_\d+")


@dataclass(frozen=True, slots=True)
class SimilarRecord:
    """Texts that belong together, or not.

    Attributes:
        id: value of the id column, or the line.
        group: the first text; its records stay on one side of a split.
        path: file it came from.
        line: 1-based line.
        texts: the two of a scored pair; or anchor, positive, and any number of negatives.
        score: similarity in the units of the file; None for anchors, and for unlabelled pairs.
    """

    id: str
    group: str
    path: Path
    line: int
    texts: tuple[str, ...]
    score: float | None = None

    @property
    def anchor(self) -> str:
        """The first text."""
        return self.texts[0]

    @property
    def positive(self) -> str:
        """The second text."""
        return self.texts[1]

    @property
    def negatives(self) -> tuple[str, ...]:
        """Texts that look alike and are none."""
        return self.texts[2:]


@dataclass(frozen=True, slots=True)
class SimilarColumns:
    """Which columns hold what.

    Attributes:
        anchor: the first text.
        positives: the second text; a cell may be a list of several.
        negatives: further texts; a cell may be a list or empty.
        score: number, or None for anchors with positives.
        reason: how they were found.
    """

    anchor: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...] = ()
    score: str | None = None
    reason: str = ""


def similar_columns(table: Table) -> SimilarColumns:
    """Find the columns of a table by their names.

    Raises:
        DataError: no two columns of texts that belong together.
    """
    plain = {plain_name(column): column for column in reversed(table.columns)}
    negatives = tuple(c for c in table.columns if _NEGATIVE.fullmatch(plain_name(c)))
    positives = tuple(c for c in table.columns if plain_name(c) in _POSITIVES)
    anchor = next((plain[name] for name in _ANCHORS if name in plain), None)
    if positives and anchor is not None:
        return _described(anchor, positives, negatives, None)
    score = next((plain[name] for name in _SCORES if name in plain), None)
    for first, second in _PAIRS:
        if first in plain and second in plain:
            return _described(plain[first], (plain[second],), negatives, score)
    if 2 <= len(table.columns) <= 3 and all(map(_BARE.fullmatch, table.columns)):
        rest = table.columns[2:]
        is_score = bool(rest) and all(
            label_number(row.values[rest[0]]) is not None for row in table.rows
        )
        return _described(
            table.columns[0],
            (table.columns[1],),
            () if is_score else tuple(rest),
            rest[0] if is_score else None,
        )
    raise DataError(
        f"found the columns {', '.join(map(repr, table.columns[:12]))}; expected sentence1, "
        "sentence2 and score, or anchor and positive (and negative); rename them",
        path=table.path,
        line=1,
    )


def read_similar(path: Path, options: ReadOptions, labelled: bool) -> RecordSource[SimilarRecord]:
    """Read a table, or a folder with files named train, dev and test.

    Raises:
        DataError: the file, its columns or a record cannot be used.
        SettingsError: a told column that is not there, or one text column only.
    """
    source = load_source(
        path,
        format=options.format,
        encoding=options.encoding,
        delimiter=options.delimiter,
        header=options.header,
        quoting=options.quoting,
        on_bad_row=options.on_bad_row,
    )
    columns = _told(source.train, options, labelled) or similar_columns(source.train)
    return _records_of(source, columns, options, labelled)


def read_named_pairs(
    path: Path, options: ReadOptions, labelled: bool, *, name: str
) -> RecordSource[SimilarRecord]:
    """Read scored pairs with the reader of a public data set, such as `glue/stsb`.

    Raises:
        DataError: as that reader; no scores where they are needed.
    """
    if not path.exists():
        raise DataError("no such file or folder; check the path", path=path)
    source = READERS.get(name)(path, options)
    texts, score = source.text_columns, source.label_column
    if texts is None or len(texts) != 2:
        raise DataError(f"{name} has no pairs of texts; name another task", path=path)
    columns = SimilarColumns(texts[0], (texts[1],), (), score, f"the layout of {name}")
    return _records_of(source, columns, options, labelled)


def _told(table: Table, options: ReadOptions, labelled: bool) -> SimilarColumns | None:
    """Return the columns that the options name, None where they name none.

    Raises:
        SettingsError: not two text columns, or a column that is not there.
    """
    named = options.columns.within(table, labelled=labelled)
    if not named:
        return None
    if len(named.text) != 2 or named.text[0] == named.text[1] or named.choices:
        raise SettingsError(
            "a table of texts to compare needs two different text columns (and perhaps a label column "
            f"with scores); got {', '.join(map(repr, named.text)) or 'none'}"
            + (", and columns of choices" if named.choices else "")
        )
    return _described(named.text[0], (named.text[1],), (), named.label)


def _described(
    anchor: str, positives: tuple[str, ...], negatives: tuple[str, ...], score: str | None
) -> SimilarColumns:
    if score is not None:
        how = f"pairs of {anchor!r} and {positives[0]!r} with the score {score!r}"
    else:
        extra = f", not with {', '.join(map(repr, negatives))}" if negatives else ""
        how = f"{anchor!r} belongs with {', '.join(map(repr, positives))}{extra}"
    return SimilarColumns(anchor, positives, negatives if score is None else (), score, how)


def _records_of(
    source: Source, columns: SimilarColumns, options: ReadOptions, labelled: bool
) -> RecordSource[SimilarRecord]:
    notes = [*source.reasons, columns.reason]
    if columns.score is not None and columns.score not in source.train.columns and labelled:
        raise DataError(
            f"there is no column {columns.score!r} with scores, so nothing can be learnt or "
            f"scored; there is {', '.join(source.train.columns)[:200]}",
            path=source.train.path,
            line=1,
        )
    splits: list[RecordSplit[SimilarRecord] | None] = []
    for table in (source.train, source.eval, source.test):
        if table is None:
            splits.append(None)
        elif labelled and columns.score is not None and columns.score not in table.columns:
            splits.append(None)
            notes.append(f"{table.path.name} has no scores and is left out")
        else:
            splits.append(_split_of(table, columns, options, labelled))
    train = splits[0]
    assert train is not None  # noqa: S101 - there is always a first table, and it has scores
    return RecordSource(train, splits[1], splits[2], tuple(notes))


def _split_of(
    table: Table, columns: SimilarColumns, options: ReadOptions, labelled: bool
) -> RecordSplit[SimilarRecord]:
    for name in (columns.anchor, *columns.positives):
        if name not in table.columns:
            raise DataError(
                f"there is no column {name!r}, which the first file has; it has "
                f"{', '.join(table.columns)[:200]}",
                path=table.path,
                line=1,
            )
    bad_rows = BadRows(table.path, options.on_bad_row)
    id_column = next((c for c in table.columns if plain_name(c) in ID_NAMES), None)
    records: list[SimilarRecord] = []
    for row, place in zip(table.rows, row_names(table.rows), strict=True):
        found = row.values.get(id_column) if id_column else None
        name = str(found).strip() if isinstance(found, str | int) else ""
        try:
            records.extend(_row_records(row, columns, name or place, labelled))
        except _Unusable as fault:
            bad_rows.add(row.line, fault.reason, column=fault.column, path=row.path)
    if not records:
        first = f"; the first: {bad_rows.skipped[0].reason}" if bad_rows.skipped else ""
        raise DataError(f"there is no usable record{first}", path=table.path)
    skipped = (*table.skipped, *bad_rows.skipped)
    return RecordSplit(records, table.path, table.sha256, tuple(skipped))


class _Unusable(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, reason: str, column: str) -> None:
        super().__init__(reason)
        self.reason, self.column = reason, column


def _row_records(
    row: Row, columns: SimilarColumns, name: str, labelled: bool
) -> Iterator[SimilarRecord]:
    """Yield one record for each positive."""
    anchor = next(iter(_texts(row, columns.anchor, most=1)), None)
    if anchor is None:
        raise _Unusable("the text is empty; fill it in or remove the row", columns.anchor)
    positives = [text for column in columns.positives for text in _texts(row, column)]
    if not positives:
        raise _Unusable(
            "there is no second text; fill it in or remove the row", columns.positives[0]
        )
    negatives = [text for column in columns.negatives for text in _texts(row, column)]
    both = next((text for text in negatives if text in positives), None)
    if both is not None:
        raise _Unusable(
            f"{both!r:.60} is the positive and a negative too; keep one of them",
            columns.negatives[0],
        )
    score = _score(row, columns.score, labelled)
    for number, positive in enumerate(positives):
        yield SimilarRecord(
            id=name if len(positives) == 1 else f"{name}-{number + 1}",
            group=anchor,
            path=row.path,
            line=row.line,
            texts=(anchor, positive, *negatives),
            score=score,
        )


def _texts(row: Row, column: str, *, most: int | None = None) -> Iterator[str]:
    """Yield the texts of a cell: none of an empty one, several of a list."""
    value: Any = row.values.get(column)
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    if most is not None and len(items) > most:
        raise _Unusable(f"a list of {len(items)} values, expected one text", column)
    for item in items:
        if isinstance(item, bool | dict | list):
            raise _Unusable(f"got {item!r:.60}, expected a text", column)
        text = "" if item is None else str(item)
        if text.strip():
            yield text


def _score(row: Row, column: str | None, labelled: bool) -> float | None:
    if column is None:
        return None
    value = row.values.get(column)
    number = label_number(value)
    if number is None and labelled:
        raise _Unusable(f"got {value!r:.60}, a similarity is a finite number", column)
    return number
