"""Column names: known synonyms, whether a first record is a header, and names for the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from litebert.errors import DataError

PAIR_NAMES = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("1string", "2string"),
    ("texta", "textb"),
    ("text1", "text2"),
    ("sentencea", "sentenceb"),
    ("question", "sentence"),
    ("query", "passage"),
    ("title", "text"),
    ("title", "description"),
    ("title", "body"),
    ("title", "content"),
    ("title", "review"),
    ("subject", "body"),
)
"""Two text columns that belong together, in order of preference (names as `plain_name` gives)."""
TEXT_NAMES = (
    "text", "sentence", "review", "content", "body", "utterance", "message", "comment",
    "commenttext", "reviewtext", "reviewbody", "tweet", "post", "query", "question", "phrase",
    "document", "description", "headline", "title", "input", "texts", "sentences",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "intent", "sentiment", "y",
    "goldlabel", "topic", "emotion", "tag", "tags", "score", "rating", "stars", "quality", "isduplicate",
    "similarity", "output", "classes", "categories", "polarity", "coarselabel",
)  # fmt: skip
ID_NAMES = frozenset(
    ("id", "idx", "index", "uid", "uuid", "guid", "pairid", "rowid", "unnamed0", "1id", "2id",
     "qid", "qid1", "qid2", "promptid", "sentencepairid", "timestamp", "date", "url", "user")
)  # fmt: skip
_KNOWN = frozenset((*TEXT_NAMES, *LABEL_NAMES, *ID_NAMES, *(n for p in PAIR_NAMES for n in p)))
_NAME = re.compile(r"[^\W\d][\w .#/()-]{0,39}")
_MAX_NAME_CHARS = 64


def plain_name(column: str) -> str:
    """Return a column name in lower case with letters and digits only."""
    return re.sub(r"[\W_]+", "", column).lower()


def has_header(sample: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first of some records names columns.

    A known name (text, label, sentence1, ...) decides for a header; a number, an empty or a long
    first cell decides against; else a first cell that occurs again in a column that repeats
    values decides against, and names that look like identifiers decide for.
    """
    first = [cell.strip() for cell in sample[0]]
    body = [record for record in sample[1:] if len(record) == len(first)]
    known = sum(plain_name(cell) in _KNOWN for cell in first)
    if any(len(cell) > _MAX_NAME_CHARS for cell in first):
        return False
    if known and (known > 1 or len(first) <= 2 or not any(map(_is_number, first))):
        return not _repeats(first, body, ignore_known=False) or known > 1
    if any(_is_number(cell) for cell in first) or not any(first):
        return False
    if _repeats(first, body, ignore_known=True):
        return False
    return all(not cell or (_NAME.fullmatch(cell) and cell.count(" ") < 3) for cell in first)


def name_columns(header: Sequence[str], path: Path, line: int) -> list[str]:
    """Return stripped names, `column_N` for blank ones.

    Raises:
        DataError: two columns have one name.
    """
    names = [cell.strip() or f"column_{i + 1}" for i, cell in enumerate(header)]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise DataError(
                f"the header has this name twice (cells {names.index(name) + 1} and {index + 1}); "
                "rename one of them",
                path=path,
                line=line,
                column=name,
            )
        if "\x00" in name or any(0xD800 <= ord(c) <= 0xDFFF for c in name):
            raise DataError(
                f"header cell {index + 1} holds a NUL or an undecodable byte; fix the first line",
                path=path,
                line=line,
            )
    return names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.lower() not in ("nan", "inf", "infinity")


def _repeats(first: Sequence[str], body: Sequence[Sequence[str]], *, ignore_known: bool) -> bool:
    """Tell whether a first cell is an ordinary value of a column that repeats values."""
    for index, cell in enumerate(first):
        values = [record[index].strip() for record in body]
        known = ignore_known and plain_name(cell) in _KNOWN
        if not known and cell and cell in values and len(set(values)) < len(values):
            return True
    return False
