"""Reading commands, help, usage errors, and what the outside world does to them; in this process."""

from __future__ import annotations

import json
import logging
import re
import warnings
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from litebert import __version__
from litebert.checkpoint.fs import StorageError
from litebert.cli import app, output
from litebert.cli.faults import EXIT_CODES
from litebert.errors import (
    CheckpointError,
    DataError,
    RankLostError,
    SettingsError,
    TrainingDiverged,
)
from litebert.recipes.prepare.pool import WorkerDied

COMMANDS = (
    "train",
    "tune",
    "evaluate",
    "predict",
    "quickstart",
    "info",
    "compare",
    "doctor",
    "convert",
    "fold",
    "distill",
    "vocab",
    "prepare",
    "pretrain",
)


def run(*arguments: object, **options: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], **options)  # type: ignore[arg-type]


def test_version() -> None:
    assert run("--version").stdout == f"litebert {__version__}\n"


def test_every_command_is_listed_with_a_whole_sentence() -> None:
    listed = run("--help", terminal_width=80).stdout
    for name in (*COMMANDS, "data"):
        line = re.search(rf"^  {name} +(.+)$", listed, re.M)
        assert line is not None, name
        assert line.group(1).endswith("."), f"{name}: {line.group(1)}"
        assert not line.group(1).endswith("..."), f"{name}: {line.group(1)}"


@pytest.mark.parametrize("command", [*((name,) for name in COMMANDS), ("data",), ("data", "check")])
def test_help_of_each_command(command: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        result = run(*command, flag)
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")
        assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("trainn",), "train"),
        (("train", "x.csv", "--epoch", "3"), "--epochs"),
        (("train", "x.csv", "--epochs", "three"), "--epochs"),
        (("info", "--jsn"), "--json"),
        (("predict",), "MODEL"),
        (("train", "x.csv", "--kind", "multi"), "multiclass"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], word: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert word in result.stderr
    assert result.stdout == ""


def test_info_of_presets_and_folders(model_dir: Path) -> None:
    costs = json.loads(run("info", "albert-base-v2", "--json").stdout)
    assert costs["parameters"] == 11_683_584
    assert costs["format_version"] == 1
    assert {"unique_bytes", "flops_per_token", "unshared_parameters"} <= set(costs)
    for name in (model_dir, model_dir / "config.json"):
        own = json.loads(run("info", name, "--json").stdout)
        assert own["config"]["hidden_size"] == 32
    assert "11,683,584" in run("info", "albert-base-v2").stdout
    assert "albert-base-v2" in json.loads(run("info", "--json").stdout)
    assert "bert-large\n" in run("info").stdout


@pytest.mark.parametrize(
    ("name", "code", "word"),
    [
        ("albert-bse-v2", 2, "did you mean 'albert-base-v2'"),
        ("no/such/folder", 66, "no such file or folder"),
        ("model.json", 66, "no such file or folder"),
        ("x" * 5000 + "/", 66, ""),
        (".", 65, "neither a model folder"),
    ],
)
def test_info_of_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("info", "compare"):
        result = run(command, name)
        assert (result.exit_code, result.stdout) == (code, "")
        assert word in result.stderr
        assert result.stderr.startswith("error: ")


def test_compare_is_a_table() -> None:
    lines = run("compare", "albert-base-v2", "albert-xxlarge-v2", "bert-base").stdout.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split()[:2] == ["model", "depth"]
    assert lines[1].split()[4] == "11,683,584"
    assert len(json.loads(run("compare", "tiny", "small", "--json").stdout)) == 2


