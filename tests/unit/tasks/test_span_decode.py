"""Decoding against the official procedure, written out pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.batch import EncodedExample
from litebert.errors import DataError
from litebert.model.span_layout import END_COLUMN, RANK_COLUMN, START_BEAM, class_column
from litebert.tasks.records import Feature
from litebert.tasks.span_decode import DecodeOptions, best_spans, class_logits, windows_of
from litebert.tasks.span_windows import Passage, Window

TEXT = "one two  one four five six two eight one ten"


def passage() -> Passage:
    starts, ends, place = [], [], 0
    for word in TEXT.split(" "):
        starts.append(place)
        ends.append(
            min(len(TEXT), place + len(word) + 1)
        )  # the blank behind a word is part of its piece
        place += len(word) + 1
    return Passage(
        TEXT, np.arange(11, dtype=np.int32), np.array(starts, np.int32), np.array(ends, np.int32)
    )


PASSAGE = passage()
OFFSET = 3
MARKS = {(0, 6): [1, 1, 1, 1, 0, 0], (4, 11): [1] * 7, (0, 11): None, (2, 2): []}


def window(bounds: tuple[int, int]) -> Window:
    marks = MARKS[bounds]
    return Window(PASSAGE, *bounds, OFFSET, None if marks is None else np.array(marks, bool))


def slow_nbest(prelim: list[tuple[float, float, str]], n_best: int) -> list[tuple[str, float]]:
    """Sort, drop what was seen, softmax."""
    nbest: list[tuple[str, float]] = []
    for start, end, text in sorted(prelim, key=lambda x: x[0] + x[1], reverse=True):
        if text and text not in [t for t, _ in nbest]:
            nbest.append((text, start + end))
    nbest = nbest[:n_best]
    top = max((score for _, score in nbest), default=0.0)
    total = sum(math.exp(score - top) for _, score in nbest)
    return [(text, math.exp(score - top) / total) for text, score in nbest]


def slow_text(first: int, last: int) -> str:
    return TEXT[PASSAGE.starts[first] : PASSAGE.ends[last]].strip()


def slow_top(values: list[float], count: int) -> list[int]:
    return [i for i, _ in sorted(enumerate(values), key=lambda x: x[1], reverse=True)][:count]


def slow_independent(
    windows, n_best: int, longest: int, kept: int | None = None
) -> list[tuple[str, float]]:
    prelim = []
    for w, output in windows:
        for i in slow_top(output[:, 0].tolist(), n_best):
            for j in slow_top(output[:, 1].tolist(), n_best):
                if not (OFFSET <= i < OFFSET + w.stop - w.start and j < OFFSET + w.stop - w.start):
                    continue
                if (
                    (w.is_best is not None and not w.is_best[i - OFFSET])
                    or j < i
                    or j - i + 1 > longest
                ):
                    continue
                move = w.start - OFFSET
                prelim.append((output[i, 0], output[j, 1], slow_text(i + move, j + move)))
    return slow_nbest(prelim, n_best if kept is None else kept)


NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 2.0]) | st.floats(-30, 30, width=32)
BOUNDS = st.lists(st.sampled_from([(0, 6), (4, 11), (0, 11), (2, 2)]), min_size=1, max_size=3)


def drawn(data: st.DataObject, columns: int):
    result = []
    for bounds in data.draw(BOUNDS):
        rows = OFFSET + bounds[1] - bounds[0] + 1
        values = data.draw(st.lists(NUMBERS, min_size=rows * columns, max_size=rows * columns))
        result.append((window(bounds), np.array(values, np.float64).reshape(rows, columns)))
    return result


@given(st.data(), st.integers(1, 20), st.integers(1, 12))
def test_independent_ends(data: st.DataObject, n_best: int, longest: int) -> None:
    windows = drawn(data, 2)
    found = best_spans(windows, DecodeOptions(False, n_best, longest))
    wanted = slow_independent(windows, n_best, longest)
    if wanted:
        assert [span.text for span in found] == [text for text, _ in wanted]
        assert [span.probability for span in found] == pytest.approx([p for _, p in wanted])
    else:  # differs from the official code: the best span of all, where there is any token
        full = slow_independent(windows, 99, longest, n_best)
        assert [span.probability for span in found] == pytest.approx([p for _, p in full])
    for span in found:
        assert TEXT[span.start : span.end] == span.text == span.text.strip() != ""


def test_a_blank_best_span_leaves_the_best_that_has_words() -> None:
    output = np.zeros((OFFSET + 7, 2))
    output[OFFSET + 2] = 1.0  # the piece of a blank alone
    (found,) = best_spans([(window((0, 6)), output)], DecodeOptions(False, 1, 1))
    assert found.text == "one"


@given(st.data(), st.integers(1, 20), st.integers(1, 12))
def test_joint_ends(data: st.DataObject, n_best: int, longest: int) -> None:
    windows, prelim = [], []
    for w, output in drawn(data, class_column(1)):
        allowed = [0, *range(OFFSET, len(output) - 1)]
        hidden = [i for i in range(len(output)) if i not in allowed]
        output[:, RANK_COLUMN] = -1
        output[np.ix_(hidden, [0, *range(END_COLUMN, class_column())])] = -1e30
        for rank, i in enumerate(slow_top(output[:, 0].tolist(), START_BEAM)):
            if i not in allowed:
                continue
            output[i, RANK_COLUMN] = rank
            ends = output[:, END_COLUMN + rank]
            for j in slow_top(ends.tolist(), 5):
                inside = i >= OFFSET and j >= OFFSET and j in allowed
                if not inside or j < i or j - i + 1 > longest:
                    continue
                if w.is_best is not None and not w.is_best[i - OFFSET]:
                    continue
                move = w.start - OFFSET
                prelim.append((output[i, 0], ends[j], slow_text(i + move, j + move)))
        windows.append((w, output))
    found = best_spans(windows, DecodeOptions(True, n_best, longest))
    wanted = slow_nbest(prelim, n_best)
    assert [span.text for span in found] == [text for text, _ in wanted]
    assert [span.probability for span in found] == pytest.approx([p for _, p in wanted])
    for _, output in windows:
        assert class_logits(output, 1)[0] == output[0, -1]


def feature(rows: int) -> Feature:
    ids = np.zeros(rows, np.int32)
    return Feature(EncodedExample(ids, ids, None, 0), window((0, 11)))


def test_outputs_that_do_not_fit_are_refused() -> None:
    good = np.zeros((15, 2), np.float32)
    assert [len(x) for x in windows_of(2, [feature(15)], [good])] == [1, 0]
    with pytest.raises(DataError, match="0 outputs for 1 windows"):
        windows_of(1, [feature(15)], [])
    with pytest.raises(DataError, match="1 rows of output for a window of 15 tokens"):
        windows_of(1, [feature(15)], [good[:1]])
    with pytest.raises(DataError, match="NaN or infinity; it has diverged"):
        windows_of(1, [feature(15)], [good * np.nan])
    windows = windows_of(1, [feature(15)], [good])[0]
    with pytest.raises(DataError, match="2 columns, the task needs 7"):
        best_spans(windows, DecodeOptions(True, 5, 5))
    with pytest.raises(DataError, match="3 columns, the task needs 2"):
        best_spans([(window((0, 11)), np.zeros((15, 3)))], DecodeOptions(False, 5, 5))
    with pytest.raises(DataError, match="2 columns, the task needs 8"):
        class_logits(good.astype(np.float64), 1)
    assert best_spans([], DecodeOptions(False, 5, 5)) == []
