"""Slices: every example is in one part of each kind, and the parts add up to the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.examples import Example
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.records import Answer
from litebert.tasks.slices import MIN_EXAMPLES, record_slices, shared_words, slice_scores

HERE = Path("t.csv")


def example(text: str, label: Any = None, pair: str | None = None, line: int = 1) -> Example:
    return Example(text=text, pair=pair, label=label, path=HERE, line=line)


def by(slices: Any, kind: str) -> list[Any]:
    return [item for item in slices if item.by == kind]


def make(kind: str, **options: Any) -> SequenceClassification:
    metric = {"regression": "pearson", "multilabel": "f1_micro"}.get(kind, "accuracy")
    labels = {} if kind == "regression" else {"labels": ("bad", "good", "odd")}
    return SequenceClassification.model_validate(
        {"kind": kind, "metric": metric} | labels | options
    )


TEXT = st.text(max_size=40)


@given(
    st.lists(
        st.tuples(TEXT, st.integers(0, 2), st.integers(0, 2)), min_size=MIN_EXAMPLES, max_size=60
    )
)
def test_the_parts_of_each_kind_add_up_to_the_whole(rows: list[tuple[str, int, int]]) -> None:
    task = make("multiclass")
    labels = np.array([truth for _, truth, _ in rows])
    logits = np.eye(3)[[answer for *_, answer in rows]] * 4.0
    whole = task.score(logits, labels)["accuracy"]
    slices = slice_scores(task, logits, labels, [example(text) for text, *_ in rows])
    for kind in ("length", "class"):
        parts = by(slices, kind)
        if not parts:
            assert kind == "length" and len({len(text) for text, *_ in rows}) == 1
            continue
        assert sum(part.count for part in parts) == len(rows)
        total = sum(part.count * part.scores["accuracy"] for part in parts) / len(rows)
        assert total == pytest.approx(whole)
    for part in by(slices, "class"):
        index = task.labels.index(part.name)
        chosen = labels == index
        assert part.scores["accuracy"] == pytest.approx((logits.argmax(1) == labels)[chosen].mean())


def test_quarters_are_about_equal_and_ties_stay_together() -> None:
    task = make("multiclass")
    texts = ["a" * n for n in (*range(1, 31), *[200] * 10)]
    labels = np.arange(40) % 3
    logits = np.eye(3)[labels]
    parts = by(slice_scores(task, logits, labels, [example(t) for t in texts]), "length")
    assert [part.count for part in parts] == [10, 10, 10, 10]
    assert parts[0].name == "1 to 10 characters"
    assert parts[-1].name == "200 to 200 characters"
    same = slice_scores(task, logits, labels, [example("same") for _ in texts])
    assert by(same, "length") == []
    assert slice_scores(task, logits[:19], labels[:19], [example("a")] * 19) == ()


def test_pairs_are_told_apart_by_what_they_share() -> None:
    task = make("multiclass", text_columns=("first", "second"))
    pairs = [("the red lamp", "the red lamp")] * 20 + [("the red lamp", "it rains again")] * 20
    labels = np.array([1] * 20 + [0] * 20)
    logits = np.eye(3)[
        [1] * 40
    ]  # the trap: everything that looks alike and everything that does not
    found = slice_scores(task, logits, labels, [example(a, pair=b) for a, b in pairs])
    low, high = by(found, "overlap")
    assert (low.name, high.name) == ("0% to 0% of the words", "100% to 100% of the words")
    assert (low.scores["accuracy"], high.scores["accuracy"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        ("", "a b", 0.0),
        ("!!!", "...", 0.0),
        ("A b", "a B c", 1.0),
        ("the cat", "the dog", 0.5),
        ("don't stop", "stop", 1.0),
        ("東京の塔", "東京は雨", 2 / 4),  # each Chinese character is a word, a run of kana too
        ("é e", "é", 1.0),
    ],
)
def test_shared_words(first: str, second: str, share: float) -> None:
    assert shared_words(first, second) == pytest.approx(share)
    assert shared_words(second, first) == pytest.approx(share)


@given(TEXT, TEXT)
def test_a_share_is_a_share(first: str, second: str) -> None:
    assert 0.0 <= shared_words(first, second) <= 1.0


def test_numbers_are_sliced_by_target_and_scored_by_their_error() -> None:
    task = make("regression", target_mean=10.0, target_scale=2.0)
    labels = np.linspace(-1.0, 1.0, 40)
    answers = labels.copy()
    answers[30:] -= 1.5  # three units of the target too low where targets are high
    found = slice_scores(
        task, answers[:, None], labels, [example("a" * (i + 1)) for i in range(40)]
    )
    parts = by(found, "target")
    assert len(parts) == 4 and list(parts[0].scores) == ["mae"]
    assert parts[0].scores["mae"] == pytest.approx(0.0)
    assert parts[3].scores["mae"] == pytest.approx(3.0)
    assert set(by(found, "length")[0].scores) == {"pearson", "mae"}


def test_several_labels_are_sliced_by_each() -> None:
    task = make("multilabel")
    labels = np.zeros((30, 3), np.float32)
    labels[:20, 0] = labels[10:, 1] = 1
    logits = np.where(labels == 1, 5.0, -5.0)
    logits[:10, 0] = -5.0
    parts = by(slice_scores(task, logits, labels, [example("a" * i) for i in range(30)]), "class")
    assert [(p.name, p.count) for p in parts] == [("bad", 20), ("good", 20)]
    assert parts[0].scores["subset_accuracy"] == pytest.approx(0.5)


class _Task:
    metric = "right"

    def evaluate(self, records: Any, answers: Any) -> dict[str, float]:
        assert len(records) == len(answers) > 0
        hits = [record == answer.value for record, answer in zip(records, answers, strict=True)]
        return {"right": sum(hits) / len(hits), "other": 0.0}

    def show(self, record: str) -> dict[str, Any]:
        return {"label": record}


def test_records_are_sliced_by_length_and_by_a_label_that_is_a_word() -> None:
    records = ["yes"] * 20 + ["no"] * 20
    answers = [Answer("yes", 0.5)] * 40
    found = record_slices(_Task(), records, answers, list(range(40)))  # type: ignore[arg-type]
    assert [(p.name, p.scores) for p in by(found, "class")] == [
        ("no", {"right": 0.0}), ("yes", {"right": 1.0})
    ]  # fmt: skip
    assert sum(part.count for part in by(found, "length")) == 40
    spans = [[0, 1]] * 40
    plain = record_slices(_Task(), spans, answers, [3] * 40)  # type: ignore[arg-type]
    assert plain == ()
    assert record_slices(_Task(), records[:5], answers[:5], [1] * 5) == ()  # type: ignore[arg-type]
