"""Every task: reads labels, encodes, decodes, scores, and survives its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.data.batch import collate
from litebert.data.examples import Example
from litebert.errors import CheckpointError
from litebert.model.head_kinds import HEADS
from litebert.model.presets import preset
from litebert.tasks import TASKS, Prediction, Task, load_task, parse_task
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

TEXTS = ["the first one is fine", "the second is not", "a third lies between", "and one more"]
HERE = Path("table.csv")


def one_text(labels: list[Any]) -> list[Example]:
    pairs = zip(TEXTS, labels, strict=True)
    return [Example(text, None, label, HERE, i + 2) for i, (text, label) in enumerate(pairs)]


SAMPLES: dict[str, list[tuple[dict[str, Any], list[Example]]]] = {
    "sequence_classification": [
        ({"kind": "binary"}, one_text(["no", "yes", "no", "yes"])),
        ({"kind": "multiclass"}, one_text(["a", "b", "c", "a"])),
        ({"kind": "multilabel"}, one_text([("x",), ("x", "y"), ("y",), ("x",)])),
        ({"kind": "regression"}, one_text([1.0, 2.5, -3.0, 0.0])),
    ],
}
"""For each registered task: arguments of `from_examples`, and examples."""


def made() -> list[tuple[Task, list[Example]]]:
    return [
        (TASKS.get(name).from_examples(examples=examples, **options), examples)  # type: ignore[attr-defined]
        for name, samples in SAMPLES.items()
        for options, examples in samples
    ]


CASES = pytest.mark.parametrize(
    ("task", "examples"), made(), ids=lambda v: getattr(v, "kind", "") or ""
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return train_vocabulary(TEXTS * 3, 40, tmp_path_factory.mktemp("vocabulary"))


def test_every_task_has_samples() -> None:
    records = {name for name in TASKS if hasattr(TASKS.get(name), "features")}
    learnt = {
        "embedding_classification"
    }  # made by a run: tests/unit/tasks/test_embedding_classification.py
    assert set(TASKS) - records - learnt == set(SAMPLES), "tasks over records: test_record_kinds.py"


@CASES
def test_a_task_names_a_head_that_a_configuration_takes(
    task: Task, examples: list[Example]
) -> None:
    assert task.name in TASKS and isinstance(task, TASKS.get(task.name))
    assert task.head in HEADS
    labels = task.config_labels()
    assert list(labels) == list(range(len(labels)))
    config = preset("tiny", id2label=labels, problem_type=task.problem_type)
    assert config.num_labels == len(labels)


@CASES
def test_a_task_encodes_decodes_and_scores(
    task: Task, examples: list[Example], tokenizer: Tokenizer
) -> None:
    encoded = [task.encode(e, tokenizer, index=i) for i, e in enumerate(examples)]
    batch = collate(encoded)
    assert batch.num_sequences == len(examples)
    assert batch.labels is not None
    assert all(len(task.encode(e, tokenizer, 5).ids) <= 5 for e in examples)
    unlabelled = Example("the first", None, None, HERE, 9)
    assert task.encode(unlabelled, tokenizer).label is None
    logits = np.random.default_rng(0).normal(size=(len(examples), len(task.config_labels())))
    predictions = task.decode(logits)
    assert len(predictions) == len(examples)
    for prediction in predictions:
        assert isinstance(prediction, Prediction)
        assert np.isfinite(prediction.score)
        assert set(json.loads(json.dumps(prediction.to_json()))) == {
            "prediction",
            "score",
            "scores",
        }
    scores = task.score(logits, batch.labels)
    assert task.metric in scores
    assert all(np.isfinite(list(scores.values())))


@CASES
def test_a_task_survives_its_file(task: Task, examples: list[Example], tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(task.to_json(), encoding="utf-8")
    assert load_task(tmp_path) == task
    with pytest.raises(CheckpointError):
        parse_task(json.dumps(json.loads(task.to_json()) | {"unheard_of": 1}))


def test_a_task_outside_the_project_is_found_by_its_path_but_never_named_by_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TASKS, "_items", dict(TASKS._items))
    stored = made()[0][0].to_json()
    path = "litebert.tasks.classification:SequenceClassification"
    foreign = json.dumps(json.loads(stored) | {"task": path})
    with pytest.raises(CheckpointError, match="is not known"):
        parse_task(foreign)
    assert TASKS.get(path) is TASKS.get("sequence_classification")
    assert parse_task(foreign) == parse_task(stored)  # known once the program itself has named it
