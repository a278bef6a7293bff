"""The parts of a run over GLUE: entries, kept results, means, answers, the archive."""

from __future__ import annotations

import json
import os
import statistics
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.glue import GLUE_TASKS
from litebert.errors import CheckpointError, SettingsError
from litebert.recipes.glue import submission
from litebert.recipes.glue.entries import AX, ENTRIES, choose_entries, find_folder
from litebert.recipes.glue.job import (
    GlueJob,
    TaskResult,
    read_result,
    require_same_job,
    write_result,
)
from litebert.recipes.glue.report import means, report_lines, scores_json
from litebert.recipes.glue.run import task_settings
from litebert.recipes.glue.submission import Submission, write_submission
from litebert.tasks.base import Prediction
from litebert.tasks.scores import SCORES

SCORE = st.floats(0, 1)


def test_entries_agree_with_the_readers_and_the_leaderboard() -> None:
    assert {entry.key for entry in ENTRIES} == set(GLUE_TASKS) - {"ax", "mnli_mismatched"}
    files = [file for entry in ENTRIES for file in entry.answers] + [AX]
    assert sorted(file.name for file in files) == [
        "AX", "CoLA", "MNLI-m", "MNLI-mm", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B", "WNLI",
    ]  # fmt: skip
    for file in files:
        labels = GLUE_TASKS[file.reader].labels
        assert file.constant in labels if labels else 0 <= float(file.constant) <= 5
    for entry in ENTRIES:
        for metric in entry.metrics:
            assert metric in SCORES or metric == "accuracy_mismatched"


def test_names_of_tasks() -> None:
    assert [entry.key for entry in choose_entries(("SST-2", "sts_b", " MNLI "))] == [
        "mnli",
        "sst2",
        "stsb",
    ]
    assert choose_entries(()) == ENTRIES
    with pytest.raises(SettingsError, match="GLUE has no task 'zzz'; known: mnli, cola"):
        choose_entries(("zzz",))


def test_folders_of_the_diagnostic_set(tmp_path: Path) -> None:
    assert find_folder(tmp_path, "AX") is None
    for name in ("MNLI", "diagnostic", "AX"):
        (tmp_path / name).mkdir()
        assert find_folder(tmp_path, "AX") == tmp_path / name


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(SCORE, SCORE), max_size=4), st.none() | SCORE, st.booleans()),
        max_size=6,
    )
)
def test_means_against_a_slow_definition(rows: list[Any]) -> None:
    results, medians, constants = [], [], []
    for number, (seeds, constant, is_finished) in enumerate(rows):
        baselines = {} if constant is None else {"majority": {"f1": constant, "accuracy": constant}}
        status = "finished" if is_finished else "failed"
        results.append(
            TaskResult(
                ENTRIES[number].key,
                status,  # type: ignore[arg-type]
                seeds=[{"f1": a, "accuracy": b} for a, b in seeds],
                baselines=baselines,
            )
        )
        if is_finished:
            medians.append(statistics.median([(a + b) / 2 for a, b in seeds]) if seeds else None)
            constants.append(constant)
    found = means(results)
    for name, values in (("median", medians), ("majority", constants)):
        if not values or None in values:
            assert found[name] is None
        else:
            assert found[name] == pytest.approx(sum(values) / len(values))
    lines = report_lines(results, Submission(Path("x.zip"), {"QQP": "all answers are 0"}, 0.25))
    assert "AX: Matthews 25.0, by the model of MNLI" in lines
    assert sum(line.startswith(tuple(e.title for e in ENTRIES)) for line in lines) >= len(rows)
    json.dumps(scores_json(GlueJob("tiny", Path("d")), results, None), allow_nan=False)


def test_a_result_is_kept(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
    result = TaskResult(
        "rte", "finished", "é", {"accuracy": 0.5}, [{"accuracy": 0.5}], {}, 9, 3, "tiny", 1.5
    )
    write_result(tmp_path, result)
    assert read_result(tmp_path) == result
    assert (result.score, result.median, result.spread, result.baseline("majority")) == (
        0.5,
        0.5,
        None,
        None,
    )
    (tmp_path / "glue.json").write_text('{"format_version": 1, "told": {}}')
    with pytest.raises(CheckpointError, match="is no result of a GLUE task"):
        read_result(tmp_path)


def test_a_rerun_must_be_told_the_same(tmp_path: Path) -> None:
    job = GlueJob("tiny", tmp_path / "data", seeds=2)
    require_same_job(tmp_path / "out", job)
    require_same_job(
        tmp_path / "out", GlueJob("tiny", tmp_path / "data", ("rte",), 2, max_seconds=3)
    )
    for other in (GlueJob("tiny", tmp_path / "data"), GlueJob("small", tmp_path / "data", seeds=2)):
        with pytest.raises(SettingsError, match="holds a run with another"):
            require_same_job(tmp_path / "out", other)


def test_settings_of_a_task(tmp_path: Path) -> None:
    job = GlueJob(
        "tiny", tmp_path, max_examples=7, epochs=2.0, is_paper=True, overrides=("train.seed=5",)
    )
    found = task_settings(job, ENTRIES[1], tmp_path / "CoLA", "tiny")
    assert (found.data.task, found.data.max_examples, found.recipe) == (
        "glue/cola",
        7,
        "paper/cola",
    )
    assert (found.train.epochs, found.train.seed, found.num_seeds) == (2.0, 5, None)
    with pytest.raises(SettingsError, match=r"no setting 'train\.sed'"):
        task_settings(
            GlueJob("tiny", tmp_path, overrides=("train.sed=1",)), ENTRIES[1], tmp_path, "tiny"
        )


class Oracle:
    """Answers by the length of the text, far outside of what STS-B allows."""

    labels: tuple[Any, ...] = (-3.0, 2.34567, 9.0)

    def __init__(self) -> None:
        self.required_task = SimpleNamespace(
            decode=lambda rows: [Prediction(self.labels[int(row.argmax())], 1.0) for row in rows],
            config_labels=lambda: dict(enumerate(("contradiction", "entailment", "neutral"))),
        )

    def logits(self, examples: list[Any]) -> np.ndarray:
        return np.eye(3)[[len(e.text) % 3 for e in examples]]


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> type[Oracle]:
    few = tuple(entry for entry in ENTRIES if entry.key != "qqp")  # 390,965 lines take their time
    monkeypatch.setattr(submission, "ENTRIES", few)
    monkeypatch.setattr(submission.Predictor, "load", lambda folder: Oracle())
    return Oracle


def models(out: Path, *keys: str) -> Path:
    for key in keys:
        folder = out / key / "model-best"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"x")
    return out


