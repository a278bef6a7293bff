from __future__ import annotations

import json
from pathlib import Path

import pytest

from litebert.data.kinds import LabelFacts, infer_kind
from litebert.data.rows import Row
from litebert.data.schema import Schema, infer_schema
from litebert.data.tables import Table
from litebert.errors import DataError, LitebertError, SettingsError

PATH = Path("made_up.csv")


def table(**columns: list[object]) -> Table:
    names = list(columns)
    rows = [
        Row(dict(zip(names, values, strict=True)), PATH, line)
        for line, values in enumerate(zip(*columns.values(), strict=True), start=2)
    ]
    return Table(PATH, names, rows)


def texts(number: int, word: str = "some words here") -> list[object]:
    return [f"{word} {i}" for i in range(number)]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["pos", "neg"] * 10, "binary"),
        ([0, 1] * 10, "binary"),
        (["0", "1"] * 10, "binary"),
        ([True, False] * 10, "binary"),
        ([0.0, 1.0] * 10, "binary"),
        ([-1, 1] * 10, "binary"),
        (["a", "b", "c", "a"] * 5, "multiclass"),
        ([1, 2, 3, 4, 5] * 4, "multiclass"),
        (list(range(30)) * 10, "multiclass"),
        ([i * 7 for i in range(100)] * 2, "regression"),
        ([i * 7 for i in range(40)] * 25, "multiclass"),
        ([0.5, 1.25, 3.0] * 7, "regression"),
        (["0.500", "5.000"] * 10, "regression"),
        ([["a"], ["a", "b"], []] * 7, "multilabel"),
        (["a|b", "a", "b", "c|a"] * 5, "multilabel"),
        (["x;y", "x", "y;z", "z"] * 5, "multilabel"),
        (["Paris, France", "Rome, Italy"] * 10, "binary"),
        (["5", "four", "3"] * 7, "multiclass"),
    ],
)
def test_kinds(labels: list[object], kind: str) -> None:
    schema = infer_schema(table(text=texts(len(labels)), label=labels))
    assert schema.kind == kind, schema.reasons
    assert schema.text_columns == ("text",) and schema.label_column == "label"
    assert any(f"-> {kind}" in reason for reason in schema.reasons)
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_the_reason_is_a_sentence_with_numbers() -> None:
    schema = infer_schema(table(text=texts(1240), intent=[f"i{i % 8}" for i in range(1240)]))
    assert "label column 'intent': 8 strings in 1,240 rows -> multiclass" in schema.reasons


@pytest.mark.parametrize(
    ("columns", "expected_texts", "expected_label"),
    [
        (("sentence", "label"), ("sentence",), "label"),
        (("id", "review", "sentiment"), ("review",), "sentiment"),
        (("premise", "hypothesis", "gold_label"), ("premise", "hypothesis"), "gold_label"),
        (("Question1", "Question2", "is_duplicate"), ("Question1", "Question2"), "is_duplicate"),
        (("title", "body", "category"), ("title", "body"), "category"),
        (("comment", "spam_class"), ("comment",), "spam_class"),
        (("frage", "absicht"), ("frage",), "absicht"),
        (("idx", "#1 String", "#2 String", "Quality"), ("#1 String", "#2 String"), "Quality"),
    ],
)
def test_columns_by_name_and_content(
    columns: tuple[str, ...], expected_texts: tuple[str, ...], expected_label: str
) -> None:
    values: dict[str, list[object]] = {}
    for name in columns:
        if name in expected_texts:
            values[name] = texts(20, name)
        else:
            values[name] = list(range(20)) if name in ("id", "idx") else ["x", "y"] * 10
    schema = infer_schema(table(**values))
    assert (schema.text_columns, schema.label_column) == (expected_texts, expected_label)
    assert schema.is_pair == (len(expected_texts) == 2)


def test_several_0_1_columns_are_multilabel() -> None:
    data = table(id=list(range(8)), comment_text=texts(8), toxic=["0", "1"] * 4, insult=[0] * 8)
    schema = infer_schema(data)
    assert schema.kind == "multilabel" and schema.label_columns == ("toxic", "insult")
    assert schema.label_column is None and schema.labels == ("toxic", "insult")
    assert infer_schema(data, label_column=["insult", "toxic"]).labels == ("insult", "toxic")


def test_labels_are_ordered_by_number_then_name() -> None:
    labels = infer_schema(table(text=texts(12), label=[10, 9, 2] * 4)).labels
    assert labels == ("2", "9", "10")
    assert infer_schema(table(text=texts(12), label=["b", "a", "C"] * 4)).labels == ("a", "b", "C")


