"""CoNLL column files: one word a line with its tag, blank lines between sentences.

The first column is the word and the last one the tag; what stands between is passed over. Columns
are parted by tabs if most lines have a tab, else by blanks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from litebert.data.rows import BadRows
from litebert.data.tagged.sentences import WordSentence
from litebert.errors import DataError

__all__ = ["has_columns", "read_columns"]

DOCUMENT_START: Final = "-DOCSTART-"
_BLANKS = re.compile(r"[ \t]+")
_TAG = re.compile(r"O|[BIESLUM]([-_].+)?", re.DOTALL | re.IGNORECASE)


@dataclass(slots=True)
class _Block:
    """Lines of one sentence."""

    document: int | None
    rows: list[list[str]] = field(default_factory=list[list[str]])
    lines: list[int] = field(default_factory=list[int])
    fault: tuple[int, str] | None = None


def has_columns(lines: Sequence[str]) -> bool:
    """Tell a file of columns from a file of one text a line, both without need of tags.

    Columns are lines with tabs whose first cell is one word and whose last is a tag, lines that all
    end in a tag, or single words between blank lines.
    """
    rows = [_cells(line, has_tabs=False) for line in lines]
    filled = [row for row in rows if row and not row[0].startswith(("#", DOCUMENT_START))]
    if not filled:  # nothing, or lines that all begin with a hash, as messages may
        return not any(row and row[0].startswith("#") for row in rows)
    tabbed = [_cells(line, has_tabs=True) for line in lines if "\t" in line and line.strip()]
    if 2 * len(tabbed) >= len(filled):
        # A text with a tab in it would lose all that stands behind its first word.
        return 2 * sum(map(_is_word_with_tag, tabbed)) > len(tabbed)
    if all(len(row) == 1 for row in filled):
        return any(not row for row in rows[:-1])
    return all(len(row) > 1 and _TAG.fullmatch(row[-1]) for row in filled)


def _is_word_with_tag(cells: list[str]) -> bool:
    word, tag = cells[0], cells[-1]
    return not _BLANKS.search(word) and (not _BLANKS.search(tag) or bool(_TAG.fullmatch(tag)))


def read_columns(
    lines: Sequence[str], bad_rows: BadRows, path: Path, *, labelled: bool
) -> tuple[list[WordSentence], list[str]]:
    """Return the sentences of a column file, and what was found out about it.

    Lines that begin with `-DOCSTART-` are borders of documents. A line that begins with `#` at the
    beginning of a sentence is a comment unless it is a word with a tag like the others.

    Args:
        lines: without line ends.
        bad_rows: receives sentences that cannot be used.
        path: their file.
        labelled: a file of one column is a fault.

    Raises:
        DataError: no words, no tags, or a bad sentence under the policy "error".
    """
    filled = [line for line in lines if line.strip()]
    if not filled:
        raise DataError(
            "there is no word in this file; give one word and its tag on each line", path=path
        )
    has_tabs = 2 * sum("\t" in line for line in filled) >= len(filled)
    rows = [_cells(line, has_tabs) for line in lines]
    width = Counter(
        len(row) for row in rows if row and not row[0].startswith(DOCUMENT_START)
    ).most_common(1)
    columns = width[0][0] if width else 1
    if columns == 1 and labelled:
        first = next(number for number, line in enumerate(lines, 1) if line.strip())
        raise DataError(
            f"the lines have one column ({filled[0]!r:.60}); a word and its tag are needed, parted "
            "by a blank or a tab",
            path=path,
            line=first,
        )
    known = {row[-1] for row in rows if row and not row[0].startswith("#")}
    comments: list[int] = []
    sentences: list[WordSentence] = []
    for block in _blocks(rows, lines, columns, known, comments):
        if block.fault is not None:
            bad_rows.add(*block.fault)
        else:
            sentences.append(
                WordSentence(
                    words=[row[0] for row in block.rows],
                    tags=[row[-1] for row in block.rows] if columns > 1 else None,
                    lines=block.lines,
                    document=block.document,
                )
            )
    documents = {sentence.document for sentence in sentences}
    if documents != {None}:
        # One document for all says nothing; what stands before the first border is a document too.
        has_many = len(documents) > 1
        sentences = [
            replace(s, document=(s.document or 0) if has_many else None) for s in sentences
        ]
    notes = [
        f"{path.name}: {columns} column{'s' * (columns > 1)} parted by "
        f"{'tabs' if has_tabs else 'blanks'}"
        + (", the last is the tag" if columns > 2 else "")
        + (f"; {len(documents):,} documents" if len(documents) > 1 else "")
    ]
    if comments:
        notes.append(f"{path.name}: {len(comments):,} comment lines, first line {comments[0]}")
    return sentences, notes


def _cells(line: str, has_tabs: bool) -> list[str]:
    """Return the cells of a line; none for a blank line."""
    if not line.strip():
        return []
    if has_tabs:
        return [cell.strip(" ") for cell in line.rstrip("\t ").split("\t")]
    return _BLANKS.split(line.strip(" \t"))


def _blocks(
    rows: Sequence[list[str]],
    lines: Sequence[str],
    columns: int,
    known: set[str],
    comments: list[int],
) -> Iterator[_Block]:
    document: int | None = None
    block = _Block(document)
    for number, row in enumerate(rows, start=1):
        is_border = bool(row) and row[0].startswith(DOCUMENT_START)
        if row and not is_border:
            if not block.rows and block.fault is None and _is_comment(row, columns, known):
                comments.append(number)
                continue
            _add(block, row, number, columns, lines[number - 1])
            continue
        if block.rows or block.fault:
            yield block
        if is_border:
            document = 1 if document is None else document + 1
        block = _Block(document)
    if block.rows or block.fault:
        yield block


def _is_comment(row: list[str], columns: int, known: set[str]) -> bool:
    """Tell a comment from a word such as `#` by the columns and the tag of the line."""
    return row[0].startswith("#") and (
        len(row) != columns or (columns > 1 and row[-1] not in known)
    )


def _add(block: _Block, row: list[str], number: int, columns: int, line: str) -> None:
    if block.fault is None and len(row) != columns:
        block.fault = (
            number,
            f"the line {line!r:.60} has {len(row)} columns, most lines of this file have {columns}; "
            "correct it, and put one blank line between sentences",
        )
    elif block.fault is None and not row[0]:
        block.fault = (number, "the first column, the word, is empty; fill it or remove the line")
    block.rows.append(row)
    block.lines.append(number)