def read_file(out: Path, name: str) -> list[str]:
    with zipfile.ZipFile(out / "submission.zip") as archive:
        return archive.read(name).decode("ascii").splitlines()


def test_numbers_keep_to_the_range_and_to_the_index_of_the_file(
    tmp_path: Path, oracle: Any
) -> None:
    data, out = tmp_path / "data", models(tmp_path / "out", "stsb")
    (data / "STS-B").mkdir(parents=True)
    head = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\n"
    rows = "".join(f"{i}\tg\tf\ty\t0\ts\ts\t{'x' * (3 + n)}\ty\n" for n, i in enumerate((2, 0, 1)))
    (data / "STS-B" / "test.tsv").write_text(head + rows + "word\tg\tf\ty\t0\ts\ts\tx\ty\n")
    told: list[str] = []
    found = write_submission(out, data, ["stsb"], tell=told.append)
    lines = read_file(out, "STS-B.tsv")
    assert lines[:5] == ["index\tprediction", "0\t2.346", "1\t5.000", "2\t0.000", "3\t2.500"]
    assert len(lines) == 1380 and found.filled["STS-B"].startswith(
        "1,376 of 1,379 answers are 2.500"
    )
    assert found.filled["AX"] == "all answers are entailment: mnli has no model"
    assert len(found.filled) == 10 and found.ax is None
    first = (out / "submission.zip").read_bytes()
    told.clear()
    again = write_submission(out, data, ["stsb"], tell=told.append)
    assert told == [] and again == found, "what is answered is kept"
    assert (out / "submission.zip").read_bytes() == first
    (out / "submission.json").write_text('{"answered": 3}')
    write_submission(out, data, ["stsb"], tell=told.append)
    assert len(told) == 1, "an unreadable state means: answer again"
    (out / "stsb" / "model-best" / "model.safetensors").write_bytes(b"another")
    os.utime(out / "stsb" / "model-best" / "model.safetensors", ns=(1, 1))
    write_submission(out, data, ["stsb"], tell=told.append)
    assert len(told) == 2, "a new model answers again"


def test_files_that_cannot_be_answered_are_filled(tmp_path: Path, oracle: Any) -> None:
    data, out = tmp_path / "data", models(tmp_path / "out", "stsb", "cola")
    (data / "STS-B").mkdir(parents=True)
    (data / "CoLA").mkdir()
    (data / "STS-B" / "test.tsv").write_text("a\tb\n1\t2\n")
    (data / "CoLA" / "test.tsv").write_text("index\tsentence\nx\ty\n")
    found = write_submission(out, data, ["stsb", "cola"], tell=lambda line: None)
    assert "this is not a STS-B file" in found.filled["STS-B"]
    assert "no usable row" in found.filled["CoLA"]
    assert len(read_file(out, "CoLA.tsv")) == 1064


AX_HEAD = "index\tsentence1\tsentence2"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("diagnostic.tsv", f"{AX_HEAD}\n0\txxx\ty\n", None),
        ("diagnostic.tsv", f"{AX_HEAD}\tlabel\n0\txxx\ty\tcontradiction\n1\txxxx\ty\tentailment\n", 1.0),
        ("diagnostic.tsv", f"{AX_HEAD}\tlabel\n0\txxx\ty\tother\n1\txxxx\ty\tentailment\n", None),
        ("diagnostic-full.tsv", "Premise\tHypothesis\tLabel\nxxx\ty\tentailment\nxxxx\ty\tcontradiction\n", -1.0),
        ("diagnostic-full.tsv", "Premise\tHypothesis\nxxx\ty\nxxxx\ty\n", None),
    ],
)  # fmt: skip
def test_the_diagnostic_set(
    tmp_path: Path,
    oracle: Any,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
    expected: float | None,
) -> None:
    data, out = tmp_path / "data", models(tmp_path / "out", "mnli")
    (data / "AX").mkdir(parents=True)
    (data / "AX" / name).write_text(text)
    monkeypatch.setattr(oracle, "labels", ("contradiction", "entailment", "neutral"))
    told: list[str] = []
    found = write_submission(out, data, ["mnli"], tell=told.append)
    assert found.ax == (None if expected is None else pytest.approx(expected))
    assert any("labels that the model of MNLI lacks: ['other']" in line for line in told) == (
        "other" in text
    )
    answers = read_file(out, "AX.tsv")[1:3]
    is_answered = "Label" in text or name == "diagnostic.tsv"
    assert answers[0] == ("0\tcontradiction" if is_answered else "0\tentailment")
