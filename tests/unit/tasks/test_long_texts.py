"""Texts longer than the model reads: windows, their means, and the texts that are not long."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.examples import Example
from litebert.errors import CheckpointError
from litebert.tasks import SequenceClassification, parse_task
from litebert.tasks.calibration import sigmoid, softmax
from litebert.tasks.long_texts import (
    MOST_WINDOWS,
    encode_long,
    gather_texts,
    loses_pieces,
    text_bounds,
    usual_stride,
    window_starts,
)
from litebert.text.tokenizer import Tokenizer

WORDS = ("kettle", "lamp", "chair", "radio", "book", "parcel", "ladder", "carpet")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=90).map(" ".join)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("words")
    pieces = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    names = ["[PAD]", "[UNK]", *pieces[2:]]
    (folder / "vocab.txt").write_text("\n".join([*names, *WORDS]) + "\n", encoding="utf-8")
    return Tokenizer.from_pretrained(folder)


def task(stride: int | None = 5, *, is_pair: bool = False, length: int = 12):
    columns = ("first", "second") if is_pair else ("text",)
    return SequenceClassification(
        kind="binary", labels=("no", "yes"), metric="accuracy", text_columns=columns,
        max_length=length, stride=stride,
    )  # fmt: skip


def example(text: str, pair: str | None = None, label: str | None = "yes") -> Example:
    return Example(text, pair, label, Path("t.csv"), 2)


@given(
    total=st.integers(0, 400), room=st.integers(1, 40), data=st.data(), at_most=st.integers(1, 30)
)
def test_windows_cover_the_text_and_are_full(
    total: int, room: int, data: st.DataObject, at_most: int
) -> None:
    stride = data.draw(st.integers(1, room))
    starts = window_starts(total, room, stride, 1000)
    assert starts[0] == 0 and starts == sorted(set(starts))
    assert set(range(total)) == {p for s in starts for p in range(s, min(s + room, total))}
    assert total <= room or all(start + room <= total for start in starts)
    assert all(b - a <= stride for a, b in pairwise(starts))
    few = window_starts(total, room, stride, at_most)
    assert len(few) == min(len(starts), at_most)
    assert few[-1] == starts[-1] or at_most == 1


@given(text=TEXTS)
def test_one_text_is_read_whole_and_a_short_one_as_before(text: str, tokenizer: Tokenizer) -> None:
    cut, whole = task(None), task()
    windows = encode_long(whole, example(text), tokenizer, index=7)
    old = cut.encode(example(text), tokenizer, index=7)
    pieces = tokenizer.pieces(text).ids
    if len(pieces) <= 10:
        assert len(windows) == 1
    assert np.array_equal(windows[0].ids, old.ids)
    assert np.array_equal(windows[0].type_ids, old.type_ids)
    assert {w.index for w in windows} == {7} and {w.label for w in windows} == {1}
    inner = [w.ids[1:-1].tolist() for w in windows]
    assert all(w.ids[0] == tokenizer.cls_id and w.ids[-1] == tokenizer.sep_id for w in windows)
    starts = window_starts(len(pieces), 10, 5)
    assert inner == [pieces[start : start + 10] for start in starts]
    assert len(encode_long(cut, example(text), tokenizer)) == 1


@given(first=TEXTS, second=TEXTS)
def test_the_longer_text_of_a_pair_slides(first: str, second: str, tokenizer: Tokenizer) -> None:
    windows = encode_long(task(is_pair=True), example(first, second), tokenizer)
    a, b = tokenizer.pieces(first).ids, tokenizer.pieces(second).ids
    assert all(len(w) <= 12 and w.ids[-1] == tokenizer.sep_id for w in windows)
    halves = [(w.ids[w.type_ids == 0].tolist(), w.ids[w.type_ids == 1].tolist()) for w in windows]
    if len(a) + len(b) <= 9:
        assert [(x[1:-1], y[:-1]) for x, y in halves] == [(a, b)]
        return
    moves_first = len(a) > len(b)
    still = (b if moves_first else a)[:4]
    seen: set[int] = set()
    for x, y in halves:
        fixed, moving = (y[:-1], x[1:-1]) if moves_first else (x[1:-1], y[:-1])
        assert fixed == still
        assert len(fixed) + len(moving) == 9
        seen.update(moving)
    assert seen == set(a if moves_first else b)
    is_lost = min(len(a), len(b)) > 4
    assert loses_pieces(task(is_pair=True), [len(a), len(b)], MOST_WINDOWS) == is_lost


def test_what_is_lost(tokenizer: Tokenizer) -> None:
    assert not loses_pieces(task(None), [10]) and loses_pieces(task(None), [11])
    assert not loses_pieces(task(), [10 + 5 * 31]) and loses_pieces(task(), [10 + 5 * 31 + 1])
    text = " ".join(WORDS * 2000)
    windows = encode_long(task(), example(text), tokenizer)
    assert len(windows) == MOST_WINDOWS
    pieces = tokenizer.pieces(text).ids
    assert windows[-1].ids[1:-1].tolist() == pieces[-10:]
    blanks = encode_long(task(), example("lamp " + " " * 9000 + "chair"), tokenizer)
    assert len(blanks) == 1 and len(blanks[0]) == 4, "what stands behind many blanks is read, too"


@given(counts=st.lists(st.integers(1, 5), min_size=1, max_size=8), data=st.data())
def test_the_mean_of_logits_is_the_mean_of_log_probabilities(
    counts: list[int], data: st.DataObject
) -> None:
    rows = sum(counts)
    logits = np.array(
        data.draw(st.lists(st.floats(-9, 9, width=32), min_size=3 * rows, max_size=3 * rows)),
        np.float32,
    ).reshape(rows, 3)
    bounds = np.cumsum([0, *counts[:-1]])
    got = gather_texts(logits, bounds)
    for row, start, count in zip(got, bounds, counts, strict=True):
        part = logits[start : start + count]
        if count == 1:
            assert np.array_equal(row, part[0])
        mean = np.exp(np.log(softmax(part)).mean(axis=0))
        assert softmax(row[None])[0] == pytest.approx(mean / mean.sum(), abs=1e-6)
        odds = np.exp((np.log(sigmoid(part)) - np.log(1 - sigmoid(part))).mean(axis=0))
        assert sigmoid(row) == pytest.approx(odds / (1 + odds), abs=1e-5)
        assert row == pytest.approx(part.mean(axis=0), abs=1e-5)


def test_windows_of_a_text_stand_together(tokenizer: Tokenizer) -> None:
    texts = ["lamp", " ".join(WORDS * 3), "chair book", " ".join(WORDS * 2)]
    encoded = [
        w for i, t in enumerate(texts) for w in encode_long(task(), example(t), tokenizer, index=i)
    ]
    assert text_bounds(encoded).tolist() == [0, 1, 5, 6]
    assert text_bounds([]).tolist() == []
    same = np.ones((len(encoded), 2), np.float32)
    assert gather_texts(same[:4], np.arange(4)) is not None
    assert gather_texts(same, text_bounds(encoded)).shape == (4, 2)


def test_the_stride_is_stored_and_checked() -> None:
    assert parse_task(task(3).to_json()) == task(3)
    assert '"stride"' not in task(None).to_json()
    assert usual_stride(12) == 5 and usual_stride(3) == 1
    for stride in (11, 0, -1):
        with pytest.raises(ValueError, match="stride"):
            task(stride)
    text = task(3).to_json().replace('"stride": 3', '"stride": 30')
    with pytest.raises(CheckpointError, match="would skip pieces"):
        parse_task(text)
