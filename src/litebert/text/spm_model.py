"""Read the parts of a SentencePiece model file that we need, without a protobuf library.

A model file is one protobuf message: field 1 the pieces, 2 how it was trained, 3 its normaliser.
Reading it in Python first also refuses broken files before native code sees them.

Source: `sentencepiece_model.proto` of google/sentencepiece (field numbers and defaults).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from litebert.errors import CheckpointError

__all__ = ["BYTE", "CONTROL", "NORMAL", "UNKNOWN", "USER_DEFINED", "SpmModel", "keep_pieces",
           "parse_spm"]  # fmt: skip

NORMAL: Final = 1
UNKNOWN: Final = 2
CONTROL: Final = 3
USER_DEFINED: Final = 4
UNUSED: Final = 5
BYTE: Final = 6

MAX_PIECES: Final = 2_000_000
"""More pieces than any published vocabulary; above it the file is refused."""

_SELF_TEST: Final = 4
_UNIGRAM: Final = 1
_MODEL_TYPES: Final = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True, slots=True)
class SpmModel:
    """The contents of a SentencePiece model that decide how text is encoded.

    Attributes:
        pieces: piece text by id.
        scores: log-probability by id (unigram).
        kinds: one of NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE by id.
        model_type: "unigram", "bpe", "word" or "char".
        charsmap: compiled normalisation rules; empty means identity.
        add_dummy_prefix: a blank is put before the text.
        remove_extra_whitespaces: runs of blanks become one, outer ones go.
    """

    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    kinds: tuple[int, ...]
    model_type: str
    charsmap: bytes
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool

    @property
    def is_unigram(self) -> bool:
        """Whether the pieces carry unigram scores (what ALBERT uses)."""
        return self.model_type == "unigram"


def parse_spm(data: bytes, path: Path | None = None) -> SpmModel:
    """Read a serialized model.

    Raises:
        CheckpointError: the bytes are not a SentencePiece model, or hold no usable pieces.
    """
    try:
        return _parse(data)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"not a SentencePiece model ({error}); expected the `spiece.model` of an ALBERT, "
            "copy it again from its source",
            path=path,
        ) from error


def keep_pieces(data: bytes, kept: Collection[int]) -> bytes:
    """Return a serialized model with some of its pieces, in the same order, all else as it was.

    Samples for a self-test are left out: they may need pieces that are gone.

    Args:
        data: a model that `parse_spm` takes.
        kept: ids of the pieces that stay.
    """
    result = bytearray()
    number = 0
    for field, value in _fields(data):
        if field == 1:
            number += 1
            if number - 1 not in kept:
                continue
        if field == _SELF_TEST or isinstance(value, int):
            continue
        result += _as_varint(field << 3 | 2) + _as_varint(len(value)) + value
    return bytes(result)


def _as_varint(number: int) -> bytes:
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])


def _parse(data: bytes) -> SpmModel:
    pieces, scores, kinds, position = _plain_pieces(data)
    model_type, charsmap, dummy, extra = _UNIGRAM, b"", True, True
    for field, value in _fields(data, position):
        if field == 1:
            piece, score, kind = _parse_piece(_as_bytes(value))
            pieces.append(piece)
            scores.append(score)
            kinds.append(kind)
            if len(pieces) > MAX_PIECES:
                raise ValueError(f"more than {MAX_PIECES} pieces")
        elif field == 2:
            spec = dict(_fields(_as_bytes(value)))
            model_type = _as_int(spec.get(3, _UNIGRAM))
        elif field == 3:
            spec = dict(_fields(_as_bytes(value)))
            charsmap = _as_bytes(spec.get(2, b""))
            dummy, extra = bool(spec.get(3, 1)), bool(spec.get(4, 1))
    if not pieces:
        raise ValueError("it holds no pieces")
    if kinds.count(UNKNOWN) != 1:
        raise ValueError("it must hold exactly one unknown piece")
    if len(set(pieces)) != len(pieces):
        raise ValueError("a piece occurs twice")
    if model_type not in _MODEL_TYPES:
        raise ValueError(f"model type {model_type} is unknown")
    _check_charsmap(charsmap)
    return SpmModel(
        pieces=tuple(pieces),
        scores=tuple(scores),
        kinds=tuple(kinds),
        model_type=_MODEL_TYPES[model_type],
        charsmap=charsmap,
        add_dummy_prefix=dummy,
        remove_extra_whitespaces=extra,
    )


def _plain_pieces(data: bytes) -> tuple[list[str], list[float], list[int], int]:
    """Return the pieces at the start of a file that are written as usual, and where they end.

    Tens of thousands of pieces are most of the time that a model takes to load, and nearly all are
    text, score and perhaps kind, in this order, each with a length of one byte.
    """
    pieces: list[str] = []
    packed = bytearray()
    kinds: list[int] = []
    position, end = 0, len(data)
    while position + 4 < end and data[position] == 0x0A and len(pieces) < MAX_PIECES:
        stop = position + 2 + data[position + 1]
        text_end = position + 4 + data[position + 3]
        tail = stop - text_end
        if (
            stop > end
            or data[position + 1] > 0x7F
            or data[position + 2] != 0x0A
            or not 0 < data[position + 3] < 0x80
            or tail not in (5, 7)
            or data[text_end] != 0x15
        ):
            break
        kind = NORMAL
        if tail == 7:
            kind = data[text_end + 6]
            if data[text_end + 5] != 0x18 or not NORMAL <= kind <= BYTE:
                break
        pieces.append(data[position + 4 : text_end].decode("utf-8"))
        packed += data[text_end + 1 : text_end + 5]
        kinds.append(kind)
        position = stop
    scores = list(struct.unpack(f"<{len(pieces)}f", packed))
    for piece, score in zip(pieces, scores, strict=True):
        if score != score:
            raise ValueError(f"the score of piece {piece!r} is not a number")
    return pieces, scores, kinds, position


def _parse_piece(data: bytes) -> tuple[str, float, int]:
    piece, score, kind = "", 0.0, NORMAL
    for field, value in _fields(data):
        if field == 1:
            piece = _as_bytes(value).decode("utf-8")
        elif field == 2:
            (score,) = struct.unpack("<f", _as_bytes(value))
        elif field == 3:
            kind = _as_int(value)
    if not piece:
        raise ValueError("a piece is empty")
    if kind not in range(NORMAL, BYTE + 1):
        raise ValueError(f"piece kind {kind} is unknown")
    if score != score:
        raise ValueError(f"the score of piece {piece!r} is not a number")
    return piece, score, kind


def _check_charsmap(charsmap: bytes) -> None:
    """The map is a 4-byte length, a table of 4-byte units of that length, then text."""
    if not charsmap:
        return
    (size,) = struct.unpack_from("<I", charsmap)
    if size % 1024 or size < 1024 or 4 + size >= len(charsmap):
        raise ValueError("its normalisation table is damaged")


def _fields(data: bytes, position: int = 0) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) from a position on; 32- and 64-bit values come as raw bytes."""
    end = len(data)
    while position < end:
        key, position = _varint(data, position)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield field, value
            continue
        if wire == 2:
            size, position = _varint(data, position)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {position}")
        if field == 0 or position + size > end:
            raise ValueError(f"the data ends early at byte {position}")
        yield field, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
    raise ValueError(f"a number is too long at byte {position}")


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where text was expected")
    return value


def _as_int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("text stands where a number was expected")
    return value
