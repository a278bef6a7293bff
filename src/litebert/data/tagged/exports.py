"""Exports of annotation tools that are one JSON document: Label Studio and spaCy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from litebert.data.rows import BadRows
from litebert.data.tagged.offsets import OffsetTally, SpanFaultError
from litebert.data.tagged.record import TaggedText
from litebert.data.tagged.spans_jsonl import make_record

__all__ = ["is_label_studio", "is_spacy", "read_label_studio", "read_spacy"]

_LABEL_TYPES = ("labels", "hypertextlabels")


def is_label_studio(document: Any) -> bool:
    """Tell a Label Studio export: a list of tasks with `data`, and `annotations` or older names."""
    return isinstance(document, list) and any(
        isinstance(task, dict)
        and isinstance(task.get("data"), dict)
        and any(name in task for name in ("annotations", "completions", "predictions"))
        for task in cast(list[Any], document)
    )


def is_spacy(document: Any) -> bool:
    """Tell spaCy training data: pairs of a text and `entities`, or documents with paragraphs."""
    if isinstance(document, Mapping):
        values = cast(Mapping[str, Any], document)
        return isinstance(values.get("annotations"), list) and "text" not in values
    if not isinstance(document, list):
        return False
    return any(
        (isinstance(item, list) and len(item) == 2 and isinstance(item[0], str))
        or (isinstance(item, dict) and isinstance(item.get("paragraphs"), list))
        for item in cast(list[Any], document)
    )


def read_label_studio(
    document: list[Any], bad_rows: BadRows, path: Path, *, labelled: bool
) -> tuple[list[TaggedText], list[str]]:
    """Return the records of a Label Studio JSON export, and what was found out.

    A task that several people annotated gives the work of the first who did not cancel. Positions
    are those of a browser: UTF-16 units. Relations, choices and other results are passed over.

    Raises:
        DataError: a bad task under the policy "error".
    """
    tally = OffsetTally()
    records: list[TaggedText] = []
    for number, task in enumerate(document, start=1):
        try:
            text, spans = _task(task, tally, labelled=labelled)
            name = cast(Mapping[str, Any], task).get("id")
            records.append(make_record(text, spans, number, path, "UTF-16", tally, name=name))
        except SpanFaultError as error:
            bad_rows.add(number, str(error))
    return records, [f"{path.name}: Label Studio, {len(records):,} tasks", *tally.notes(path.name)]


def read_spacy(
    document: Any, bad_rows: BadRows, path: Path, *, labelled: bool
) -> tuple[list[TaggedText], list[str]]:
    """Return the records of spaCy training data in JSON, and what was found out.

    Read are `[[text, {"entities": [[start, end, label], ...]}], ...]`, the same list under the
    name `annotations`, and documents with `paragraphs` of `raw` (or `text`) and `entities`.

    Raises:
        DataError: a bad item under the policy "error".
    """
    tally = OffsetTally()
    records: list[TaggedText] = []
    for number, item in enumerate(_spacy_items(document), start=1):
        if item is None:  # the way some tools write a text that was passed over
            tally["empty items left out"] += 1
            continue
        try:
            text, spans, group = _pair(item)
            if spans is None and labelled:
                raise SpanFaultError("the text has no list of entities; give [] for none")
            records.append(
                make_record(text, spans, number, path, "code points", tally, group=group)
            )
        except SpanFaultError as error:
            bad_rows.add(number, str(error))
    return records, [f"{path.name}: spaCy, {len(records):,} texts", *tally.notes(path.name)]


def _task(task: Any, tally: OffsetTally, *, labelled: bool) -> tuple[str, list[Any] | None]:
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise SpanFaultError("a task of Label Studio is an object with 'data'; this is none")
    values = cast(dict[str, Any], task)
    data = cast(dict[str, Any], values["data"])
    texts = [v for v in (data.get("text"), *data.values()) if isinstance(v, str) and v.strip()]
    if not texts:
        raise SpanFaultError("the task has no text in its 'data'; only texts can be tagged")
    made: Any = values.get("annotations") or values.get("completions") or []
    works = [
        cast(dict[str, Any], work)
        for work in (cast(list[Any], made) if isinstance(made, list) else [])
        if isinstance(work, dict) and not work.get("was_cancelled") and not work.get("skipped")
    ]
    if not works:
        if labelled:
            raise SpanFaultError("the task has no finished annotation; annotate or remove it")
        return texts[0], None
    tally["tasks with several annotations, of which the first is taken"] += len(works) > 1
    spans: list[Any] = []
    results: Any = works[0].get("result")
    for result in cast(list[Any], results) if isinstance(results, list) else []:
        value: Any = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            continue
        kind = str(cast(dict[str, Any], result).get("type", "labels"))
        labels: Any = value.get(kind) if kind in _LABEL_TYPES else None
        if labels is None:
            tally["results that are no spans passed over"] += 1
            continue
        spans.append({"start": value.get("start"), "end": value.get("end"),
                      "label": labels, "text": value.get("text")})  # fmt: skip
    return texts[0], spans


def _spacy_items(document: Any) -> Iterator[Any]:
    items: Any = document
    if isinstance(document, Mapping):
        items = cast(Mapping[str, Any], document).get("annotations")
    for item in cast(Sequence[Any], items):
        paragraphs: Any = item.get("paragraphs") if isinstance(item, dict) else None
        if not isinstance(paragraphs, list):
            yield item
            continue
        name = cast(dict[str, Any], item).get("id")
        for paragraph in cast(list[Any], paragraphs):
            if isinstance(paragraph, dict):
                values = cast(dict[str, Any], paragraph)
                text = values.get("raw") if values.get("raw") is not None else values.get("text")
                yield text, {"entities": values.get("entities")}, name
            else:
                yield paragraph


def _pair(item: Any) -> tuple[str, Any, Any]:
    """Return text, entities and document."""
    parts: Sequence[Any] = cast(Sequence[Any], item) if isinstance(item, list | tuple) else ()
    if len(parts) < 2 or not isinstance(parts[0], str) or not isinstance(parts[1], Mapping):
        raise SpanFaultError(
            'an item is [text, {"entities": [[start, end, label], ...]}], or a paragraph with "raw" '
            f'and "entities"; got {item!r:.80}'
        )
    if not parts[0].strip():
        raise SpanFaultError("the text is empty; remove the item")
    group = parts[2] if len(parts) > 2 else None
    document = None if group is None else f"document {group}"
    return parts[0], cast(Mapping[str, Any], parts[1]).get("entities"), document
