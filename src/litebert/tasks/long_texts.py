"""Texts longer than a model reads: cut into windows that overlap, answered by the mean of their logits.

The mean of logits is the normalised mean of log-probabilities for classes, of log-odds for labels
that are asked one by one, and of the numbers for regression: one rule for every kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from litebert.text.pairs import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from jaxtyping import Float, Int64

    from litebert.data.batch import EncodedExample
    from litebert.data.examples import Example
    from litebert.tasks.base import Task
    from litebert.tasks.classification import SequenceClassification
    from litebert.text.tokenizer import Tokenizer

__all__ = [
    "MOST_WINDOWS", "MOST_WINDOWS_TO_LEARN", "encode_long", "encode_texts", "gather_texts",
    "loses_pieces", "text_bounds", "usual_stride", "window_starts",
]  # fmt: skip

MOST_WINDOWS: Final = 256
"""Windows of one text; of a longer one so many are read, evenly spread."""
MOST_WINDOWS_TO_LEARN: Final = 32
"""The same in training, where a book must not outweigh a hundred letters."""


def usual_stride(max_length: int) -> int:
    """Return half of the pieces that fit: every piece but those at the ends is read twice."""
    return max(1, (max_length - 2) // 2)


def window_starts(total: int, room: int, stride: int, at_most: int = MOST_WINDOWS) -> list[int]:
    """Return the first piece of each window, rising.

    The last window ends with the text, so that all are full and count alike.

    Args:
        total: pieces of the text.
        room: pieces of a window, at least 1.
        stride: pieces by which each window starts after the one before, from 1 to `room`.
        at_most: windows, at least 1.
    """
    if total <= room:
        return [0]
    last = total - room
    count = 1 + -(-last // stride)
    if count > at_most:
        return (
            np.linspace(0, last, at_most).round().astype(np.int64).tolist() if at_most > 1 else [0]
        )
    return [min(number * stride, last) for number in range(count)]


def encode_long(
    task: SequenceClassification,
    example: Example,
    tokenizer: Tokenizer,
    *,
    index: int = 0,
    at_most: int = MOST_WINDOWS,
) -> list[EncodedExample]:
    """Return the windows of an example, each with its label; one where the text fits, or is cut.

    Of a pair the longer text slides (the second, where both are equally long), and the other one
    stands whole in every window, cut to half of the room.

    Args:
        task: gives length, stride (None: texts are cut) and labels.
        example: text or pair.
        tokenizer: of the model.
        index: position of the example in its data set; all its windows get it.
        at_most: windows, at least 1.

    Raises:
        DataError: as `task.encode`.
    """
    whole = task.encode(example, tokenizer, index=index)
    given = [text for text in (example.text, example.pair) if text is not None]
    seen = task.max_length * CHARACTERS_PER_TOKEN  # what is behind them is not even tokenized
    if task.stride is None or (
        len(whole) < task.max_length and all(len(text) <= seen for text in given)
    ):
        return [whole]
    texts = [tokenizer.pieces(text).ids for text in given]
    room = task.max_length - 1 - len(texts)
    moving = 0 if len(texts) == 1 or len(texts[0]) > len(texts[1]) else 1
    long = texts[moving]
    if len(texts) == 2:
        still = texts[1 - moving][: max(room // 2, room - len(long))]
        texts[1 - moving] = still
        room -= len(still)
    windows: list[EncodedExample] = []
    for start in window_starts(len(long), room, min(task.stride, room), at_most):
        texts[moving] = long[start : start + room]
        parts = [[*text, tokenizer.sep_id] for text in texts]
        ids = [tokenizer.cls_id, *(piece for part in parts for piece in part)]
        segments = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        windows.append(
            replace(
                whole,
                ids=np.asarray(ids, np.int32),
                type_ids=np.concatenate([[0], segments]).astype(np.int32),
            )
        )
    return windows


def encode_texts(
    task: Task, examples: Sequence[Example], tokenizer: Tokenizer
) -> tuple[list[EncodedExample], Int64[np.ndarray, " N"]]:
    """Return the windows of all texts, and the position of the first window of each text.

    What a model gives for the windows, `gather_texts` makes one row for each text. Tasks that know no
    windows have one for each text.

    Raises:
        DataError: as `task.encode`.
    """
    encoded: list[EncodedExample] = []
    bounds: list[int] = []
    for example in examples:
        bounds.append(len(encoded))
        place = len(encoded)
        if getattr(task, "stride", None) is None:
            encoded.append(task.encode(example, tokenizer, index=place))
        else:
            windows = encode_long(cast("SequenceClassification", task), example, tokenizer)
            encoded += [replace(w, index=place + number) for number, w in enumerate(windows)]
    return encoded, np.asarray(bounds, np.int64)


def loses_pieces(
    task: SequenceClassification, counts: Sequence[int], at_most: int = MOST_WINDOWS_TO_LEARN
) -> bool:
    """Whether something of a text or pair is never read.

    Args:
        task: gives length and stride.
        counts: pieces of the one or two texts.
        at_most: windows.
    """
    room = task.max_length - 1 - len(counts)
    if sum(counts) <= room:
        return False
    if task.stride is None:
        return True
    if len(counts) == 2:
        if min(counts) > room // 2:
            return True
        room -= min(counts)
    return max(counts) > room and (1 + -(-(max(counts) - room) // min(task.stride, room)) > at_most)


def text_bounds(encoded: Sequence[EncodedExample]) -> Int64[np.ndarray, " N"]:
    """Return the position of the first window of each text.

    Args:
        encoded: windows, those of one text (of one `index`) next to each other.
    """
    index = np.asarray([example.index for example in encoded], np.int64)
    return np.flatnonzero(np.diff(index, prepend=index[:1] - 1))


def gather_texts(
    logits: Float[np.ndarray, "W C"], bounds: Int64[np.ndarray, " N"]
) -> Float[np.ndarray, "N C"]:
    """Return the mean of the logits of each text's windows; those of a single window unchanged.

    Args:
        logits: one row for each window.
        bounds: what `text_bounds` gives.
    """
    if len(bounds) == len(logits):
        return logits
    sums = np.add.reduceat(np.asarray(logits, np.float64), bounds)
    counts = np.diff(bounds, append=len(logits))
    return (sums / counts[:, None]).astype(logits.dtype)
