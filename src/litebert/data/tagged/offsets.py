"""Spans as annotation tools write them become checked spans of a text.

Tools count in Unicode code points or, when they run in a browser, in UTF-16 units, where an emoji
counts twice. Where a span carries its text, that decides; else the tool's own unit does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, cast

from litebert.data.labels import label_text
from litebert.data.rows import text_problem
from litebert.data.tagged.record import Span

__all__ = ["OffsetTally", "OffsetUnit", "RawSpan", "SpanFaultError", "check_spans", "read_span"]

OffsetUnit = Literal["code points", "UTF-16"]

_STARTS: Final = ("start", "start_offset", "begin", "from")
_ENDS: Final = ("end", "end_offset", "stop", "to")
_LABELS: Final = ("label", "labels", "type", "tag", "entity", "entity_group")
_TEXTS: Final = ("text", "word", "surface")
_WIDE: Final = 0xFFFF


class SpanFaultError(Exception):
    """A span cannot be used; the reader of the file turns it into a located error or a skip."""


@dataclass(frozen=True, slots=True)
class RawSpan:
    """A span as the file has it.

    Attributes:
        start: first position, in the file's unit.
        end: position behind the last.
        label: its type, not empty.
        text: what it should cover, if the file says so.
    """

    start: int
    end: int
    label: str
    text: str | None = None


class OffsetTally(Counter[str]):
    """What was mended in the spans of a file, counted."""

    def notes(self, name: str) -> list[str]:
        """Return it in words.

        Args:
            name: name of the file.
        """
        return [f"{name}: {count:,} {what}" for what, count in sorted(self.items())]


def read_span(value: Any) -> RawSpan:
    """Read `[start, end, label]` or an object with such names.

    Raises:
        SpanFaultError: neither, positions that are no whole numbers, or no label.
    """
    text: Any = None
    if isinstance(value, list | tuple):
        items = cast(Sequence[Any], value)
        if len(items) != 3:
            raise SpanFaultError(
                f"a span is [start, end, label], got a list of {len(items)}: {value!r:.80}"
            )
        start, end, label = items
    elif isinstance(value, Mapping):
        named = cast(Mapping[str, Any], value)
        start, end, label = (_first(named, names) for names in (_STARTS, _ENDS, _LABELS))
        text = _first(named, _TEXTS)
    else:
        raise SpanFaultError(
            f"a span is [start, end, label] or an object with these names, got {value!r:.80}"
        )
    for place in (start, end):
        if isinstance(place, bool) or not isinstance(place, int):
            raise SpanFaultError(
                f"start and end of a span are whole numbers, got {start!r:.40} and {end!r:.40}"
            )
    if isinstance(label, list):
        labels = cast(list[Any], label)
        if len(labels) != 1:
            raise SpanFaultError(
                f"the span {start}..{end} has {len(labels)} labels, a tag holds exactly one; keep "
                "one of them"
            )
        label = labels[0]
    name = "" if isinstance(label, dict) else label_text(label)
    if not name or text_problem(name) is not None:
        raise SpanFaultError(
            f"the span {start}..{end} has no usable label ({label!r:.40}); give one"
        )
    return RawSpan(start, end, name, text if isinstance(text, str) else None)


def check_spans(
    text: str, raw: Sequence[RawSpan], unit: OffsetUnit, tally: OffsetTally
) -> tuple[Span, ...]:
    """Return spans in code points, in order, trimmed of outer white space.

    Args:
        text: the text they lie in.
        raw: as read from the file.
        unit: what positions count where no span carries its text.
        tally: is told what was mended.

    Raises:
        SpanFaultError: positions outside the text, a span of nothing, another text than the file
            says, or two spans that overlap.
    """
    is_wide = not text.isascii() and max(map(ord, text)) > _WIDE
    places = _utf16_places(text) if is_wide else None
    spans: dict[Span, None] = {}
    for span in raw:
        start, end = _place(span, text, places, unit, tally)
        inner = text[start:end]
        left = start + len(inner) - len(inner.lstrip())
        right = end - len(inner) + len(inner.rstrip())
        if left >= right:
            raise SpanFaultError(
                f"the span {span.start}..{span.end} ({span.label}) holds no character but white "
                "space; correct its borders or remove it"
            )
        tally["spans trimmed of white space"] += (left, right) != (start, end)
        found = Span(left, right, span.label)
        tally["spans that occur twice, counted once"] += found in spans
        spans[found] = None
    ordered = sorted(spans)
    for before, after in pairwise(ordered):
        if after.start < before.end:
            raise SpanFaultError(
                f"the spans {before.start}..{before.end} ({before.label}) and {after.start}.."
                f"{after.end} ({after.label}) overlap, but a word has one tag; keep one of them"
            )
    for name in [name for name, count in tally.items() if not count]:
        del tally[name]
    return tuple(ordered)


def _place(
    span: RawSpan,
    text: str,
    places: dict[int, int] | None,
    unit: OffsetUnit,
    tally: OffsetTally,
) -> tuple[int, int]:
    """Return start and end in code points.

    Args:
        span: as read.
        text: the text.
        places: UTF-16 position -> code point; None where both are the same.
        unit: what positions count where the span does not carry its text.
        tally: is told when UTF-16 positions are turned.
    """
    plain = (span.start, span.end) if 0 <= span.start < span.end <= len(text) else None
    wide: tuple[int, int] | None = None
    if places is not None and span.start < span.end:
        start, end = places.get(span.start), places.get(span.end)
        wide = None if start is None or end is None else (start, end)
    order = [plain, wide] if unit == "code points" else [wide, plain]
    if places is None:
        order = [plain]
    if span.text is None:
        order = order[:1]
    for candidate in order:
        if candidate is None:
            continue
        if span.text is None or _same(text[candidate[0] : candidate[1]], span.text):
            tally["spans counted in UTF-16 units, turned into characters"] += (
                candidate == wide and wide != plain
            )
            return candidate
    if all(candidate is None for candidate in order):
        raise SpanFaultError(
            f"the span {span.start}..{span.end} ({span.label}) lies outside the text of "
            f"{len(text):,} characters, or is empty; positions count from 0, the end is exclusive"
        )
    shown = text[span.start : span.end] if plain else ""
    raise SpanFaultError(
        f"the span {span.start}..{span.end} ({span.label}) covers {shown!r:.60}, but the file says "
        f"{span.text!r:.60}; text and spans do not belong together"
    )


def _same(found: str, said: str) -> bool:
    """Whether two texts are equal up to white space, which tools often change."""
    return found == said or found.split() == said.split()


def _utf16_places(text: str) -> dict[int, int]:
    places: dict[int, int] = {}
    position = 0
    for index, character in enumerate(text):
        places[position] = index
        position += 2 if ord(character) > _WIDE else 1
    places[position] = len(text)
    return places


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)
