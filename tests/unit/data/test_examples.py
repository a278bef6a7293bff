from __future__ import annotations

from pathlib import Path

import pytest

from litebert.data.examples import make_examples
from litebert.data.labels import indicator, label_number, label_parts, label_text
from litebert.data.rows import BadRows, Row
from litebert.data.schema import Schema
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

PATH = Path("eval.csv")


def table(*values: dict[str, object]) -> Table:
    return Table(PATH, list(values[0]), [Row(dict(v), PATH, i + 2) for i, v in enumerate(values)])


SINGLE = Schema(("text",), "label", "multiclass", ("refund", "status", "cancel"))


def test_single_label_and_pair() -> None:
    examples = make_examples(table({"text": "a", "label": "status"}), SINGLE)
    assert (examples[0].text, examples[0].pair, examples[0].label) == ("a", None, "status")
    assert (examples[0].path, examples[0].line) == (PATH, 2)
    pair = Schema(("one", "two"), "y", "binary", ("0", "1"))
    (example,) = make_examples(table({"one": "a", "two": 12, "y": 1.0}), pair)
    assert (example.pair, example.label) == ("12", "1")


def test_multilabel_forms() -> None:
    lists = Schema(("text",), "label", "multilabel", ("a", "b"))
    assert make_examples(table({"text": "t", "label": ["b", "a", "b"]}), lists)[0].label == (
        "a",
        "b",
    )
    assert make_examples(table({"text": "t", "label": []}), lists)[0].label == ()
    joined = lists.replace(label_separator="|")
    assert make_examples(table({"text": "t", "label": " b | a"}), joined)[0].label == ("a", "b")
    flags = Schema(("text",), None, "multilabel", ("p", "q"), label_columns=("p", "q"))
    assert make_examples(table({"text": "t", "p": "1", "q": False}), flags)[0].label == ("p",)
    with pytest.raises(DataError, match="allowed: 0 and 1") as caught:
        make_examples(table({"text": "t", "p": "1", "q": "2"}), flags)
    assert (caught.value.line, caught.value.column) == (2, "q")


def test_regression() -> None:
    schema = Schema(("text",), "score", "regression", ())
    assert make_examples(table({"text": "t", "score": " 3.5 "}), schema)[0].label == 3.5
    for wrong in ("x", None, "nan", float("inf"), "1_0", True, [1]):
        with pytest.raises(DataError, match="finite number"):
            make_examples(table({"text": "t", "score": wrong}), schema)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "t", "label": "refun"}, "did you mean 'refund'"),
        ({"text": "t", "label": "zzz"}, "known: cancel, refund, status"),
        ({"text": "t", "label": None}, "label is missing"),
        ({"text": "t", "label": ["refund"]}, "one label a row"),
        ({"text": " \n", "label": "refund"}, "text is empty"),
        ({"text": None, "label": "refund"}, "text is empty"),
        ({"text": {"a": 1}, "label": "refund"}, "where a text should be"),
        ({"text": True, "label": "refund"}, "where a text should be"),
    ],
)
def test_bad_rows_name_file_line_and_column(row: dict[str, object], message: str) -> None:
    good = {"text": "fine", "label": "refund"}
    with pytest.raises(DataError, match=message) as caught:
        make_examples(table(good, row), SINGLE)
    assert (caught.value.path, caught.value.line) == (PATH, 3)
    assert caught.value.column in ("text", "label")
    data = table(good, row)
    assert len(make_examples(data, SINGLE, "skip")) == 1
    assert len(data.skipped) == 1 and data.skipped[0].line == 3
    elsewhere: list[object] = []
    make_examples(data, SINGLE, "skip", skipped=elsewhere)  # type: ignore[arg-type]
    assert len(elsewhere) == 1 and len(data.skipped) == 1


def test_missing_columns_and_unlabelled_tables() -> None:
    data = table({"text": "t"})
    with pytest.raises(SettingsError, match="no column 'label'"):
        make_examples(data, SINGLE)
    assert make_examples(data, SINGLE, labelled=False)[0].label is None
    with pytest.raises(SettingsError, match="no column 'text'"):
        make_examples(table({"words": "t", "label": "x"}), SINGLE)


def test_label_cells() -> None:
    cells = {None: "", True: "true", 2.0: "2", 2.5: "2.5", 7: "7", " x ": "x", float("nan"): ""}
    assert {cell: label_text(cell) for cell in cells} == cells
    assert label_parts("a", None) == ("a",) and label_parts(None, "|") == ()
    assert label_number("1e3") == 1000.0 and label_number(10**400) is None
    assert [indicator(x) for x in (1, "0", True, "x", None)] == [True, False, True, None, None]


def test_the_policy_has_two_words() -> None:
    with pytest.raises(SettingsError, match="allowed: 'error', 'skip'"):
        BadRows(PATH, "ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (None, "the label is missing; give \\[\\]"),
        (["a", None], "got None among the labels"),
        ({"y": 1}, "got {'y': 1} among the labels"),
        (["a", ["b"]], "among the labels"),
    ],
)
def test_a_multilabel_cell_that_hides_something_is_a_bad_row(cell: object, message: str) -> None:
    schema = Schema(("text",), "label", "multilabel", ("a", "b", "None", "{'y': 1}", "['b']"))
    with pytest.raises(DataError, match=message):
        make_examples(table({"text": "t", "label": cell}), schema)
    (example,) = make_examples(table({"text": "t", "label": ""}), schema)
    assert example.label == ()
