"""Runs that go on: settings and files as they were, and starts that were killed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import CheckpointError, SettingsError
from litebert.recipes.finetune.job import open_run, start_run
from litebert.recipes.finetune.same_run import require_same_data
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.glue.job import GlueJob, require_same_job
from litebert.recipes.run_folder import START_FILES, clear_unfinished_start, require_free
from litebert.settings import build_settings


def table(path: Path, rows: int = 40) -> Path:
    lines = [
        f"parcel number {i} came {('late', 'early')[i % 2]},{'bg'[i % 2]}" for i in range(rows)
    ]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Any, Any]:
    train, evaluation = table(tmp_path / "t.csv"), table(tmp_path / "e.csv", 20)
    values = {
        "data": {"train": str(train), "eval": str(evaluation)},
        "model": {"source": "tiny", "vocab_size": 80, "config": {"hidden_dropout_prob": 0.1}},
        "loss": {"r_drop": 0.5},
        "train": {"epochs": 1.0, "threads": 1},
    }
    plan = make_plan(build_settings(FinetuneSettings, values))
    return plan, start_run(plan, tmp_path / "run", "litebert train t.csv")


def test_what_was_not_changed_goes_on(begun: tuple[Any, Any]) -> None:
    plan, folder = begun
    again, settings = open_run(folder.path)
    assert settings == plan.settings
    require_same_data(again, make_plan(settings))
    text = folder.config.read_text()
    text = text.replace("threads = 1", "threads = 2").replace("num_seeds = 3", "num_seeds = 5")
    folder.config.write_text(text)
    assert open_run(folder.path)[1].num_seeds == 5, "more seeds may follow"


@pytest.mark.parametrize(
    ("section", "line", "message"),
    [
        ("loss", "r_drop = 0.7", r"loss\.r_drop was 0\.5, is 0\.7"),
        ("loss", "label_smoothing = 0.1", r"loss\.label_smoothing was 0\.0, is 0\.1"),
        ("adapt", "freeze = ['embeddings']", r"adapt\.freeze was .*, is \['embeddings'\]"),
        ("model.config", "hidden_dropout_prob = 0.3", r"model\.config\.hidden_dropout_prob was 0\.1"),
        ("model.config", "classifier_dropout_prob = 0.3", r"classifier_dropout_prob was None, is 0\.3"),
        ("data", "max_length = 32", r"data\.max_length was None, is 32"),
        ("data", "split_seed = 4", r"data\.split_seed was 0, is 4"),
        ("train", "epochs = 9.0", r"train\.epochs was 1\.0, is 9\.0"),
        ("train", "batch_size = 7", r"train\.batch_size was \d+, is 7"),
    ],
)  # fmt: skip
def test_settings_changed_by_hand_are_named(
    begun: tuple[Any, Any], section: str, line: str, message: str
) -> None:
    _, folder = begun
    text = folder.config.read_text()
    name = line.partition(" ")[0]
    lines = text.splitlines()
    start = lines.index(f"[{section}]") if f"[{section}]" in lines else None
    if start is None:
        text += f"\n[{section}]\n{line}\n"
    else:
        end = next(
            (i for i in range(start + 1, len(lines)) if lines[i].startswith("[")), len(lines)
        )
        kept = [row for row in lines[start + 1 : end] if not re.match(rf"{name} *=", row)]
        text = "\n".join([*lines[: start + 1], line, *kept, *lines[end:]]) + "\n"
    folder.config.write_text(text)
    with pytest.raises(CheckpointError, match=rf"cannot resume with other settings: .*{message}"):
        open_run(folder.path)


def test_a_run_of_an_older_version_is_not_refused(begun: tuple[Any, Any]) -> None:
    plan, folder = begun
    facts = json.loads((folder.path / "data.json").read_text())
    del facts["settings"]["data"]["long_texts"], facts["settings"]["adapt"]
    (folder.path / "data.json").write_text(json.dumps(facts))
    assert open_run(folder.path)[1] == plan.settings
    for text in (json.dumps({"format_version": 1}), json.dumps({"settings": 3, "parts": "x"})):
        (folder.path / "data.json").write_text(text)
        require_same_data(open_run(folder.path)[0], plan)


def test_a_changed_file_to_score_on_is_noticed(begun: tuple[Any, Any], tmp_path: Path) -> None:
    _, folder = begun
    table(tmp_path / "e.csv", 24)
    plan = make_plan(open_run(folder.path)[1])
    with pytest.raises(
        CheckpointError, match="the eval file has changed since the run was started"
    ):
        require_same_data(folder, plan)


def test_a_start_that_was_killed_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    for count in range(len(START_FILES) + 1):
        out = tmp_path / f"run {count}"
        out.mkdir()
        for name in START_FILES[:count]:
            (out / name).write_text("litebert glue a b")
        (out / ".config.toml.tmp-12").write_text("[da")
        clear_unfinished_start(out)
        require_free(out)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "data.json").write_text("[1, 2]")
    clear_unfinished_start(mine)
    assert (mine / "data.json").exists(), "a file of that name that no run wrote"
    (mine / "command.txt").write_text("make all")
    clear_unfinished_start(mine)
    (mine / "command.txt").write_text("litebert train")
    (mine / "letter.txt").write_text("dear")
    clear_unfinished_start(mine)
    assert len(list(mine.iterdir())) == 3
    (mine / "letter.txt").unlink()
    (mine / "config.toml").write_text("")
    clear_unfinished_start(mine)
    assert len(list(mine.iterdir())) == 3
    clear_unfinished_start(tmp_path / "none")


def test_a_glue_run_killed_while_it_wrote_its_first_file(tmp_path: Path) -> None:
    out, job = tmp_path / "glue", GlueJob("tiny", tmp_path)
    out.mkdir()
    (out / ".glue.json.tmp-77").write_text('{"for')
    require_same_job(out, job)
    require_same_job(out, job)
    assert [path.name for path in out.iterdir()] == ["glue.json"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(SettingsError, match="is no GLUE run"):
        require_same_job(other, job)
