"""Texts as windows of pieces, and the words that each window answers for.

A word is answered by its first piece. In a long text, windows overlap, and each word belongs to the
window in which it has most context, so that none is lost or counted twice at a border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from litebert.errors import SettingsError

if TYPE_CHECKING:
    from jaxtyping import Int32, Int64

    from litebert.data.tagged.record import Words
    from litebert.text.tokenizer import Tokenizer

__all__ = ["TagWindow", "WordPieces", "cut_windows", "gather_words", "match_pieces"]


@dataclass(frozen=True, slots=True, eq=False)
class WordPieces:
    """The words of a text that have a piece of their own.

    Attributes:
        starts: [W] first character.
        ends: [W] character behind the last.
        first: [W] index of the first piece, rising strictly.
        last: [W] index of the last piece before the next word, at least `first`.
    """

    starts: Int64[np.ndarray, " W"]
    ends: Int64[np.ndarray, " W"]
    first: Int64[np.ndarray, " W"]
    last: Int64[np.ndarray, " W"]

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True, eq=False)
class TagWindow:
    """One window of a text.

    Attributes:
        ids: [S] token ids with [CLS] and [SEP].
        words: the words of the whole text.
        chosen: [K] which of them this window answers for, rising.
        rows: [K] token that answers for each.
        pieces: first piece of the window, and the one behind its last.
    """

    ids: Int32[np.ndarray, " S"]
    words: WordPieces
    chosen: Int64[np.ndarray, " K"]
    rows: Int64[np.ndarray, " K"]
    pieces: tuple[int, int]


def match_pieces(words: Words, spans: Sequence[tuple[int, int]]) -> WordPieces:
    """Find the first piece of each word by character positions alone.

    Words that share their first piece become one word (`...` as one piece of three marks, or
    Chinese characters). Words without a piece (control characters, a zero-width blank) are left
    out; an entity goes on across them.

    Args:
        words: (start, end) of each word, in order.
        spans: (start, end) of each piece; they never overlap and never go back, and some are empty.
    """
    places = np.asarray(words, np.int64).reshape(-1, 2)
    pieces = np.asarray(spans, np.int64).reshape(-1, 2)
    filled = np.flatnonzero(pieces[:, 1] > pieces[:, 0])
    if not len(places) or not len(filled):
        empty = np.zeros(0, np.int64)
        return WordPieces(empty, empty, empty, empty)
    found = np.searchsorted(pieces[filled, 1], places[:, 0], side="right")
    piece = filled[np.minimum(found, len(filled) - 1)]
    has_piece = (found < len(filled)) & (pieces[piece, 0] < places[:, 1])
    places, piece = places[has_piece], piece[has_piece]
    is_first = np.ones(len(piece), np.bool_)
    is_first[1:] = piece[1:] != piece[:-1]
    heads = np.flatnonzero(is_first)
    tails = np.append(heads[1:], len(piece)) - 1
    first = piece[heads]
    last = np.append(first[1:], len(pieces)) - 1 if len(first) else first
    return WordPieces(places[heads, 0], places[tails, 1], first, last)


def cut_windows(
    texts: Sequence[str],
    words: Sequence[Words],
    tokenizer: Tokenizer,
    *,
    max_length: int,
    stride: int,
) -> list[list[TagWindow]]:
    """Return the windows of each text, at least one.

    Args:
        texts: any strings.
        words: (start, end) of the words of each.
        tokenizer: gives pieces with character positions.
        max_length: tokens of a window, [CLS] and [SEP] included.
        stride: pieces by which each window starts after the one before.

    Raises:
        SettingsError: no room for a piece, or a stride that would skip pieces.
    """
    room = max_length - 2
    if room < 1 or not 1 <= stride <= room:
        raise SettingsError(
            f"max_length {max_length} leaves room for {max(room, 0)} pieces and stride is {stride}; "
            "allowed: max_length of 3 and above, stride from 1 to max_length - 2"
        )
    result: list[list[TagWindow]] = []
    for encoding, places in zip(tokenizer.encode_batch(texts), words, strict=True):
        pieces = encoding.segments[0].pieces
        matched = match_pieces(places, pieces.spans)
        ids, total = pieces.ids, len(pieces.ids)
        starts = list(range(0, max(total - room, 0) + stride, stride)) if total > room else [0]
        bounds = [(start, min(start + room, total)) for start in starts]
        owners = _owners(matched, bounds, total)
        windows: list[TagWindow] = []
        for number, (start, stop) in enumerate(bounds):
            chosen = np.flatnonzero(owners == number)
            inner = [tokenizer.cls_id, *ids[start:stop], tokenizer.sep_id]
            rows = matched.first[chosen] - start + 1
            windows.append(
                TagWindow(np.asarray(inner, np.int32), matched, chosen, rows, (start, stop))
            )
        result.append(windows)
    return result


def _owners(
    words: WordPieces, bounds: Sequence[tuple[int, int]], total: int
) -> Int64[np.ndarray, " W"]:
    """Return the window of each word: where its nearer side has most pieces beside it."""
    owners = np.zeros(len(words), np.int64)
    best = np.full(len(words), -np.inf)
    for number, (start, stop) in enumerate(bounds):
        left, right = np.searchsorted(words.first, (start, stop))
        # The border of the text itself takes no context away.
        before = words.first[left:right] - start if start else np.inf
        after = stop - 1 - words.last[left:right] if stop < total else np.inf
        context = np.broadcast_to(np.minimum(before, after), (right - left,))
        better = context > best[left:right]
        owners[left:right][better] = number
        best[left:right][better] = context[better]
    return owners


def gather_words(
    windows: Sequence[TagWindow], outputs: Sequence[np.ndarray], width: int
) -> np.ndarray:
    """Return the [W, C] outputs of the words of one text, each from its own window.

    Args:
        windows: all windows of the text.
        outputs: [S, C] of each.
        width: C.
    """
    logits = np.zeros((len(windows[0].words), width), np.float64)
    for window, rows in zip(windows, outputs, strict=True):
        logits[window.chosen] = rows[window.rows, :width]
    return logits
