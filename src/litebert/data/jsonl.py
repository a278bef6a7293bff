"""JSON lines and JSON documents to records, each with the line it starts in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from litebert.data.rows import BadRows, Row, row_problem, text_problem
from litebert.errors import DataError

_SPACE = " \t\r\n"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object in which a name occurs twice: one of the values would be lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {twice!r:.80} occurs twice in one object; rename one")
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def read_json(
    text: str, bad_rows: BadRows, path: Path, *, lines: bool | None = None
) -> tuple[list[str], list[Row]]:
    """Read JSON lines, a list of objects, or an object of objects or of columns.

    Args:
        text: decoded content.
        bad_rows: receives every record that cannot be used.
        path: file to name in rows and errors.
        lines: True for JSON lines, False for one document, None to find out.

    Returns:
        Column names in order of first appearance, and rows; absent keys are None.

    Raises:
        DataError: not JSON, no records, or a bad row under the policy "error".
    """
    body = text.lstrip(_SPACE)
    if lines is None:
        lines = body.startswith("{") and _first_line_is_object(body)
    if lines:
        pairs = _read_lines(text, bad_rows)
    elif body.startswith("["):
        pairs = _read_list(text, bad_rows, path)
    else:
        pairs = _read_object(text, path)
    columns: dict[str, None] = {}
    found: list[tuple[int, dict[str, Any]]] = []
    for line, value in pairs:
        if not isinstance(value, dict):
            bad_rows.add(line, f"the record is a {_kind(value)}, not an object with named values")
            continue
        record = cast(dict[str, Any], value)
        if not record:
            bad_rows.add(line, "the record is an object without any value")
            continue
        problem = row_problem(record) or _name_problem(record)
        if problem is not None:
            bad_rows.add(line, problem[1], column=problem[0])
            continue
        found.append((line, record))
        columns.update(dict.fromkeys(record))
    rows = [Row({name: record.get(name) for name in columns}, path, n) for n, record in found]
    return list(columns), rows


def parse_json(text: str, path: Path, *, line: int = 1) -> Any:
    """Parse one JSON document, turning every fault of the parser into a DataError.

    Raises:
        DataError: not JSON, nested too deeply, or a number of absurd length.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise DataError(_explain(error), path=path, line=line + error.lineno - 1) from error
    except (RecursionError, ValueError) as error:
        raise DataError(_explain(error), path=path, line=line) from error


def _read_lines(text: str, bad_rows: BadRows) -> Iterator[tuple[int, Any]]:
    newline = "\n" if "\n" in text else "\r"
    for number, line in enumerate(text.split(newline), start=1):
        if not line.strip(_SPACE):
            continue
        try:
            value = json.loads(line, object_pairs_hook=_unique)
        except (RecursionError, ValueError) as error:
            bad_rows.add(number, _explain(error))
            continue
        yield number, value


def _read_list(text: str, bad_rows: BadRows, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the items of a top-level list one by one, to know the line of each."""
    position = _skip_space(text, 0) + 1
    line, counted = 1, 0
    while True:
        position = _skip_space(text, position)
        line += text.count("\n", counted, position)
        counted = position
        if text.startswith("]", position):
            break
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (RecursionError, ValueError) as error:
            raise DataError(_explain(error), path=path, line=_error_line(error, line)) from error
        yield line, value
        position = _skip_space(text, position)
        if text.startswith(",", position):
            position += 1
        elif not text.startswith("]", position):
            raise DataError(
                "the list has no ',' or ']' after this record; the file is cut short or not JSON",
                path=path,
                line=line,
            )
    rest = _skip_space(text, position + 1)
    if rest < len(text):
        bad_rows.add(line + text.count("\n", counted, rest), "text after the end of the JSON list")


def _read_object(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    value = parse_json(text, path)
    if not isinstance(value, dict):
        raise DataError(
            f"the document is a {_kind(value)}; allowed: a list of objects, or JSON lines",
            path=path,
            line=1,
        )
    document = cast(dict[str, Any], value)
    items = list(document.values())
    lists = [item for item in items if isinstance(item, list)]
    if items and all(isinstance(item, dict) for item in items):
        yield from enumerate(items, start=1)
    elif len(items) > 1 and len(lists) == len(items) and len({len(x) for x in lists}) == 1:
        for number, cells in enumerate(zip(*lists, strict=True), start=1):
            yield number, dict(zip(document, cells, strict=True))
    elif len(lists) == 1 and all(isinstance(item, dict) for item in lists[0]):
        yield from enumerate(cast(list[Any], lists[0]), start=1)
    else:
        raise DataError(
            f"the object with the keys {', '.join(list(document)[:5])!r} is not a table; allowed: "
            "a list of objects, JSON lines, an object of objects, or an object of equal columns",
            path=path,
            line=1,
        )


def _name_problem(record: dict[str, Any]) -> tuple[str, str] | None:
    for name in record:
        reason = text_problem(name)
        if reason is not None:
            return ascii(name), f"in the name: {reason}"
    return None


def _first_line_is_object(body: str) -> bool:
    first, _, rest = body.partition("\n")
    try:
        return isinstance(json.loads(first), dict) and (
            bool(rest.strip(_SPACE)) or not _holds_records(json.loads(first))
        )
    except RecursionError:
        return True
    except ValueError:
        # Broken first record of many, or the first line of one indented document.
        return first.rstrip(_SPACE) not in ("{", "") and rest.lstrip(_SPACE).startswith("{")


def _holds_records(value: dict[str, Any]) -> bool:
    items = list(value.values())
    return bool(items) and all(isinstance(item, dict | list) for item in items)


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _explain(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "JSON nested too deeply; a record is a flat object of names and values"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} (character {error.colno} of the line)"
    return f"not usable JSON: {error}"


def _error_line(error: Exception, line: int) -> int:
    return error.lineno if isinstance(error, json.JSONDecodeError) else line


def _kind(value: Any) -> str:
    names = {str: "string", list: "list", bool: "true/false", type(None): "null", dict: "object"}
    return names.get(type(value), "number")