def test_metrics() -> None:
    def metric(labels: list[object], **told: str) -> str:
        return infer_schema(table(text=texts(len(labels)), label=labels), **told).metric

    assert metric(["a"] * 30 + ["b"] * 10) == "accuracy"
    assert metric(["a"] * 31 + ["b"] * 10) == "f1_macro"
    assert metric([0.5, 0.7] * 9) == "pearson_spearman"
    assert metric(["a|b", "a", "b"] * 9) == "f1_micro"
    assert metric(["a", "b"] * 9, metric="matthews") == "matthews"


def test_everything_can_be_told() -> None:
    data = table(note=texts(20), text=texts(20), stars=[1, 2, 3, 4] * 5, label=["a", "b"] * 10)
    schema = infer_schema(
        data, text_columns=["note"], label_column="stars", kind="regression", metric="mae"
    )
    assert (schema.text_columns, schema.label_column) == (("note",), "stars")
    assert (schema.kind, schema.metric, schema.labels) == ("regression", "mae", ())
    schema = infer_schema(data, text_columns=["note", "text"], kind="pairs", labels=["b", "a"])
    assert schema.is_pair and schema.labels == ("b", "a") and schema.kind == "binary"
    unique = table(text=texts(60), label=[f"c{i}" for i in range(60)])
    assert len(infer_schema(unique, kind="multiclass").labels) == 60
    joined = table(text=texts(8), label=["a/b", "a"] * 4)
    schema = infer_schema(joined, kind="multilabel", label_separator="/")
    assert schema.labels == ("a", "b") and schema.label_separator == "/"


@pytest.mark.parametrize(
    ("told", "error", "message"),
    [
        ({"kind": "ranking"}, SettingsError, "kind 'ranking'"),
        ({"text_columns": ["texte"]}, SettingsError, "did you mean 'text'"),
        ({"text_columns": ["qqq"]}, SettingsError, "columns: 'text', 'label'"),
        ({"text_columns": ["text", "label", "text"]}, SettingsError, "3 text columns"),
        (
            {"label_column": "text", "text_columns": ["text"]},
            SettingsError,
            "both texts and labels",
        ),
        ({"kind": "binary"}, SettingsError, "has 3 labels"),
        ({"kind": "pairs"}, DataError, "a pair needs two"),
        ({"kind": "pairs", "text_columns": ["text"]}, SettingsError, "needs two text columns"),
        ({"label_column": ["label", "text"]}, DataError, "no column looks like text"),
        ({"label_column": ["label", "other"], "text_columns": ["text"]}, DataError, "0 or 1"),
    ],
)
def test_wrong_wishes(told: dict[str, object], error: type[LitebertError], message: str) -> None:
    data = table(text=texts(9), label=["a", "b", "c"] * 3)
    if "other" in (told.get("label_column") or ()):  # type: ignore[operator]
        data = table(text=texts(9), label=["a", "b", "c"] * 3, other=[0, 1, 0] * 3)
    with pytest.raises(error, match=message):
        infer_schema(data, **told)  # type: ignore[arg-type]


def test_several_label_columns_are_not_multiclass() -> None:
    data = table(text=texts(4), a=[0, 1] * 2, b=[1, 0] * 2)
    with pytest.raises(SettingsError, match="make a multilabel task"):
        infer_schema(data, kind="multiclass")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": texts(4), "label": ["a"] * 4}, "one label 'a'"),
        ({"text": texts(4), "label": list("abcd")}, "4 different labels in 4 rows"),
        ({"text": texts(60), "label": [f"c{i % 40}" for i in range(60)]}, "40 different labels"),
        ({"text": texts(4), "label": [None] * 4}, "no row has a label"),
        ({"text": texts(4), "label": [[], [], [], []]}, "no row has any label"),
        ({"text": texts(4), "more": texts(4)}, "id or a text"),
        ({"text": texts(4), "x": [None] * 4}, "no column looks like labels"),
        ({"a": [1, 2], "b": [3, 4]}, "no column looks like text"),
    ],
)
def test_tables_that_teach_nothing(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        infer_schema(table(**columns))


def test_a_saved_schema_must_be_whole() -> None:
    with pytest.raises(DataError, match="not a saved schema"):
        Schema.from_json({"kind": "binary"})


def test_a_told_kind_finds_its_separator() -> None:
    facts = LabelFacts.of(["a;b", "b;a", "a", "b"] * 3)
    assert infer_kind(facts, kind="multilabel")[2] == ";"
    assert infer_kind(facts, kind="multiclass")[2] is None
