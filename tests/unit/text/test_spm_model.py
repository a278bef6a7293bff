"""Reading SentencePiece files: the same contents as the library sees, damage named."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import CheckpointError
from litebert.text import spm_model
from litebert.text.spm_model import parse_spm


def field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def piece(text: str, score: float = 0.0, kind: int = 1) -> bytes:
    scored = field(1, text.encode()) + b"\x15" + struct.pack("<f", score)
    return field(1, scored + bytes([0x18, kind]))


UNKNOWN = piece("<unk>", kind=2)


def test_pieces_and_scores_are_those_of_the_library(small_folder: Path) -> None:
    data = (small_folder / "spiece.model").read_bytes()
    model = parse_spm(data)
    library = sentencepiece.SentencePieceProcessor(model_file=str(small_folder / "spiece.model"))
    assert len(model.pieces) == library.get_piece_size()
    for index, text in enumerate(model.pieces):
        assert library.id_to_piece(index) == text
        assert library.get_score(index) == model.scores[index]
    assert model.is_unigram
    assert model.add_dummy_prefix
    assert model.remove_extra_whitespaces
    assert len(model.charsmap) > 1000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (piece("a"), "exactly one unknown piece"),
        (UNKNOWN + piece("a") + piece("a"), "occurs twice"),
        (UNKNOWN + piece(""), "a piece is empty"),
        (UNKNOWN + piece("a", kind=9), "piece kind 9"),
        (UNKNOWN + piece("a", float("nan")), "not a number"),
        (UNKNOWN + field(2, b"\x18\x07"), "model type 7"),
        (UNKNOWN + field(2, b"\x1a\x00"), "where a number was expected"),
        (UNKNOWN + b"\x10\x01", "where text was expected"),
        (UNKNOWN + field(3, field(2, b"\x10\0\0\0xx")), "normalisation table is damaged"),
        (UNKNOWN + b"\x0b", "wire type 3"),
        (UNKNOWN + b"\x02\x00", "ends early"),
        (b"\xff" * 12, "too long"),
        (UNKNOWN[:-2], "ends early"),
        (field(1, field(1, b"\xff")), "codec can't decode"),
    ],
)
def test_damage_is_named(data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        parse_spm(data)


def test_too_many_pieces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spm_model, "MAX_PIECES", 2)
    with pytest.raises(CheckpointError, match="more than 2 pieces"):
        parse_spm(UNKNOWN + piece("a") + piece("b"))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(CheckpointError):
        assert parse_spm(UNKNOWN + data).pieces
