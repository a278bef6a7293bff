from __future__ import annotations

import csv
import io
import json
import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from litebert.cli import app

RESULTS = ["prediction", "score", "scores"]


def predict(*arguments: object, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, arguments)], input=stdin)


def json_rows(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout_bytes.decode("utf-8").splitlines()]


def test_one_text_is_answered_plainly(model_dir: Path) -> None:
    result = predict(model_dir, "the lamp is fine")
    label, score = result.stdout.rstrip("\n").split("\t")
    assert label in ("bad", "good", "so-so")
    assert 0 <= float(score) <= 1


def test_a_table_keeps_order_and_columns(model_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "new data é.csv"
    path.write_text('id,text,score\n7,"a, ""quoted"" lamp",x\n3,,y\n5,"two\nlines",z\n', "utf-8")
    result = predict(model_dir, path)
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["id"] for row in rows] == ["7", "3", "5"]
    assert [row["text"] for row in rows] == ['a, "quoted" lamp', "", "two\nlines"]
    assert [row["score"] for row in rows] == ["x", "y", "z"]
    assert list(rows[0]) == ["id", "text", "score", "prediction", "score_new", "scores"]
    for row in rows:
        assert json.loads(row["scores"])[row["prediction"]] == float(row["score_new"])


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.tsv", "text\tnr\nfine lamp\t1\nlate\t2\n", "tsv"),
        ("a.jsonl", '{"text": "fine lamp", "nr": 1}\n{"text": "late", "nr": null}\n', "jsonl"),
        ("a.json", '[{"text": "fine lamp", "nr": 1}, {"text": "late", "nr": 2}]', "jsonl"),
        ("a.CSV", "nr,text\n1,fine lamp\n2,late\n", "csv"),
    ],
)
def test_the_form_is_that_of_the_input(
    model_dir: Path, tmp_path: Path, name: str, text: str, form: str
) -> None:
    (tmp_path / name).write_text(text)
    result = predict(model_dir, tmp_path / name)
    if form == "jsonl":
        rows = json_rows(result)
        assert [*rows[0]] == ["text", "nr", *RESULTS]
    else:
        delimiter = "\t" if form == "tsv" else ","
        rows = list(csv.DictReader(io.StringIO(result.stdout), delimiter=delimiter))
    assert [row["text"] for row in rows] == ["fine lamp", "late"]
    assert "cells separated by" in result.stderr or form == "jsonl"


@pytest.mark.parametrize(
    ("form", "start"), [("jsonl", '{"id": "1", '), ("csv", "id,text,"), ("tsv", "id\ttext\t")]
)
def test_the_form_can_be_told(model_dir: Path, tmp_path: Path, form: str, start: str) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,fine\n")
    assert predict(model_dir, tmp_path / "a.csv", "--format", form).stdout.startswith(start)
    out = tmp_path / f"out.{form}"
    result = predict(model_dir, tmp_path / "a.csv", "--out", out)
    assert result.stdout == ""
    assert "wrote" in result.stderr
    assert out.read_text().startswith(start)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", out.name]


def test_lines_one_row_each_blank_ones_too(model_dir: Path) -> None:
    rows = json_rows(predict(model_dir, "-", stdin="\n\nfine lamp\r\n\nlate\ttab\n {brace\nlast"))
    texts = ["", "", "fine lamp", "", "late\ttab", " {brace", "last"]
    assert [row["text"] for row in rows] == texts
    assert [*rows[0]] == ["text", *RESULTS]
    alone = json_rows(predict(model_dir, stdin="\n\n"))
    assert [(row["text"], row["prediction"]) for row in alone] == [("", rows[0]["prediction"])] * 2
    assert alone[0]["score"] == pytest.approx(rows[0]["score"], abs=1e-5)
    assert json_rows(predict(model_dir, stdin="")) == []


def test_lines_of_json_keep_their_fields(model_dir: Path) -> None:
    stdin = '\n{"n": 1, "text": "fine \\ud800"}\n\n{"text": null, "score": [1.5], "x": {"y": 1}}\n'
    result = predict(model_dir, "-", stdin="\ufeff" + stdin)
    rows = json_rows(result)
    assert [*rows[0]] == ["n", "text", *RESULTS]
    assert [*rows[1]] == ["text", "score", "x", "prediction", "score_new", "scores"]
    assert rows[1]["score"] == [1.5]
    assert rows[0]["text"] == "fine \ud800"


def test_json_lines_to_csv(model_dir: Path) -> None:
    lines = '{"text": "a", "n": [1, "x"]}\n{"text": "b"}\n'
    result = predict(model_dir, "-", "--format", "csv", stdin=lines)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["n"] for row in rows] == ['[1, "x"]', ""]
    result = predict(model_dir, "-", "--format", "csv", stdin=lines + '{"text": "c", "new": 1}\n')
    assert result.exit_code == 65
    assert "--format jsonl" in result.stderr


@pytest.mark.parametrize(
    ("stdin", "line", "word"),
    [
        (b"fine\nlate\nb\xffad\n", 3, "not utf-8"),
        (b"\xff\n", 1, "not utf-8"),
        (b'{"text": "a"}\nplain\n', 2, "not JSON"),
        (b'{"text": "a"}\n[1]\n', 2, "expected a JSON object"),
        (b'{"text": "a"}\n\n{"txt": "b"}\n', 3, "--text-column"),
        (b'{"text": "a"}\n' + b'{"a":' * 100_000 + b"\n", 2, "not JSON"),
    ],
)
def test_a_bad_line_is_named_after_the_good_ones(
    model_dir: Path, stdin: bytes, line: int, word: str
) -> None:
    result = predict(model_dir, "-", stdin=stdin)
    assert result.exit_code == 65
    assert f"<stdin>:{line}: " in result.stderr
    assert word in result.stderr
    good = sum(bool(text.strip()) for text in stdin.split(b"\n")[: line - 1])
    assert len(result.stdout.splitlines()) == good