def test_data_check(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [f"the parcel number {i} was {w},{w}" for i in range(20) for w in ("late", "fine")]
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    report = run("data", "check", path, "--json")
    assert json.loads(report.stdout)
    assert report.exit_code in (0, 1)
    assert run("data", "check", path).exit_code == report.exit_code
    assert run("data", "check", tmp_path / "none.csv").exit_code == 66
    assert run("data", "check", path, "--label-column", "labell").exit_code == 2
    path.write_text("")
    assert run("data", "check", path).exit_code == 65


def test_doctor_finds_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("doctor", "--quick", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == (0 if report["healthy"] else 1)
    names = [check["name"] for check in report["checks"]]
    assert {"python", "processor", "memory", "disk", "packages: base"} <= set(names)
    assert "processor" in run("doctor", "--quick").stdout
    assert list(tmp_path.iterdir()) == []


def test_evaluate(model_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "held out.csv"
    path.write_text("text,label,other\n" + "a lamp,good,bad\nlate,bad,bad\nfine,so-so,good\n" * 5)
    result = run("evaluate", model_dir, path, "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["examples"], report["metric"]) == (15, "accuracy")
    assert {row["label"] for row in report["classes"]} == {"bad", "good", "so-so"}
    text = run("evaluate", model_dir, path).stdout
    assert "15 examples" in text
    assert "precision" in text
    other = run("evaluate", model_dir, path, "--label-column", "other", "--json")
    assert json.loads(other.stdout)["scores"] != report["scores"]


def test_evaluate_says_what_is_wrong(model_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "held-out.csv"
    path.write_text("text,label\na,good\nb,goood\n,bad\nc,bad\n")
    result = run("evaluate", model_dir, path)
    assert result.exit_code == 65
    assert f"{path}:3: " in result.stderr
    assert "did you mean 'good'?" in result.stderr
    skipping = run("evaluate", model_dir, path, "--on-bad-row", "skip", "--json")
    assert (skipping.exit_code, len(json.loads(skipping.stdout)["skipped"])) == (0, 2)
    for arguments, code in [
        (("--label-column", "labell"), 2),
        (("--text-column", "a", "--text-column", "b"), 2),
        (("--text-column", "txt"), 2),
        (("--split", "test"), 2),
    ]:
        assert run("evaluate", model_dir, path, *arguments).exit_code == code, arguments
    assert run("evaluate", model_dir, tmp_path / "none.csv").exit_code == 66
    assert run("evaluate", tmp_path / "none", path).exit_code == 66
    path.write_text("text,label\n,good\n,bad\n")
    assert run("evaluate", model_dir, path, "--on-bad-row", "skip").exit_code == 65


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Result:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr("litebert.recipes.describe.describe", fail)
    return run("info", "tiny")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("wrong"), 2),
        (DataError("wrong"), 65),
        (CheckpointError("wrong"), 65),
        (TrainingDiverged("wrong", step=3), 70),
        (RankLostError("wrong"), 75),
        (WorkerDied("wrong"), 75),
        (StorageError("full", path=Path("x"), errno=28), 74),
        (StorageError("no folder", path=Path("x"), errno=2), 73),
        (StorageError("read-only", path=Path("x"), errno=30), 73),
        (StorageError("not yours", path=Path("x"), errno=13), 73),
        (FileNotFoundError(2, "No such file or directory", "x"), 66),
        (PermissionError(13, "Permission denied", "x"), 77),
        (OSError(28, "No space left on device", "x"), 74),
        (OSError(36, "File name too long", "x"), 66),
        (OSError(121, "Remote I/O error"), 74),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
        (BrokenPipeError(32, "Broken pipe"), 141),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), 2),
        (ModuleNotFoundError("No module named 'sklearn.x'", name="sklearn.x"), 2),
    ],
)
def test_each_error_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    result = raising(monkeypatch, error)
    assert result.exit_code == code
    assert code in EXIT_CODES
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    if isinstance(error, ModuleNotFoundError):
        assert "litebert info needs the package" in result.stderr
        assert 'pip install "litebert[train]"' in result.stderr


@pytest.mark.parametrize("error", [ValueError("a bug"), ModuleNotFoundError("x", name="other")])
def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert raising(monkeypatch, error).exception is error


def test_debug_shows_where(monkeypatch: pytest.MonkeyPatch) -> None:
    error = DataError("wrong")
    monkeypatch.setattr(
        "litebert.recipes.describe.describe", lambda name: (_ for _ in ()).throw(error)
    )
    assert CliRunner().invoke(app, ["--debug", "info", "tiny"]).exception is error
    monkeypatch.setenv("LITEBERT_DEBUG", "1")
    assert run("info", "tiny").exception is error


def test_the_cause_on_disk_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    error = CheckpointError("cannot read")
    error.__cause__ = PermissionError(13, "Permission denied")
    assert raising(monkeypatch, error).exit_code == 77


def test_data_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    result = raising(monkeypatch, DataError("label '\x1b[2J\x07\x9b\r\x00'"))
    assert result.stderr == "error: label '\\x1b[2J\\x07\\x9b\\x0d\\x00'\n"
    assert output.visible("a\tb\nc é 日本") == "a\tb\nc é 日本"


def test_warnings_are_talk(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(name: str) -> None:
        logging.getLogger("litebert").warning("half of \x1b it is gone")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old library", UserWarning, stacklevel=1)
        raise DataError("wrong")

    monkeypatch.setattr("litebert.recipes.describe.describe", describe)
    lines = run("info", "tiny").stderr.splitlines()
    assert lines[0] == "warning   half of \\x1b it is gone"
    assert "old library" in lines[1]
    assert lines[-1] == "error: wrong"
    assert run("info", "tiny").stderr.count("half of") == 1


def test_numbers_that_json_lacks_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": (1, "x")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": [1, "x"]}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, None),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], wanted: bool | None
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.is_color_wanted() is wanted


def test_the_page_of_exit_codes_is_complete(repository: Path) -> None:
    page = (repository / "docs/reference/exit-codes.md").read_text("utf-8")
    listed = {
        int(number)
        for cell in re.findall(r"^\| ([\d, ]+) \|", page, re.M)
        for number in cell.split(",")
    }
    assert listed == set(EXIT_CODES)
