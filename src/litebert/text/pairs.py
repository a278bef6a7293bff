"""One or two texts become `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`, cut or slid to a length.

A length limit counts every token, special ones included.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol, cast, get_args

from litebert.errors import SettingsError
from litebert.text.encoding import Encoding, PieceText, Segment

__all__ = ["CHARACTERS_PER_TOKEN", "Keep", "Truncation", "assemble", "windows"]

Truncation = Literal["longest_first", "only_first", "only_second"]
Keep = Literal["head", "tail"]

CHARACTERS_PER_TOKEN: Final = 250
"""Characters that are looked at per allowed token; the rest of a longer text is cut unread."""


class SupportsPieces(Protocol):
    """What windows need from a tokenizer."""

    @property
    def cls_id(self) -> int: ...
    @property
    def sep_id(self) -> int: ...
    def pieces(self, text: str) -> PieceText: ...


def assemble(
    first: PieceText,
    second: PieceText | None,
    *,
    cls_id: int,
    sep_id: int,
    max_length: int | None = None,
    truncation: Truncation = "longest_first",
    keep: Keep = "head",
) -> Encoding:
    """Put special tokens around one or two texts and cut them to `max_length` tokens.

    `longest_first` takes pieces one by one from the longer text, from the second when both are
    equally long (the official rule). `keep` says which end of a cut text stays.

    Raises:
        SettingsError: unknown word, a limit below the special tokens, or a limit that the one
            text that may be cut cannot reach.
    """
    if truncation not in get_args(Truncation):
        raise SettingsError(_unknown("truncation", truncation, get_args(Truncation)))
    if keep not in get_args(Keep):
        raise SettingsError(_unknown("keep", keep, get_args(Keep)))
    texts = (first,) if second is None else (first, second)
    counts = [len(pieces.ids) for pieces in texts]
    kept = counts if max_length is None else _kept(counts, max_length, truncation)
    segments = tuple(
        Segment(pieces, 0, count)
        if keep == "head"
        else Segment(pieces, len(pieces.ids) - count, len(pieces.ids))
        for pieces, count in zip(texts, kept, strict=True)
    )
    dropped = sum(counts) - sum(kept) + sum(pieces.is_cut for pieces in texts)
    return _join(segments, cls_id, sep_id, dropped)


def windows(
    tokenizer: SupportsPieces,
    text: str,
    pair: str | None = None,
    *,
    max_length: int,
    stride: int,
) -> list[Encoding]:
    """Cover a long text by encodings of at most `max_length` tokens.

    Without a pair the window slides over `text`; with a pair `text` is repeated whole (a
    question) and the window slides over `pair` (its passage). Offsets always count from the
    start of the whole text. The last window ends with the text.

    Args:
        tokenizer: the tokenizer.
        text: the text, or the part that every window repeats.
        pair: the long second text.
        max_length: tokens per window, special ones included.
        stride: pieces by which each window starts after the one before, as `doc_stride` of the
            official code. (Other libraries call the *overlap* stride: that is room - stride.)

    Raises:
        SettingsError: no room for a single piece, or a stride that would skip pieces.
    """
    first = tokenizer.pieces(text)
    second = None if pair is None else tokenizer.pieces(pair)
    moving = first if second is None else second
    fixed = 2 if second is None else 3 + len(first.ids)
    room = max_length - fixed
    if room < 1:
        raise SettingsError(
            f"max_length {max_length} leaves no room beside {fixed} tokens that every window "
            f"repeats; use at least {fixed + 1} or a shorter first text"
        )
    if not 1 <= stride <= room:
        raise SettingsError(
            f"stride {stride} must be in 1..{room} (the pieces that fit a window), "
            "or pieces between two windows would be lost"
        )
    total = len(moving.ids)
    result: list[Encoding] = []
    for start in range(0, max(total, 1), stride):
        stop = min(start + room, total)
        segment = Segment(moving, start, stop)
        segments = (segment,) if second is None else (Segment(first, 0, len(first.ids)), segment)
        result.append(_join(segments, tokenizer.cls_id, tokenizer.sep_id, 0))
        if stop == total:
            break
    return result


def _kept(counts: list[int], max_length: int, truncation: Truncation) -> list[int]:
    room = max_length - 1 - len(counts)
    if room < 0:
        raise SettingsError(
            f"max_length {max_length} is below the {1 + len(counts)} special tokens; raise it"
        )
    if sum(counts) <= room:
        return counts
    if len(counts) == 1:
        if truncation == "only_second":
            raise SettingsError("truncation 'only_second' needs a pair; use 'only_first'")
        return [room]
    first, second = counts
    if truncation == "longest_first":
        first = min(first, max(room - second, (room + 1) // 2))
        return [first, room - first]
    fixed = second if truncation == "only_first" else first
    if fixed > room:
        raise SettingsError(
            f"truncation {truncation!r} cannot reach {max_length} tokens: the other text alone "
            f"has {fixed} pieces and {room} fit; use 'longest_first' or a larger max_length"
        )
    return [room - fixed, fixed] if truncation == "only_first" else [fixed, room - fixed]


def _join(segments: tuple[Segment, ...], cls_id: int, sep_id: int, dropped: int) -> Encoding:
    ids = [cls_id]
    for segment in segments:
        ids += segment.ids
        ids.append(sep_id)
    return Encoding(ids, segments, dropped)


def _unknown(name: str, got: object, allowed: tuple[object, ...]) -> str:
    words = ", ".join(repr(word) for word in cast(tuple[str, ...], allowed))
    return f"{name} {got!r} is unknown; use one of {words}"
