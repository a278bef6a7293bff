"""Between records and windows: the label of each token, and logits back to entities of the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from litebert.data.tagged.record import Span, TaggedText, clip_words, count_cut
from litebert.errors import DataError
from litebert.tasks.tag_decoding import TagSet, softmax_rows
from litebert.tasks.tag_windows import TagWindow, WordPieces, gather_words

if TYPE_CHECKING:
    from jaxtyping import Int64

    from litebert.tasks.records import Feature

__all__ = [
    "IGNORED",
    "TaggedAnswer",
    "choose_units",
    "entity_types",
    "read_outputs",
    "record_windows",
    "spans_of",
    "true_spans",
    "units_note",
    "window_labels",
    "word_tags",
]

IGNORED = -100
"""Label of a token that has none."""
CUT_SHARE: Final = 0.02
"""Share of spans with a border inside a word from which on words are no good units. Korean and Japanese
endings and Hebrew prefixes stand in one word with the name: tags of words could never be right."""

Units = Literal["words", "characters"]


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """The entities of one text.

    Attributes:
        entities: objects with start, end, label, text and score, in order.
        certainty: lowest probability of a chosen tag in the text, in [0, 1]; 1 without words.
    """

    entities: list[dict[str, Any]]
    certainty: float


def entity_types(records: Iterable[TaggedText]) -> tuple[str, ...]:
    """Return the entity types of labelled records, sorted.

    Raises:
        DataError: no record has an entity.
    """
    types: set[str] = set()
    record = None
    for record in records:
        types.update(span.label for span in record.spans or ())
    if not types:
        raise DataError(
            "no text has an entity, so there is nothing to learn; check the tag column or the "
            "names of the spans",
            path=None if record is None else record.path,
        )
    return tuple(sorted(types))


def choose_units(records: Sequence[TaggedText], told: Units | None) -> Units:
    """Return what is tagged: as told, else what the spans of the records fit."""
    if told is not None:
        return told
    cut, total = _cut_spans(records)
    return "characters" if cut > CUT_SHARE * total else "words"


def units_note(records: Sequence[TaggedText], units: Units | None) -> list[str]:
    """Return in words what is tagged, where spans do not keep to words."""
    cut, total = _cut_spans(records)
    if not cut:
        return []
    fact = f"{cut:,} of {total:,} spans begin or end inside a word"
    if units == "characters":
        return [f"{fact}: characters are tagged, not words (task.units)"]
    return [
        f"{fact} and are learnt as whole words, so that their borders are never right; "
        "--set task.units=characters tags characters"
    ]


def _cut_spans(records: Sequence[TaggedText]) -> tuple[int, int]:
    return sum(map(count_cut, records)), sum(len(record.spans or ()) for record in records)


def true_spans(record: TaggedText) -> tuple[Span, ...]:
    """Return the spans of a labelled record.

    Raises:
        DataError: it is not labelled.
    """
    if record.spans is None:
        raise DataError(
            "this text has no tags, so its answer cannot be scored; give a labelled file",
            path=record.path,
            line=record.line,
        )
    return record.spans


def word_tags(record: TaggedText, words: WordPieces, tags: TagSet) -> Int64[np.ndarray, " W"]:
    """Return the tag of each word that has a piece; -100 where the type was not trained."""
    found = clip_words(record.spans or (), words.starts, words.ends)
    return tags.encode(found, len(words))


def window_labels(
    window: TagWindow,
    word_labels: Int64[np.ndarray, " W"],
    inside: Int64[np.ndarray, " C"] | None,
) -> Int64[np.ndarray, " S"]:
    """Return the label of each token of a window, -100 where it answers for no word.

    Args:
        window: the window.
        word_labels: tag of each word of the text, or -100.
        inside: for each tag the one of further pieces; None: further pieces have none.
    """
    labels = np.full(len(window.ids), IGNORED, np.int64)
    labels[window.rows] = word_labels[window.chosen]
    if inside is not None:
        lasts = np.minimum(window.words.last[window.chosen], window.pieces[1] - 1)
        lasts = lasts - window.pieces[0] + 1
        for row, last in zip(window.rows.tolist(), lasts.tolist(), strict=True):
            if labels[row] != IGNORED:
                labels[row + 1 : last + 1] = inside[labels[row]]
    return labels


def record_windows(
    features: Sequence[Feature], count: int
) -> list[tuple[list[TagWindow], list[int]]]:
    """Return for each record its windows and their places among the features."""
    groups: list[tuple[list[TagWindow], list[int]]] = [([], []) for _ in range(count)]
    for place, feature in enumerate(features):
        windows, places = groups[feature.encoded.index]
        windows.append(cast(TagWindow, feature.details))
        places.append(place)
    return groups


def read_outputs(
    records: Sequence[TaggedText],
    features: Sequence[Feature],
    outputs: Sequence[np.ndarray],
    tags: TagSet,
    *,
    constrained: bool,
) -> list[TaggedAnswer]:
    """Turn the outputs of all windows into the entities of each text.

    Args:
        records: the texts.
        features: their windows.
        outputs: [S, C] of each window; columns beyond the tags are not looked at.
        tags: the tags of the first columns.
        constrained: answer only sequences that the scheme allows.

    Raises:
        DataError: too few columns, or numbers that are not finite.
    """
    groups = record_windows(features, len(records))
    for feature, rows in zip(features, outputs, strict=True):
        tokens = len(feature.encoded)
        if rows.ndim != 2 or len(rows) != tokens or rows.shape[1] < len(tags):
            raise DataError(
                f"outputs have shape {rows.shape}, {tokens} tokens and {len(tags)} tags need "
                f"[{tokens}, {len(tags)}]; the model and its task.json do not belong together"
            )
    logits = [
        gather_words(windows, [outputs[place] for place in places], len(tags))
        for windows, places in groups
    ]
    decoded = tags.decode(logits, constrained=constrained)
    answers: list[TaggedAnswer] = []
    for record, (windows, _), rows, chosen in zip(records, groups, logits, decoded, strict=True):
        words = windows[0].words
        sure = softmax_rows(rows)[np.arange(len(rows)), chosen]
        entities = [
            _entity(record.text, Span(int(words.starts[a]), int(words.ends[b - 1]), kind),
                    float(sure[a:b].mean()))
            for a, b, kind in tags.entities(chosen)
        ]  # fmt: skip
        answers.append(TaggedAnswer(entities, float(sure.min(initial=1.0))))
    return answers


def spans_of(entities: Any) -> list[Span]:
    """Return the spans of a list of answered entities."""
    items = cast(Sequence[Mapping[str, Any]], entities)
    return [Span(item["start"], item["end"], item["label"]) for item in items]


def _entity(text: str, span: Span, score: float) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "label": span.label,
        "text": text[span.start : span.end],
        "score": score,
    }
