"""Ten megabytes of text made to be slow are encoded whole, in bounded time."""

from __future__ import annotations

import time

import pytest

from litebert.text import Tokenizer, train_vocabulary

LIMIT_SECONDS = 120.0
"""Generous: a megabyte takes about a second; anything quadratic takes hours."""
SIZE = 10_000_000
UNITS = {
    "letter": "a",
    "marks": "\u0301",
    "joiners": "👩\u200d",
    "nul": "\0",
    "surrogates": "\ud800",
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    sentences = [f"the {a} {b} stood by the door" for a in ("old", "red") for b in ("lamp", "cup")]
    return train_vocabulary(sentences * 5, 40, tmp_path_factory.mktemp("vocabulary"))


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
def test_ten_megabytes_are_encoded_whole(tokenizer: Tokenizer, unit: str) -> None:
    text = unit * (SIZE // len(unit))
    started = time.monotonic()
    encoding = tokenizer.encode(text)
    assert time.monotonic() - started < LIMIT_SECONDS
    assert encoding.truncated == 0
    assert encoding.ids[0] == tokenizer.cls_id
