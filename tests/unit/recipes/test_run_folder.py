from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from litebert.errors import CheckpointError, SettingsError
from litebert.recipes.run_folder import (
    RunFolder,
    environment,
    model_folder,
    next_folder,
    require_free,
    resume_command,
)


def test_a_new_folder_with_its_parents(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a" / "b c", name="unused")
    assert folder.path.is_dir()
    assert RunFolder.create(folder.path, name="unused") == folder  # still empty
    folder.write_text("note.txt", "name\udce9\n")
    folder.write_json("x.json", {"a": "é"})
    assert (folder.path / "note.txt").read_text("utf-8") == "name\\udce9\n"
    assert json.loads((folder.path / "x.json").read_text("utf-8")) == {"a": "é"}


def test_the_paths_inside(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    inside = (folder.config, folder.best, folder.last, folder.plots, folder.checkpoints(3))
    names = ["config.toml", "model-best", "model-last", "plots", "seed-3"]
    assert [path.name for path in inside] == names


def test_numbered_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert next_folder("reviews") == Path("runs/reviews-1")
    for name in ("reviews-1", "reviews-9", "reviews-x", "other-40"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert next_folder("reviews") == Path("runs/reviews-10")
    assert RunFolder.create(None, name="my reviews é/../..").path == Path("runs/my-reviews-1")
    assert next_folder("...") == Path("runs/run-1")


def test_nothing_is_written_over(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for place in (tmp_path, file):
        with pytest.raises(SettingsError, match="exists and is not empty; choose another --out"):
            require_free(place)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(SettingsError, match="train --resume"):
        RunFolder.create(tmp_path, name="unused")
    with pytest.raises(CheckpointError):
        RunFolder.create(file / "run", name="unused")


def test_the_command_can_be_pasted(tmp_path: Path) -> None:
    place = tmp_path / "it's a run; rm *"
    assert shlex.split(resume_command(place))[-1] == str(place)


def test_open(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such run folder") as caught:
        RunFolder.open(tmp_path / "none")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(CheckpointError, match=r"no config\.toml"):
        RunFolder.open(tmp_path)
    (tmp_path / "config.toml").write_text("")
    assert RunFolder.open(tmp_path).path == tmp_path


def test_which_model_a_path_means(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such folder") as caught:
        model_folder(tmp_path / "none")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(CheckpointError, match="neither a model folder"):
        model_folder(tmp_path)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(CheckpointError, match=r"has not finished.*--resume"):
        model_folder(tmp_path)
    for name in ("model-last", "model-best"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        assert model_folder(tmp_path) == tmp_path / name
    assert model_folder(tmp_path / "model-last") == tmp_path / "model-last"


def test_the_environment_names_no_person() -> None:
    facts = environment()
    assert facts["cpus"] >= 1
    assert "torch" in facts["packages"]
    assert str(Path.home()) not in json.dumps(facts)
