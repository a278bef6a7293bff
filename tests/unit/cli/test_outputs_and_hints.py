"""Where answers go, and advice that fits the command: pipes and devices, wrong ends, bad rows, blank queries."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from litebert.checkpoint.fs import StorageError, is_special, write_file, write_output
from litebert.cli import app

TABLE = "text,label\nthe fine kettle is late,a\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    return path


def test_a_pipe_is_written_to_and_not_replaced(model_dir: Path, table: Path) -> None:
    pipe = table.with_name("pipe.jsonl")
    os.mkfifo(pipe)
    for command in ("predict", "embed"):
        found: list[str] = []

        def read(found: list[str] = found) -> None:
            found.append(pipe.read_text())

        reader = threading.Thread(target=read)
        reader.start()
        result = run(command, model_dir, table, "--out", pipe)
        reader.join(timeout=60)
        assert result.exit_code == 0, result.output
        assert json.loads(found[0])["text"] == "the fine kettle is late"
        assert pipe.is_fifo()
    assert run("embed", model_dir, table, "--out", table.with_name("other.npy")).exit_code == 0


def test_vectors_that_need_a_file_refuse_a_pipe(model_dir: Path, table: Path) -> None:
    pipe = table.with_name("pipe.npy")
    os.mkfifo(pipe)
    result = run("embed", model_dir, table, "--out", pipe)
    assert result.exit_code == 2 and "is a pipe or a device" in result.output
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device_is_said_and_stays(model_dir: Path, table: Path) -> None:
    result = run("predict", model_dir, table, "--out", "/dev/full")
    assert result.exit_code == 74 and "the disk is full" in result.output
    assert is_special(Path("/dev/full"))


def test_output_of_a_name_is_atomic_for_files_only(tmp_path: Path) -> None:
    write_output(tmp_path / "a", b"one")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert not is_special(tmp_path / "a") and not is_special(tmp_path)
    assert not is_special(tmp_path / "none")
    with pytest.raises(StorageError, match=r"a/b: cannot write here"):
        write_file(tmp_path / "c" / "d", b"", named=tmp_path / "a" / "b")


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_a_missing_folder_is_named_without_the_hidden_file(
    model_dir: Path, table: Path, command: str
) -> None:
    for name in ("v.jsonl", "v.npy") if command == "embed" else ("v.jsonl",):
        result = run(command, model_dir, table, "--out", table.parent / "none" / name)
        assert result.exit_code == 73
        assert f"none/{name}: there is no such folder to write in" in result.output


@pytest.mark.parametrize("name", ["a.parquet", "a.json", "a.jsonl.gz", "a.xlsx"])
def test_predictions_are_not_put_under_a_name_that_promises_another_form(
    model_dir: Path, table: Path, name: str
) -> None:
    out = table.with_name(name)
    result = run("predict", model_dir, table, "--out", out)
    assert result.exit_code == 2 and "allowed: .csv" in result.output and not out.exists()
    assert run("predict", model_dir, table, "--out", out, "--format", "jsonl").exit_code == 0


@pytest.mark.parametrize(
    ("command", "has_option"),
    [("predict", False), ("embed", False), ("search", False), ("evaluate", True)],
)
def test_only_commands_with_the_option_advise_to_skip(
    model_dir: Path, table: Path, command: str, has_option: bool
) -> None:
    table.write_text(TABLE + "a\0b,a\n")
    result = run(command, model_dir, table, *(["query"] if command == "search" else []))
    assert result.exit_code == 65
    assert "t.csv:3: column 'text': cell holds a NUL character" in result.output
    assert ("--on-bad-row skip" in result.output) is has_option


def test_a_header_without_rows_asks_for_rows_not_labels(model_dir: Path, table: Path) -> None:
    table.write_text("text\n")
    result = run("embed", model_dir, table)
    assert result.exit_code == 65 and "give a file with rows" in result.output


@pytest.mark.parametrize(
    "line", ['{"text": "cut', "[[[[", "no JSON at all", '{"text":' + "[" * 100_000]
)
def test_a_jsonl_file_is_json_from_its_first_line(
    model_dir: Path, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n")
    result = run("embed", model_dir, path)
    assert (
        result.exit_code == 65 and "a.jsonl:1: not JSON, although the file's name" in result.output
    )


def test_a_lone_surrogate_comes_back_as_it_came(model_dir: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "v.jsonl"
    path.write_text('{"text": "a \\ud800 b"}\n')
    assert run("embed", model_dir, path, "--out", out).exit_code == 0
    assert json.loads(out.read_text())["text"] == "a \ud800 b"
    assert json.loads(run("embed", model_dir, path).stdout)["text"] == "a \ud800 b"


def test_wrong_searches_are_told(model_dir: Path, table: Path) -> None:
    blank = table.with_name("blank.txt")
    blank.write_text(" \n\n")
    for arguments, code, message in (
        ((table, "  "), 2, "the QUERY is blank"),
        ((table.parent, "q"), 2, "is a folder; give a file"),
        ((table, "--queries", table.parent), 2, "is a folder; give a file"),
        ((table, "--queries", blank), 65, "blank.txt: every line is blank"),
        ((table, "--queries", blank, "--query-column", "x"), 2, "--query-column 'x'"),
    ):
        result = run("search", model_dir, *arguments, "--no-cache")
        assert result.exit_code == code and message in result.output, result.output


def test_scores_of_a_search_have_six_digits(model_dir: Path, table: Path) -> None:
    result = run("search", model_dir, table, "a lamp", "--json", "--no-cache")
    score = json.loads(result.stdout)["hits"][0]["score"]
    assert score == round(score, 6)
