"""Documents from JSON lines and from JSON documents: the strings under one name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from litebert.data.corpus.assemble import Piece, cut_text
from litebert.data.corpus.decoding import Line
from litebert.data.corpus.faults import Reporter
from litebert.data.corpus.markup import without_html

__all__ = ["MAX_JSON_CHARS", "json_documents", "json_line_documents"]

MAX_JSON_CHARS: Final = 32_000_000
"""Longest JSON document or line in characters: it must be held whole, several times over."""
_MAX_NAMES: Final = 12


def json_line_documents(
    lines: Iterable[Line], field: str, max_chars: int, report: Reporter
) -> Iterator[Piece]:
    """Yield the text of each line's object.

    Args:
        lines: lines of at most `MAX_JSON_CHARS`.
        field: name of the text.
        max_chars: a longer text is cut.
        report: told about records without a text.

    Raises:
        DataError: a line that is no object with this text, under the policy "error".
    """
    is_rest = False
    for number, line, goes_on in lines:
        was_rest, is_rest = is_rest, goes_on
        if was_rest or not line.strip():
            continue
        if goes_on:
            report.fail(
                "bad record",
                f"a record of more than {MAX_JSON_CHARS:,} characters; split the text",
                line=number,
            )
            yield "", number
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            report.fail("bad record", f"not JSON: {error}"[:300], line=number)
            yield "", number
            continue
        text = _text_of(value, field, report, number)
        yield from ((("", number),) if text is None else cut_text(text, max_chars, report, number))


def json_documents(text: str, field: str, max_chars: int, report: Reporter) -> Iterator[Piece]:
    """Yield one document for an object, or one for each item of a list.

    All strings under `field`, at any depth, are joined with an empty line between, HTML tags
    taken out.

    Raises:
        DataError: not JSON, or no such strings, under the policy "error".
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "; JSON lines? Name the file .jsonl" if "Extra data" in str(error) else ""
        report.fail("bad record", f"not JSON: {error}"[:300] + hint, line=1)
        return
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    for number, item in enumerate(items, start=1):
        found = list(_strings_under(item, field))
        if not found:
            report.fail("no text field", _no_field(field, _names_of_text(item)), line=number)
            yield "", number
            continue
        joined = "\n\n".join(clean for clean in map(_clean, found) if clean)
        yield from cut_text(joined, max_chars, report, number)


def _clean(text: str) -> str:
    return without_html(text.replace("\r\n", "\n").replace("\r", "\n"))


def _text_of(value: Any, field: str, report: Reporter, number: int) -> str | None:
    if not isinstance(value, dict):
        report.fail("bad record", f"a {type(value).__name__}, expected an object", line=number)
        return None
    record = cast(dict[str, Any], value)
    found = record.get(field)
    if isinstance(found, list):
        parts = cast(list[Any], found)
        if all(isinstance(part, str) for part in parts):
            found = "\n".join(parts)
    if found is None and field in record:
        found = ""
    if not isinstance(found, str):
        names = [str(name) for name, item in record.items() if isinstance(item, str)]
        report.fail("no text field", _no_field(field, names), line=number)
        return None
    return found.replace("\r\n", "\n").replace("\r", "\n")


def _no_field(field: str, names: list[str]) -> str:
    there = ", ".join(repr(name[:40]) for name in names[:_MAX_NAMES]) or "none"
    return (
        f"no text named {field!r}; names with text there are: {there}. Tell one with --text-field"
    )


def _strings_under(value: Any, field: str) -> Iterator[str]:
    """Yield strings in document order, without recursion."""
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, is_wanted = stack.pop()
        if isinstance(item, str):
            if is_wanted:
                yield item
        elif isinstance(item, dict):
            pairs = list(cast(dict[str, Any], item).items())
            stack.extend((inner, name == field) for name, inner in reversed(pairs))
        elif isinstance(item, list):
            stack.extend((inner, is_wanted) for inner in reversed(cast(list[Any], item)))


def _names_of_text(value: Any) -> list[str]:
    names: dict[str, None] = {}
    stack = [value]
    while stack and len(names) < _MAX_NAMES:
        item = stack.pop()
        if isinstance(item, dict):
            for name, inner in cast(dict[str, Any], item).items():
                if isinstance(inner, str):
                    names[name] = None
                else:
                    stack.append(inner)
        elif isinstance(item, list):
            stack.extend(cast(list[Any], item))
    return list(names)
