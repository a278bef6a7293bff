"""Sequence classification: label maps, encoding, decoding, scoring, and its file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.tasks import TASKS, Prediction, SequenceClassification, load_task, parse_task

HERE = Path("reviews.csv")


@dataclass
class Row:
    """Has the attributes of `litebert.data.examples.Example`."""

    label: object = None
    text: str = "a text"
    pair: str | None = None
    path: Path = HERE
    line: int = 3


@dataclass
class LetterTokenizer:
    """One id per letter; remembers how it was called."""

    calls: list[tuple] = field(default_factory=list)

    def encode(self, text, pair=None, max_length=None):
        self.calls.append((text, pair, max_length))
        ids = [2, *(ord(c) for c in text), 3]
        type_ids = [0] * len(ids)
        if pair is not None:
            more = [*(ord(c) for c in pair), 3]
            ids, type_ids = ids + more, type_ids + [1] * len(more)
        return SimpleNamespace(ids=ids[:max_length], type_ids=type_ids[:max_length])


def task(kind="multiclass", labels=("a", "b", "c"), metric=None, **options):
    metric = metric or {"multilabel": "f1_micro", "regression": "pearson"}.get(kind, "accuracy")
    return SequenceClassification(kind=kind, labels=labels, metric=metric, **options)


ALL = [
    task(),
    task("binary", ("no", "yes"), "f1", text_columns=("premise", "hypothesis")),
    task("multilabel", ("x", "y"), threshold=0.3, label_separator="|"),
    task("regression", (), target_mean=2.5, target_scale=1.5, label_column="stars"),
]


def test_labels_come_from_the_data_in_natural_order():
    made = SequenceClassification.from_examples("multiclass", [Row(x) for x in ("10", "2", "1")])
    assert made.labels == ("1", "2", "10")
    assert made.config_labels() == {0: "1", 1: "2", 2: "10"}
    assert made.metric == "accuracy"


def test_several_labels_and_numbers_as_labels():
    rows = [Row(("news", "sport")), Row(()), Row(("art",))]
    made = SequenceClassification.from_examples("multilabel", rows, metric="macro_f1")
    assert made.labels == ("art", "news", "sport") and made.metric == "f1_macro"
    assert made.encode_label(rows[0]).tolist() == [0.0, 1.0, 1.0]
    assert made.encode_label(rows[1]).tolist() == [0.0, 0.0, 0.0]
    floats = SequenceClassification.from_examples("binary", [Row(0.0), Row(1.0)])
    assert floats.labels == ("0", "1") and floats.encode_label(Row(1.0)) == 1
    assert floats.encode_label(Row(("1",))) == 1


def test_regression_learns_standardised_targets():
    made = SequenceClassification.from_examples("regression", [Row(1.0), Row("2"), Row(6)])
    assert made.target_mean == pytest.approx(3.0)
    codes = [made.encode_label(Row(x)) for x in (1.0, 2.0, 6.0)]
    assert np.mean(codes) == pytest.approx(0.0, abs=1e-12)
    assert np.std(codes) == pytest.approx(1.0)
    np.testing.assert_allclose(made.values(np.array(codes)[:, None]), [1, 2, 6])
    assert made.config_labels() == {0: "label"}


@pytest.mark.parametrize("made", ALL, ids=lambda t: t.kind)
def test_the_schema_of_a_task_builds_the_same_task(made):
    labels = {"multilabel": ("x",), "regression": 1.0}.get(made.kind, made.config_labels()[0])
    again = SequenceClassification.from_schema(made.table_schema, [Row(labels)])
    assert again.table_schema == made.table_schema
    assert again.config_labels() == made.config_labels()
    assert again.is_pair == made.table_schema.is_pair


def test_constant_targets_stay_finite():
    made = SequenceClassification.from_examples("regression", [Row(4.0), Row(4.0)])
    assert (made.target_scale, made.encode_label(Row(4.0))) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        ("multiclass", [], "no example has a label"),
        ("multiclass", [None], "no example has a label"),
        ("multiclass", ["one", "one"], "at least 2 labels, got 1"),
        ("binary", ["a", "b", "c"], "exactly 2 labels, got 3"),
        ("multilabel", [(), ()], "at least 1 label"),
        ("regression", ["much"], r"reviews\.csv:3: target 'much' is not a finite number"),
        ("regression", [float("nan")], "not a finite number"),
        ("regression", [("1", "2")], "not a finite number"),
        ("binary", [("a", "b")], "2 labels in one example"),
    ],
)
def test_labels_that_teach_nothing_are_refused(kind, labels, message):
    with pytest.raises(DataError, match=message):
        SequenceClassification.from_examples(kind, [Row(x) for x in labels])


def test_a_metric_of_another_kind_is_refused():
    with pytest.raises(SettingsError, match="'pearson' does not exist for binary"):
        SequenceClassification.from_examples("binary", [Row("a"), Row("b")], metric="pearson")


@pytest.mark.parametrize(
    "options",
    [
        {"labels": ("a", "a")},
        {"labels": ("a",)},
        {"kind": "regression"},
        {"metric": "pearson"},
        {"temperature": 0.0},
        {"temperature": float("inf")},
        {"threshold": 1.5},
        {"text_columns": ()},
        {"text_columns": ("a", "b", "c")},
        {"target_scale": 0},
        {"max_length": 2},
        {"colour": "red"},
    ],
)
def test_contradictions_are_refused(options):
    with pytest.raises(ValueError, match=r"."):
        task(**options)


def test_encoding_keeps_ids_types_and_index():
    tokenizer = LetterTokenizer()
    got = task().encode(Row("b", text="hi"), tokenizer, 16, index=7)
    assert got.ids.tolist() == [2, ord("h"), ord("i"), 3]
    assert got.type_ids.tolist() == [0, 0, 0, 0]
    assert (got.label, got.index) == (1, 7)
    assert tokenizer.calls == [("hi", None, 16)]
    assert task(max_length=9).encode(Row(), tokenizer).label is None
    assert tokenizer.calls[-1][2] == 9


def test_pairs_are_encoded_as_pairs_and_only_where_trained_so():
    pair_task = ALL[1]
    got = pair_task.encode(Row("yes", text="a", pair="b"), LetterTokenizer(), 16)
    assert got.type_ids.tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(DataError, match=r"got one text, but .* premise \+ hypothesis"):
        pair_task.encode(Row("yes"), LetterTokenizer(), 16)
    with pytest.raises(DataError, match="got a pair of texts"):
        task().encode(Row("a", pair="b"), LetterTokenizer(), 16)


def test_an_unknown_label_names_file_and_line():
    with pytest.raises(DataError, match=r"reviews\.csv:3: label 'd'"):
        task().encode_label(Row("d"))


def test_decoding_applies_the_temperature():
    logits = np.array([[2.0, 0.0, -2.0], [0.0, 0.0, 5.0]])
    cold, warm = task().decode(logits), task(temperature=4.0).decode(logits)
    assert [p.label for p in cold] == [p.label for p in warm] == ["a", "c"]
    assert all(w.score < c.score for w, c in zip(warm, cold, strict=True))
    assert list(cold[0].scores) == ["a", "b", "c"]
    assert sum(cold[0].scores.values()) == pytest.approx(1.0)


def test_decoding_several_labels_applies_the_threshold():
    got = ALL[2].decode(np.array([[-0.5, 3.0], [-9.0, -9.0]]))
    assert got[0].label == ("y", "x")
    assert got[1].label == () and got[1].score == pytest.approx(1.0, abs=1e-3)
    assert got[0].score == pytest.approx(1 / (1 + np.exp(0.5)))


def test_decoding_a_number_undoes_the_standardisation():
    (got,) = ALL[3].decode(np.array([[2.0]]))
    assert got == Prediction(label=5.5, score=5.5)
    assert got.to_json() == {"prediction": 5.5, "score": 5.5, "scores": {}}


def test_prediction_as_json_keeps_the_published_columns():
    got = Prediction(label=("x",), score=0.5, scores={"x": 0.5})
    assert json.dumps(got.to_json()) == (
        '{"prediction": ["x"], "score": 0.5, "scores": {"x": 0.5}}'
    )


def test_scores_hold_the_main_metric_and_the_calibration():
    rng = np.random.default_rng(0)
    for made in ALL:
        width = len(made.config_labels())
        logits = rng.normal(size=(20, width))
        labels = {
            "multilabel": rng.integers(0, 2, (20, width)).astype(np.float32),
            "regression": rng.normal(size=20).astype(np.float32),
        }.get(made.kind, rng.integers(0, width, 20))
        scores = made.score(logits, labels)
        assert made.metric in scores
        assert ("ece" in scores) == (made.kind != "regression")
        assert all(np.isfinite(value) for value in scores.values())


def test_regression_is_scored_in_units_of_the_target():
    codes = np.array([0.0, 1.0, 2.0])
    scores = ALL[3].score((codes + 1)[:, None], codes)
    assert scores["mae"] == pytest.approx(1.5)
    assert scores["pearson"] == pytest.approx(1.0)


def test_calibration_lowers_the_loss_and_keeps_the_answers():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 300)
    logits = 8 * rng.normal(size=(300, 3)) + 4 * np.eye(3)[labels]
    before, after = task(), task().calibrated(logits, labels)
    assert after.temperature > 1
    assert after.score(logits, labels)["log_loss"] < before.score(logits, labels)["log_loss"]
    assert after.score(logits, labels)["accuracy"] == before.score(logits, labels)["accuracy"]
    assert ALL[3].calibrated(np.zeros((2, 1)), np.zeros(2)) is ALL[3]
    several = ALL[2].calibrated(logits[:, :2], np.eye(3)[labels][:, :2])
    assert several.temperature > 1


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.zeros((2, 2)), r"the task has 3 outputs and needs \[N, 3\]"),
        (np.zeros(3), "shape"),
        (np.array([[0, 0, 0], [0, np.nan, 0]]), "NaN or infinity for 1 of 2 examples"),
    ],
)
def test_logits_that_do_not_fit_are_refused(logits, message):
    with pytest.raises(DataError, match=message):
        task().decode(logits)


def test_a_number_has_no_probability():
    with pytest.raises(DataError, match="no probabilities"):
        ALL[3].probabilities(np.zeros((1, 1)))


@pytest.mark.parametrize("made", ALL, ids=lambda t: t.kind)
def test_the_file_gives_the_task_back(made, tmp_path):
    (tmp_path / "task.json").write_text(made.to_json(), encoding="utf-8")
    assert load_task(tmp_path) == made
    assert made.problem_type in (
        "single_label_classification", "multi_label_classification", "regression",
    )  # fmt: skip
    assert made.head == "sequence" and made.name in TASKS


@given(st.lists(st.text(min_size=1, max_size=10), min_size=2, max_size=8, unique=True),
       st.floats(0.05, 20))  # fmt: skip
def test_any_label_names_survive_the_file(labels, temperature):
    made = task(labels=tuple(labels), temperature=temperature)
    assert parse_task(json.dumps(json.loads(made.to_json()))) == made


def stored(**changes):
    return json.dumps(json.loads(task().to_json()) | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "expected a JSON object, got list"),
        ("{}", "format_version is None"),
        (stored(format_version=True), "format_version is True"),
        (stored(format_version=99), "this litebert reads up to 1; update"),
        (stored(task="os:system"), "task 'os:system' is not known"),
        (stored(task=None), "task None is not known"),
        (stored(labels=["a"]), "at least 2 labels"),
        (stored(temperature="hot"), "temperature"),
        (stored(colour="red"), "colour"),
        (stored(kind="poem"), "kind"),
    ],
)
def test_broken_files_are_refused(text, message):
    with pytest.raises(CheckpointError, match=message):
        parse_task(text)


def test_missing_and_unreadable_files_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"there is no task\.json"):
        load_task(tmp_path)
    path = tmp_path / "task.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(CheckpointError, match="not valid JSON"):
        load_task(tmp_path)
    with path.open("wb") as file:
        file.truncate(20_000_000)
    with pytest.raises(CheckpointError, match="allowed are 16,000,000"):
        load_task(tmp_path)


@pytest.mark.parametrize("temperature", [0.0, 1e-320, 1e308, -1.0, float("nan"), float("inf")])
def test_a_temperature_that_breaks_probabilities_is_refused(temperature):
    text = json.dumps(json.loads(task().to_json()) | {"temperature": temperature})
    with pytest.raises(CheckpointError, match="temperature"):
        parse_task(text)


@pytest.mark.filterwarnings("error")
def test_targets_beyond_the_number_types_are_refused():
    with pytest.raises(DataError, match=r"a target is 1e\+300, allowed are -1e\+30 to 1e\+30"):
        SequenceClassification.from_examples("regression", [Row(1.0), Row(-1e300)])
    made = SequenceClassification.from_examples("regression", [Row(1e30), Row(-1e30)])
    assert made.target_scale == pytest.approx(1e30)
