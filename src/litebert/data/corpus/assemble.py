"""Lines to documents: where one ends, and how one that is too long is cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from litebert.data.corpus.decoding import Line
from litebert.data.corpus.faults import Reporter
from litebert.data.corpus.options import DocumentRule

__all__ = ["Piece", "assemble", "cut_text", "wiki_heading"]

Piece = tuple[str, int]
"""Text of a document and the 1-based line it starts in."""


def wiki_heading(line: str) -> tuple[int, str] | None:
    """Return level and words of a heading of WikiText (` = Title = ` is 1), None for other lines."""
    text = line.strip()
    if not (text.startswith("= ") and text.endswith(" =")):
        return None
    words = text.strip("= ")
    left = text[: len(text) - len(text.lstrip("= "))].count("=")
    right = text[len(text.rstrip("= ")) :].count("=")
    return (left, words) if words and left == right else None


def assemble(
    lines: Iterable[Line], rule: DocumentRule, max_chars: int, report: Reporter
) -> Iterator[Piece]:
    """Yield documents; blank lines inside are kept as one empty line, those around are dropped.

    Args:
        lines: lines in order.
        rule: where a document ends; "auto" means "file" here.
        max_chars: a longer document is cut.
        report: told about cuts.
    """
    texts: list[str] = []
    numbers: list[int] = []
    size = 0
    for number, line, goes_on in lines:
        line = line.rstrip()
        if rule == "line":
            if line:
                if goes_on:
                    _report_cut(report, number, max_chars)
                yield line, number
            continue
        heading = wiki_heading(line) if rule == "wikitext" else None
        if heading is not None and heading[0] == 1 and texts:
            yield "\n".join(texts).rstrip("\n"), numbers[0]
            texts, numbers, size = [], [], 0
        if line:
            texts.append(line if heading is None else heading[1])
            numbers.append(number)
            size += len(line) + 1
            if size > max_chars:
                _report_cut(report, number, max_chars)
                at = _place_to_cut(texts, size)
                yield "\n".join(texts[:at]).rstrip("\n"), numbers[0]
                texts, numbers = _without_blank_head(texts[at:], numbers[at:])
                size = sum(len(text) + 1 for text in texts)
        elif rule == "blank-line":
            if texts:
                yield "\n".join(texts), numbers[0]
                texts, numbers, size = [], [], 0
        elif texts and texts[-1]:
            texts.append("")
            numbers.append(number)
            size += 1
    if texts:
        yield "\n".join(texts).rstrip("\n"), numbers[0]


def cut_text(text: str, max_chars: int, report: Reporter, line: int) -> Iterator[Piece]:
    """Yield a text that came whole, in parts of at most `max_chars` if it is longer."""
    while len(text) > max_chars:
        _report_cut(report, line, max_chars)
        at = max_chars
        for mark in ("\n\n", "\n", " "):
            found = text.rfind(mark, max_chars // 2, max_chars)
            if found > 0:
                at = found
                break
        yield text[:at].rstrip(), line
        text = text[at:].lstrip()
    yield text, line


def _place_to_cut(texts: list[str], size: int) -> int:
    """Return the index to cut before: the last empty line of the second half, or the last line."""
    after = 0
    for at in range(len(texts) - 1, 0, -1):
        after += len(texts[at]) + 1
        if 2 * after > size:
            break
        if not texts[at]:
            return at
    return max(len(texts) - 1, 1)


def _without_blank_head(texts: list[str], numbers: list[int]) -> tuple[list[str], list[int]]:
    while texts and not texts[0]:
        texts, numbers = texts[1:], numbers[1:]
    return texts, numbers


def _report_cut(report: Reporter, line: int, max_chars: int) -> None:
    report.drop(
        "cut",
        f"a document is longer than {max_chars:,} characters and goes on as the next one; nothing "
        "is lost",
        line=line,
    )
