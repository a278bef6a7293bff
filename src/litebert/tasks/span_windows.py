"""Windows over passages: `[CLS] question [SEP] part of the passage [SEP]`, and their labels.

Each distinct text is tokenized once, and each passage keeps its character offsets as arrays, shared by
all windows of all its questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.data.batch import EncodedExample
from litebert.tasks.records import Feature

if TYPE_CHECKING:
    from litebert.text.tokenizer import Tokenizer

__all__ = ["Asked", "Passage", "Window", "WindowSizes", "make_windows"]

_NO_CLASS: Final = -100


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """A passage as pieces.

    Attributes:
        text: the passage.
        ids: int32 [P] ids of its pieces.
        starts: int32 [P] first character of each piece.
        ends: int32 [P] character behind each piece.
    """

    text: str
    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    def pieces_of(self, start: int, end: int) -> tuple[int, int] | None:
        """Return first and last piece of these characters, blanks at the ends aside; None for none."""
        told = self.text[start:end]
        start, end = start + len(told) - len(told.lstrip()), end - len(told) + len(told.rstrip())
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.starts, end, side="left")) - 1
        return (first, last) if first <= last else None

    def text_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the characters from piece `first` to piece `last`, without blanks at the ends."""
        start, end = int(self.starts[first]), int(self.ends[last])
        told = self.text[start:end]
        return start + len(told) - len(told.lstrip()), end - len(told) + len(told.rstrip())


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a passage beside one question.

    Attributes:
        passage: the whole passage.
        start: first piece of the passage in the window.
        stop: piece behind the last one.
        offset: position of piece `start` in the sequence.
        is_best: bool [stop - start]: this window shows the piece with the most context of all; None
            if it is the only window.
    """

    passage: Passage
    start: int
    stop: int
    offset: int
    is_best: NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class WindowSizes:
    """How windows are cut, in tokens.

    Attributes:
        max_length: of a window, special tokens included.
        max_query_length: of the question, with the turns before it.
        stride: by which a window starts after the one before.
    """

    max_length: int
    max_query_length: int
    stride: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What windows are made of.

    Attributes:
        parts: texts of the question side, in order, joined by [SEP]: earlier turns, the question.
        context: the passage.
        answer: characters (start, end) of the answer; None: there is none.
        classes: class in each group of answer classes where the answer is in the window, or where
            there is none.
        without: the same for windows that do not hold the answer that there is.
    """

    parts: tuple[str, ...]
    context: str
    answer: tuple[int, int] | None = None
    classes: tuple[int, ...] = ()
    without: tuple[int, ...] = ()


def make_windows(
    asked: Sequence[Asked | None], tokenizer: Tokenizer, sizes: WindowSizes, *, labelled: bool
) -> list[Feature]:
    """Cut questions into windows, in order; `index` is the position in `asked`.

    Labels are start and end of the answer among the tokens of the window (0, 0 where it is not or
    not wholly there) and the classes. Source: official `squad_utils.py`,
    `convert_examples_to_features`. Of a question that is too long the beginning stays, as there; of a
    dialogue the end, where the question is.

    Args:
        asked: the questions; None is passed over.
        tokenizer: makes the pieces.
        sizes: lengths.
        labelled: whether to label the windows.
    """
    known = [item for item in asked if item is not None]
    passages = _passages(tokenizer, {item.context for item in known})
    questions = _question_ids(tokenizer, {part for item in known for part in item.parts})
    cuts: dict[tuple[int, int], list[tuple[int, int, NDArray[np.bool_] | None]]] = {}
    features: list[Feature] = []
    for index, item in enumerate(asked):
        if item is None:
            continue
        query = _joined(item.parts, questions, tokenizer.sep_id)
        limit = sizes.max_query_length
        query = query[-limit:] if len(item.parts) > 1 else query[:limit]
        passage = passages[item.context]
        key = (id(passage), len(query))
        if key not in cuts:
            cuts[key] = _cut(len(passage.ids), sizes.max_length - len(query) - 3, sizes.stride)
        head = np.array([tokenizer.cls_id, *query, tokenizer.sep_id], np.int32)
        tail = np.array([tokenizer.sep_id], np.int32)
        span = passage.pieces_of(*item.answer) if labelled and item.answer is not None else None
        for start, stop, is_best in cuts[key]:
            window = Window(passage, start, stop, len(head), is_best)
            ids = np.concatenate([head, passage.ids[start:stop], tail])
            types = np.ones(len(ids), np.uint8)
            types[: len(head)] = 0
            label = _label(item, span, window) if labelled else None
            if label is not None and len(label) == len(ids):
                continue  # would be taken for one label for each token; there is no text to learn from
            features.append(Feature(EncodedExample(ids, types, label, index), window))
    return features


def _label(item: Asked, span: tuple[int, int] | None, window: Window) -> NDArray[Any]:
    inside = span is not None and window.start <= span[0] and span[1] < window.stop
    if span is None or not inside:
        # A question without an answer keeps its own classes; a window without it has the others.
        classes = item.classes if item.answer is None else item.without
        return np.array([0, 0, *classes], np.int64)
    move = window.offset - window.start
    return np.array([span[0] + move, span[1] + move, *item.classes], np.int64)


def _cut(total: int, room: int, stride: int) -> list[tuple[int, int, NDArray[np.bool_] | None]]:
    """Return start, stop and best pieces of the windows over `total` pieces, `room` at a time."""
    bounds: list[tuple[int, int]] = []
    start = 0
    while True:
        stop = min(start + room, total)
        bounds.append((start, stop))
        if stop == total:
            break
        start += min(room, stride)
    if len(bounds) == 1:
        return [(*bounds[0], None)]
    best = np.full(total, -np.inf)
    owner = np.zeros(total, np.int64)
    for number, (start, stop) in enumerate(bounds):
        left = np.arange(stop - start)
        score = np.minimum(left, left[::-1]) + 0.01 * (stop - start)
        better = score > best[start:stop]
        owner[start:stop][better] = number
        best[start:stop][better] = score[better]
    return [(a, b, owner[a:b] == number) for number, (a, b) in enumerate(bounds)]


def _passages(tokenizer: Tokenizer, texts: set[str]) -> dict[str, Passage]:
    order = sorted(texts)
    found: dict[str, Passage] = {}
    for text, encoding in zip(order, tokenizer.encode_batch(order), strict=True):
        pieces = encoding.segments[0].pieces
        spans = np.array(pieces.spans, np.int32).reshape(-1, 2)
        ids = np.array(pieces.ids, np.int32)
        found[text] = Passage(text, ids, spans[:, 0].copy(), spans[:, 1].copy())
    return found


def _question_ids(tokenizer: Tokenizer, texts: set[str]) -> dict[str, list[int]]:
    order = sorted(texts)
    encodings = tokenizer.encode_batch(order)
    return {t: e.segments[0].ids for t, e in zip(order, encodings, strict=True)}


def _joined(parts: tuple[str, ...], ids: dict[str, list[int]], separator: int) -> list[int]:
    result: list[int] = []
    for number, part in enumerate(parts):
        if number:
            result.append(separator)
        result += ids[part]
    return result
