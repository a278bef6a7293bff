"""Label order is natural and stable; an unknown label names the nearest known one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError
from litebert.tasks.labels import find_label, label_order


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


def test_unknown_label_names_the_nearest_and_the_place():
    ids = {"refund": 0, "delivery": 1}
    assert find_label("delivery", ids) == 1
    with pytest.raises(DataError, match=r"reviews\.csv:7: .*did you mean 'refund'\?"):
        find_label("refnud", ids, path=Path("reviews.csv"), line=7)
    with pytest.raises(DataError, match="known: 'refund', 'delivery'"):
        find_label("zzzz", ids)
    with pytest.raises(DataError, match=r"'8', '9', \.\.\."):
        find_label("zzzz", {str(i): i for i in range(12)})
