"""Texts made to be slow stay linear: each megabyte costs about as much as the one before."""

from __future__ import annotations

import time
from typing import Any

import pytest

from litebert.errors import DataError, SettingsError
from litebert.text import Tokenizer

UNITS = {
    "letter": "a",
    "marks": "\u0301",
    "mixed_marks": "\u0327\u0301",
    "joiners": "👩\u200d",
    "nul": "\0",
    "surrogates": "\ud800",
    "blanks": " ",
    "commas": "9,",
    "quotes": "'",
    "special": "[MASK]",
    "hangul": "한",
}
LIMIT_SECONDS = 30.0
"""Generous: one megabyte takes about a second; anything quadratic takes hours."""


def stretch(unit: str, size: int) -> str:
    return unit * (size // len(unit))


@pytest.mark.parametrize("kind", ["small", "wordpiece"])
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
def test_a_long_run_is_encoded_whole(request: pytest.FixtureRequest, kind: str, unit: str) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(kind)
    text = stretch(unit, 100_000)
    started = time.monotonic()
    encoding = tokenizer.encode(text)
    spans = encoding.offsets
    assert time.monotonic() - started < LIMIT_SECONDS
    assert len(spans) == len(encoding.ids)
    assert all(end <= len(text) for _, end in spans)


@pytest.mark.parametrize("kind", ["small", "wordpiece"])
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
def test_with_a_limit_ten_megabytes_cost_nothing(
    request: pytest.FixtureRequest, kind: str, unit: str
) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(kind)
    text = stretch(unit, 10_000_000)
    started = time.monotonic()
    for keep in ("head", "tail"):
        encoding = tokenizer.encode(text, max_length=128, keep=keep)  # type: ignore[arg-type]
        assert len(encoding) <= 128
        assert encoding.truncated > 0
        assert len(encoding.word_starts) == len(encoding)
    assert time.monotonic() - started < LIMIT_SECONDS / 5


def test_arguments_of_another_kind_are_named(small: Tokenizer) -> None:
    unchecked: Any = small  # the type checker would refuse these calls
    with pytest.raises(DataError, match="expected a list"):
        unchecked.encode_batch("one text")
    with pytest.raises(DataError, match="a pair has 2 texts, got a tuple of 3"):
        unchecked.encode_batch([("a", "b", "c")])
    for length in ("8", 8.5, True):
        with pytest.raises(SettingsError, match="expected a whole number or None"):
            unchecked.encode("some text", max_length=length)
    for ids in ("abc", [1.5], [None], [True]):
        with pytest.raises(DataError, match="a token id is a whole number"):
            unchecked.decode(ids)
