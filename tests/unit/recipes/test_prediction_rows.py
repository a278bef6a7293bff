from __future__ import annotations

import csv
import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.recipes.prediction_rows import PredictionRows, form_of
from litebert.tasks.base import Prediction

GOOD = Prediction("good", 0.87654321, {"good": 0.87654321, "bad": 0.12345679})
values = st.none() | st.booleans() | st.integers() | st.text() | st.floats()
rows = st.dictionaries(st.text(max_size=5), values | st.lists(values, max_size=3), max_size=4)


def lines(
    form: str, *pairs: tuple[dict, Prediction], columns: tuple[str, ...] | None = None
) -> str:
    return "".join(PredictionRows(pairs, columns).lines(form))


@given(row=rows)
def test_json_lines_are_json_whatever_the_row_holds(row: dict) -> None:
    text = lines("jsonl", (row, GOOD))
    assert text.count("\n") == 1
    encoded = text.encode("utf-8", "backslashreplace")
    result = json.loads(encoded, parse_constant=pytest.fail)
    assert [*result][: len(row)] == [*row]
    assert len(result) == len(row) + 3
    assert [*result.values()][-3:] == ["good", 0.876543, {"good": 0.876543, "bad": 0.123457}]


@given(cells=st.lists(st.text(st.characters(blacklist_characters="\r\x00", codec="utf-8"))))
@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_cells_survive_tables(form: str, delimiter: str, cells: list[str]) -> None:
    pairs = [({"a": cell, "score": cell}, GOOD) for cell in cells]
    text = lines(form, *pairs, columns=("a", "score"))
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    read = list(reader)
    assert reader.fieldnames == ["a", "score", "prediction", "score_new", "scores"]
    assert [(row["a"], row["score"]) for row in read] == [(cell, cell) for cell in cells]


def test_cells_of_other_types() -> None:
    row = {
        "none": None, "yes": True, "list": ["a", "b"], "mixed": [1, "a"], "map": {"é": None},
        "day": dt.date(2024, 2, 29), "price": Decimal("1.50"), "nan": float("nan"),
    }  # fmt: skip
    read = next(csv.DictReader(io.StringIO(lines("csv", (row, GOOD)))))
    assert [read[name] for name in row] == [
        "", "true", "a|b", '[1, "a"]', '{"é": null}', "2024-02-29", "1.50", "nan"
    ]  # fmt: skip
    result = json.loads(lines("jsonl", (row, GOOD)))
    assert (result["day"], result["price"], result["nan"]) == ("2024-02-29", "1.50", None)


def test_plain_answers_stay_on_their_line() -> None:
    pairs = [
        ({}, GOOD),
        ({}, Prediction("a\tb\nc\\", 0.5, {})),
        ({}, Prediction(("x", "y"), 0.25, {})),
        ({}, Prediction((), 0.75, {})),
        ({}, Prediction(1234567.891, 1234567.891, {})),
    ]
    assert lines("plain", *pairs).split("\n") == [
        "good\t0.8765", "a\\tb\\nc\\\\\t0.5000", "x | y\t0.2500", "\t0.7500", "1.23457e+06", ""
    ]  # fmt: skip


def test_labels_in_tables() -> None:
    several = Prediction(("x", "y"), 0.5, {"x": 0.5, "y": 0.9})
    number = Prediction(0.123456789, 0.123456789)
    text = lines("csv", ({}, several), ({}, number), columns=())
    assert text.splitlines()[1:] == ['x|y,0.5,"{""x"": 0.5, ""y"": 0.9}"', "0.123457,0.123457,{}"]


def test_a_header_is_final() -> None:
    assert lines("csv") == ""
    with pytest.raises(DataError, match="row 2 has 'b', which the header has not"):
        lines("csv", ({"a": 1}, GOOD), ({"a": 1, "b": 2}, GOOD))


def test_forms() -> None:
    with pytest.raises(SettingsError, match="allowed: jsonl, csv, tsv, plain"):
        lines("xml")
    names = {"a.CSV": "csv", "b.tab": "tsv", "c.ndjson": "jsonl", "d.txt": "plain", "e.gz": None}
    assert {name: form_of(Path(name)) for name in names} == names
