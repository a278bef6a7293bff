from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.examples import Example, Label
from litebert.data.split import normalise_text, split_examples, text_key
from litebert.errors import DataError, SettingsError

PATH = Path("made_up.csv")


def examples(labels: list[Label], texts: list[str] | None = None) -> list[Example]:
    return [
        Example(texts[i] if texts else f"text {i}", None, label, PATH, i + 2)
        for i, label in enumerate(labels)
    ]


LABELS = st.lists(st.sampled_from("abcdef"), min_size=2, max_size=120)


@given(LABELS, st.floats(0.02, 0.9), st.integers(0, 9), st.data())
def test_a_split_is_a_partition_that_keeps_texts_together(
    labels: list[Label], fraction: float, seed: int, data: st.DataObject
) -> None:
    numbers = data.draw(st.lists(st.integers(0, 40), min_size=len(labels), max_size=len(labels)))
    texts = [f"{'Text' if i % 2 else 'text'}  {n}" for i, n in enumerate(numbers)]
    rows = examples(labels, texts)
    if len(set(numbers)) < 2:
        with pytest.raises(DataError, match="cannot be split"):
            split_examples(rows, fraction, seed)
        return
    train, evaluation = split_examples(rows, fraction, seed)
    assert train and evaluation
    assert sorted([*train, *evaluation], key=lambda e: e.line) == rows
    assert [e.line for e in train] == sorted(e.line for e in train)
    assert not {text_key(e) for e in train} & {text_key(e) for e in evaluation}
    assert split_examples(rows, fraction, seed) == (train, evaluation)


@given(LABELS, st.floats(0.05, 0.6), st.integers(0, 9))
def test_every_class_keeps_a_training_row_and_its_share(
    labels: list[Label], fraction: float, seed: int
) -> None:
    train, evaluation = split_examples(examples(labels), fraction, seed)
    counts, left = Counter(labels), Counter(e.label for e in train)
    held = Counter(e.label for e in evaluation)
    if len(evaluation) > 1:
        assert set(left) == set(counts)
    for label, count in counts.items():
        assert abs(held[label] - fraction * count) <= 2  # one for rounding, one carried over
    assert abs(len(evaluation) - fraction * len(labels)) <= len(counts) + 1


def test_many_tiny_classes_still_give_their_share() -> None:
    labels: list[Label] = [f"c{i // 4}" for i in range(400)]
    train, evaluation = split_examples(examples(labels), 0.1, 0)
    assert len(evaluation) == 40 and len({e.label for e in train}) == 100


def test_multilabel_and_regression_are_stratified() -> None:
    sets: list[Label] = [("a",), ("a", "b"), ()] * 40
    _, evaluation = split_examples(examples(sets), 0.25, 3)
    assert Counter(e.label for e in evaluation) == {("a",): 10, ("a", "b"): 10, (): 10}
    numbers: list[Label] = [float(i) for i in range(200)]
    _, evaluation = split_examples(examples(numbers), 0.2, 3)
    values = sorted(float(e.label) for e in evaluation)  # type: ignore[arg-type]
    assert len(values) == 40
    for decile in range(10):
        assert sum(20 * decile <= v < 20 * decile + 20 for v in values) == 4


def test_the_seed_matters_and_the_process_does_not() -> None:
    labels: list[Label] = ["a", "b", "c"] * 30
    first = [e.line for e in split_examples(examples(labels), 0.2, 0)[1]]
    assert first != [e.line for e in split_examples(examples(labels), 0.2, 1)[1]]
    code = (
        "from pathlib import Path\nfrom litebert.data.examples import Example\n"
        "from litebert.data.split import split_examples\n"
        "rows=[Example(f'text {i}',None,'abc'[i%3],Path('x'),i+2) for i in range(90)]\n"
        "print([e.line for e in split_examples(rows,0.2,0)[1]])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(first)


def test_two_rows_give_one_each() -> None:
    train, evaluation = split_examples(examples(["a", "b"]), 0.1, 0)
    assert (len(train), len(evaluation)) == (1, 1)


@pytest.mark.parametrize(("fraction", "seed"), [(0.0, 0), (1.0, 0), (-1, 0), (0.1, -1)])
def test_ranges(fraction: float, seed: int) -> None:
    with pytest.raises(SettingsError, match="allowed"):
        split_examples(examples(["a", "b"]), fraction, seed)


def test_normalised_text() -> None:
    assert normalise_text("  Straße\tund\n WEG ") == "strasse und weg"
    with pytest.raises(DataError):
        split_examples([], 0.1, 0)


def test_a_class_of_one_text_is_not_held_out_while_another_can_give(  # a class no training row has
) -> None:
    rows = examples(["a", "b", "b", "c"])
    train, evaluation = split_examples(rows, 0.1, 0)
    assert [e.label for e in evaluation] == ["b"]
    assert {e.label for e in train} == {"a", "b", "c"}
