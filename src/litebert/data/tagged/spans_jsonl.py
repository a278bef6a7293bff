"""JSON objects with a text and its spans: JSON lines of any tool, doccano, and words with tags.

| what | names |
|---|---|
| text | `text`, `data`, `sentence`, `content` |
| spans | `spans`, `entities`, `label`, `labels`, `annotations`: `[start, end, label]` or objects |
| words with tags | `tokens` or `words`, with `ner_tags`, `tags` or `labels` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from litebert.data.labels import label_text
from litebert.data.rows import BadRows, Row, row_names, text_problem
from litebert.data.tagged.offsets import (
    OffsetTally,
    OffsetUnit,
    SpanFaultError,
    check_spans,
    read_span,
)
from litebert.data.tagged.record import TaggedText, split_words
from litebert.data.tagged.sentences import WordSentence, records_of_sentences

__all__ = ["make_record", "read_span_objects"]

_TEXTS: Final = ("text", "data", "sentence", "content")
_SPANS: Final = ("spans", "entities", "label", "labels", "annotations")
_WORDS: Final = ("tokens", "words")
_TAGS: Final = ("ner_tags", "tags", "labels", "ner")
_INTENTS: Final = ("intent", "intent_label")
_GROUPS: Final = ("document", "document_id", "doc_id", "group")
_IDS: Final = ("id", "uid", "guid")


def read_span_objects(
    rows: Sequence[Row],
    bad_rows: BadRows,
    path: Path,
    *,
    labelled: bool,
    unit: OffsetUnit = "code points",
) -> tuple[list[TaggedText], list[str]]:
    """Return the records of JSON objects, and what was found out.

    Args:
        rows: the objects.
        bad_rows: receives what cannot be used.
        path: their file.
        labelled: spans are needed.
        unit: what positions count.

    Raises:
        DataError: a bad record under the policy "error".
    """
    if rows and all(_first_name(row.values, _WORDS) is not None for row in rows):
        return _read_words(rows, bad_rows, path, labelled=labelled)
    tally = OffsetTally()
    records: list[TaggedText] = []
    wide = 0
    for row, place in zip(rows, row_names(rows), strict=True):
        text = _first(row.values, _TEXTS)
        name = _first_name(row.values, _SPANS)
        if not isinstance(text, str) or not text.strip():
            bad_rows.add(row.line, "the record has no text; give one under the name 'text'")
            continue
        if labelled and name is None:
            bad_rows.add(
                row.line,
                "the record has no list of spans; give one under the name 'spans' ([] for none)",
            )
            continue
        try:
            record = make_record(
                text, None if name is None else row.values[name], row.line, path, unit, tally,
                name=_text_of(_first(row.values, _IDS)) or place,
                group=_text_of(_first(row.values, _GROUPS)) or f"record {place}",
                intent=_first(row.values, _INTENTS),
            )  # fmt: skip
        except SpanFaultError as error:
            bad_rows.add(row.line, str(error), column=name)
            continue
        wide += not text.isascii() and max(map(ord, text)) > 0xFFFF
        records.append(record)
    notes = tally.notes(path.name)
    if wide and unit == "code points":
        notes.append(
            f"{path.name}: positions are taken as characters (code points); {wide:,} texts have "
            "emoji or others that a browser counts twice"
        )
    return _own_groups(records), notes


def make_record(
    text: str,
    spans: Any,
    line: int,
    path: Path,
    unit: OffsetUnit,
    tally: OffsetTally,
    *,
    name: Any = None,
    group: Any = None,
    intent: Any = None,
) -> TaggedText:
    """Return the record of one text.

    Args:
        text: not blank.
        spans: list of spans as the file has them; None: not labelled.
        line: line or number of the record.
        path: its file.
        unit: what positions count.
        tally: is told what was mended.
        name: its name in the file, if any.
        group: its document, if known.
        intent: what the text asks for, if known.

    Raises:
        SpanFaultError: a span cannot be used, or there is a fault in the text.
    """
    problem = text_problem(text)
    if problem is not None:
        raise SpanFaultError(problem)
    found = None
    if spans is not None:
        if not isinstance(spans, list | tuple):
            raise SpanFaultError(
                f"spans are a list, got {type(spans).__name__} ({spans!r:.60}); give "
                "[[start, end, label], ...]"
            )
        raw = [read_span(item) for item in cast(Sequence[Any], spans)]
        found = check_spans(text, raw, unit, tally)
    label = label_text(intent) if isinstance(intent, str | int) else ""
    return TaggedText(
        text,
        split_words(text),
        found,
        _text_of(name) or str(line),
        _text_of(group) or f"record {line}",
        path,
        line,
        label or None,
    )


def _own_groups(records: list[TaggedText]) -> list[TaggedText]:
    """Give equal texts one group, so that no split parts them."""
    from dataclasses import replace

    first: dict[str, str] = {}
    result: list[TaggedText] = []
    for record in records:
        group = first.setdefault(record.text, record.group)
        result.append(record if group == record.group else replace(record, group=group))
    return result


def _read_words(
    rows: Sequence[Row], bad_rows: BadRows, path: Path, *, labelled: bool
) -> tuple[list[TaggedText], list[str]]:
    sentences: list[WordSentence] = []
    for row in rows:
        words: Any = _first(row.values, _WORDS)
        name = _first_name(row.values, _TAGS)
        tags: Any = None if name is None else row.values[name]
        if not _is_strings(words) or not words or not all(words):
            bad_rows.add(row.line, "'tokens' is a list of words, none of them empty; correct it")
        elif tags is not None and (not _is_strings(tags) or len(tags) != len(words)):
            bad_rows.add(
                row.line,
                f"the tags must be a list of {len(words)} names such as 'B-PER', one for each "
                "token; numbers say nothing without their names",
                column=name,
            )
        else:
            intent = _first(row.values, _INTENTS)
            sentences.append(
                WordSentence(
                    words, tags, [row.line] * len(words),
                    intent=intent if isinstance(intent, str) else None,
                    id=_text_of(_first(row.values, _IDS)) or None,
                )
            )  # fmt: skip
    return records_of_sentences(sentences, bad_rows, path, labelled=labelled)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast(list[Any], value))


def _text_of(value: Any) -> str:
    return str(value)[:200] if isinstance(value, str | int) else ""


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    name = _first_name(values, names)
    return None if name is None else values[name]


def _first_name(values: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if values.get(name) is not None), None)
