"""Label order is natural and stable, whoever asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.labels import label_order
from litebert.data.sources import load_source


@pytest.mark.parametrize(
    ("given_labels", "expected"),
    [
        (["10", "2", "1"], ("1", "2", "10")),
        (["1", "-1", "0"], ("-1", "0", "1")),
        (["2.5", "10", "0"], ("0", "2.5", "10")),
        (["class10", "class2", "class1"], ("class1", "class2", "class10")),
        (["b", "A", "c"], ("A", "b", "c")),
        (["yes", "no", "yes"], ("no", "yes")),
        (["nan", "inf", "1"], ("1", "inf", "nan")),
        (["猫", "犬"], ("犬", "猫")),
        (["²", "1"], ("1", "²")),
        (["01", "1"], ("01", "1")),
        ([], ()),
    ],
)
def test_order(given_labels, expected):
    assert label_order(given_labels) == expected


@given(st.lists(st.text(max_size=8), max_size=12), st.randoms())
def test_order_does_not_depend_on_the_order_of_the_data(labels, random):
    shuffled = labels * 2
    random.shuffle(shuffled)
    assert label_order(shuffled) == label_order(labels)
    assert set(label_order(labels)) == set(labels)


def test_very_long_numbers_in_names_are_ordered():
    small, large = "x" + "9" * 5000, "x1" + "0" * 5000
    assert label_order([large, small]) == (small, large)


def test_the_schema_of_a_table_has_this_order(tmp_path: Path) -> None:
    names = ["class10", "nan", "class2", "3", "Class1", "inf"]
    rows = "".join(f"some words {i},{name}\n" for i in range(3) for name in names)
    (tmp_path / "t.csv").write_text("text,label\n" + rows)
    found = load_source(tmp_path / "t.csv").schema(label_column="label", kind="multiclass").labels
    assert found == label_order(names) == ("3", "Class1", "class2", "class10", "inf", "nan")