def test_streams_in_other_encodings(model_dir: Path) -> None:
    for encoding in ("latin-1", "utf-16", "cp1252"):
        stdin = "café\nlate\n".encode(encoding)
        rows = json_rows(predict(model_dir, "-", "--encoding", encoding, stdin=stdin))
        assert [row["text"] for row in rows] == ["café", "late"]
    result = predict(model_dir, "-", "--encoding", "klingon", stdin="a\n")
    assert result.exit_code == 2
    assert "unknown encoding 'klingon'" in result.stderr


def test_pairs(pair_dir: Path, model_dir: Path, tmp_path: Path) -> None:
    assert predict(pair_dir, "the lamp", "--pair", "is fine").exit_code == 0
    rows = json_rows(predict(pair_dir, "-", stdin="the lamp\tis fine\n\na\tb\tc\n"))
    assert [(row["first"], row["second"]) for row in rows] == [
        ("the lamp", "is fine"), ("", ""), ("a", "b\tc")
    ]  # fmt: skip
    result = predict(pair_dir, "-", stdin="a\tb\nno tab\n")
    assert result.exit_code == 65
    assert "<stdin>:2: " in result.stderr
    (tmp_path / "pairs.csv").write_text("q,a\nthe lamp,is fine\n")
    told = ("--text-column", "q", "--text-column", "a")
    assert predict(pair_dir, tmp_path / "pairs.csv", *told).exit_code == 0
    assert predict(pair_dir, tmp_path / "pairs.csv").exit_code == 2
    for model, text in ((pair_dir, ("a",)), (model_dir, ("a", "--pair", "b"))):
        assert predict(model, *text).exit_code == 65
    for model, columns in ((pair_dir, told[:2]), (model_dir, told)):
        result = predict(model, tmp_path / "pairs.csv", *columns)
        assert result.exit_code == 2
        assert "the model takes" in result.stderr


def test_a_text_column_of_another_name(model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,review\n1,the lamp is quite fine\n2,it came late\n")
    result = predict(model_dir, tmp_path / "a.csv")
    assert result.exit_code == 0
    assert "no column 'text'; text column 'review'" in result.stderr
    (tmp_path / "b.csv").write_text("id,size\n1,2\n3,4\n")
    for extra in ((), ("--text-column", "txt")):
        result = predict(model_dir, tmp_path / "b.csv", *extra)
        assert result.exit_code == 2
        assert "--text-column" in result.stderr


def test_a_text_file_is_lines(model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fine, really\n\nlate")
    rows = json_rows(predict(model_dir, tmp_path / "a.txt"))
    assert [row["text"] for row in rows] == ["fine, really", "", "late"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_lines(model_dir: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("fine\nlate\n",))
    writer.start()
    assert len(json_rows(predict(model_dir, pipe))) == 2
    writer.join()


@pytest.mark.parametrize("name", ["missing.csv", "no such file.JSONL", "deep/er/x.tsv.gz", "a.txt"])
def test_a_missing_file_is_no_text(model_dir: Path, name: str) -> None:
    result = predict(model_dir, name)
    assert result.exit_code == 66
    assert "no such file" in result.stderr


@pytest.mark.parametrize("text", ["x" * 5000, "fine.\nsee a.csv", "a/b/c", "\x1b[31m red"])
def test_what_is_no_file_is_a_text(model_dir: Path, text: str) -> None:
    assert predict(model_dir, text).exit_code == 0


def test_options_without_effect_are_refused(model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\nfine\n")
    for arguments, word in [
        ((tmp_path / "a.csv", "--pair", "x"), "--pair"),
        (("-", "--pair", "x"), "--pair"),
        (("a text", "--text-column", "x"), "--text-column"),
        (("a text", "--encoding", "utf-8"), "--encoding"),
        ((tmp_path,), "is a folder"),
        ((tmp_path / "a.csv", "--out", tmp_path / "a.csv"), "the input itself"),
        ((tmp_path / "a.csv", "--out", tmp_path), "is a folder"),
    ]:
        result = predict(model_dir, *arguments, stdin="")
        assert result.exit_code == 2, arguments
        assert word in result.stderr
    assert (tmp_path / "a.csv").read_text() == "text\nfine\n"


def test_out_appears_whole_or_not_at_all(model_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    result = predict(model_dir, "-", "--out", out, stdin='{"text": "a"}\nbad\n')
    assert result.exit_code == 65
    assert list(tmp_path.iterdir()) == []
    out.write_text("old")
    assert predict(model_dir, "-", "--out", out, stdin="a\nb\n").exit_code == 0
    assert len(out.read_text().splitlines()) == 2
    for place in (tmp_path / "none" / "x.csv", out / "x.csv"):
        assert predict(model_dir, "a text", "--out", place).exit_code == 73


def test_folders_that_are_no_models(tmp_path: Path) -> None:
    result = predict(tmp_path / "none", "text")
    assert (result.exit_code, "no such folder" in result.stderr) == (66, True)
    result = predict(tmp_path, "text")
    assert (result.exit_code, "neither a model folder" in result.stderr) == (65, True)
    (tmp_path / "config.toml").write_text("")
    result = predict(tmp_path, "text")
    assert (result.exit_code, "train --resume" in result.stderr) == (65, True)
