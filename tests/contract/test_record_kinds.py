"""Every kind of records: reads its file, cuts, answers, scores, shows, and survives its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.record_files import FILES, LAKE

from litebert.data.readers import ReadOptions
from litebert.errors import CheckpointError, DataError, LitebertError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.head_kinds import HEADS
from litebert.model.presets import preset
from litebert.recipes.finetune.model_choice import head_options
from litebert.tasks import TASKS, parse_task
from litebert.tasks.records import RECORD_KINDS
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary
from litebert.train.evaluate import predict_outputs
from litebert.train.micro import to_device
from litebert.train.step_losses import make_step_loss

KINDS = pytest.mark.parametrize("name", sorted(FILES))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return train_vocabulary([LAKE, "湖はどこ 池です 所"] * 4, 70, tmp_path_factory.mktemp("v"))


def opened(name: str, folder: Path, *, labelled: bool = True) -> tuple[Any, Any]:
    kind = RECORD_KINDS.get(name)
    source = kind.read(FILES[name](folder), ReadOptions(), labelled)
    return kind, source


def test_every_kind_has_a_file() -> None:
    assert set(RECORD_KINDS) == set(FILES)
    assert all(RECORD_KINDS.get(name).help for name in FILES)


@KINDS
def test_a_kind_learns_answers_and_scores(name: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    kind, source = opened(name, tmp_path)
    records = source.train.records
    assert records and all(r.id and r.group and r.path.exists() and r.line >= 1 for r in records)
    task = kind.make_task(records, {"max_length": 48})
    assert task.head in HEADS and task.max_length == 48 and task.name in TASKS
    config = preset(
        "tiny", vocab_size=tokenizer.vocab_size, hidden_size=16, intermediate_size=16,
        num_attention_heads=2, embedding_size=8, id2label=task.config_labels(),
        problem_type=task.problem_type, litebert=head_options(task),
    )  # fmt: skip
    torch.manual_seed(0)
    model = AlbertWithHead(config, task.head)
    learnt = task.features(records, tokenizer, labelled=True)
    assert learnt and all(feature.encoded.label is not None for feature in learnt)
    loss = make_step_loss(task.loss, task)
    from litebert.data.batch import collate

    batch = collate([feature.encoded for feature in learnt])
    counts, terms = loss.counts(batch), loss(model, to_device(batch, torch.device("cpu")))
    assert {term.name for term in terms} <= set(counts) and set(loss.weights) >= set(counts)
    total = sum(loss.weights[term.name] * term.mean for term in terms)
    assert torch.isfinite(torch.as_tensor(total))
    features = task.features(records, tokenizer, labelled=False)
    assert {feature.encoded.index for feature in features} == set(range(len(records)))
    outputs = predict_outputs(model, [feature.encoded for feature in features])
    assert outputs is not None
    answers = task.answers(records, features, outputs)
    assert len(answers) == len(records)
    scores = task.evaluate(records, answers)
    assert all(-1.0 <= value <= 1.0 or key == "mse" for key, value in scores.items())
    assert task.metric in scores
    fitted = task.fitted(records, features, outputs)
    assert fitted.name == task.name
    assert all(isinstance(fault, str) for fault in task.faults(records, answers))
    for baseline in task.baselines(records, records):
        assert set(baseline.scores) & {task.metric}, baseline.name
    for record, answer in zip(records, answers, strict=True):
        row = task.show(record) | answer.to_json()
        json.dumps(row, allow_nan=False)
        assert "label" in row and "file" in row and "line" in row
    again = parse_task(task.to_json())
    assert again == task and again.to_json() == task.to_json()


@KINDS
def test_labels_may_lack_in_prediction(name: str, tmp_path: Path) -> None:
    _, source = opened(name, tmp_path, labelled=False)
    assert source.train.records


@KINDS
def test_wrong_options_and_files_are_said(name: str, tmp_path: Path) -> None:
    kind, source = opened(name, tmp_path)
    with pytest.raises(SettingsError, match="max_lenght"):
        kind.make_task(source.train.records, {"max_lenght": 12})
    empty, broken = tmp_path / "empty.json", tmp_path / "broken.json"
    empty.write_text("")
    with pytest.raises(DataError):
        kind.read(empty, ReadOptions(), True)
    broken.write_text('{"data": [{"title": 3, "paragraphs": "x"}]}\n')
    try:
        found = kind.read(broken, ReadOptions(on_bad_row="skip"), True)
    except LitebertError:
        return
    assert not found.train.records


@KINDS
def test_a_damaged_task_file_is_refused(name: str, tmp_path: Path) -> None:
    kind, source = opened(name, tmp_path)
    values = json.loads(kind.make_task(source.train.records, {}).to_json())
    with pytest.raises(CheckpointError):
        parse_task(json.dumps(values | {"max_length": "long"}))
    with pytest.raises(CheckpointError):
        parse_task(json.dumps(values | {"beauty": 1}))


def test_outputs_of_another_model_are_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    for name in ("squad", "tagging", "choice", "similarity"):
        kind, source = opened(name, tmp_path / name)
        records = source.train.records
        task = kind.make_task(records, {})
        features = task.features(records, tokenizer, labelled=False)
        with pytest.raises(DataError):
            task.answers(records, features, [np.zeros((3, 77), np.float32)] * len(features))
