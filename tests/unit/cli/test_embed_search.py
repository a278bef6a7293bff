"""`litebert embed` and `litebert search` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from litebert.cli import app

LINES = "the fine kettle is late\n\na broken lamp\nthe fine kettle is late\n"


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(LINES)
    return path


def test_standard_input_gives_a_vector_a_line(model_dir: Path) -> None:
    result = run("embed", model_dir, "--dim", 4, text=LINES)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["text"] for row in rows] == LINES.splitlines()
    assert all(len(row["vector"]) == 4 for row in rows)
    assert rows[0]["vector"] == pytest.approx(rows[3]["vector"], abs=1e-5)


def test_files_of_every_kind_are_embedded_in_order(
    model_dir: Path, corpus: Path, tmp_path: Path
) -> None:
    table = tmp_path / "a.csv"
    table.write_text(
        "n,text\n1,the fine kettle is late\n2,\n3,a broken lamp\n4,the fine kettle is late\n"
    )
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in LINES.splitlines()))
    found: list[np.ndarray] = []
    for data in (corpus, table, lines):
        out = tmp_path / "v.npy"
        result = run("embed", model_dir, data, "-o", out, "--pooling", "cls", "--max-length", 8)
        assert result.exit_code == 0, result.output
        assert "wrote 4 vectors" in result.stderr
        found.append(np.load(out))
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("none.txt",), 65, "no such file"),
        (("{folder}",), 2, "is a folder"),
        (("{corpus}", "-o", "{folder}/v.csv"), 2, "allowed: .npy"),
        (("{corpus}", "-o", "{folder}/d.npy"), 2, "is a folder; name a file"),
        (("{same}", "-o", "{same}"), 2, "is the input itself"),
        (("{corpus}", "--dim", "9999"), 2, "vectors have"),
        (("{corpus}", "--encoding", "klingon"), 2, "unknown encoding"),
    ],
)
def test_wrong_use_of_embed_is_told(
    model_dir: Path,
    corpus: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    (tmp_path / "d.npy").mkdir()
    same = tmp_path / "same.jsonl"
    same.write_text('{"text": "a"}\n')
    places = {"folder": tmp_path, "corpus": corpus, "same": same}
    result = run("embed", model_dir, *(part.format(**places) for part in arguments))
    assert result.exit_code in (code, 66) and message in result.output


def test_a_search_shows_place_and_text_and_uses_its_index(model_dir: Path, corpus: Path) -> None:
    first = run("search", model_dir, corpus, "the fine kettle is late", "--top", 2)
    assert first.exit_code == 0, first.output
    shown = [line.split() for line in first.stdout.splitlines()]
    assert [(row[0], row[2]) for row in shown] == [("1", f"{corpus}:1"), ("2", f"{corpus}:4")]
    assert "index     3 texts" in first.stderr
    again = run("search", model_dir, corpus, "the fine kettle is late", "--top", 2)
    assert again.stdout == first.stdout and "index" not in again.stderr


def test_many_queries_give_json_lines_or_blocks(
    model_dir: Path, corpus: Path, tmp_path: Path
) -> None:
    queries = tmp_path / "q.csv"
    queries.write_text("text\na broken lamp\nthe fine kettle is late\n")
    command = ("search", model_dir, corpus, "--queries", queries, "--no-cache")
    rows = [json.loads(line) for line in run(*command, "--json").stdout.splitlines()]
    assert [row["hits"][0]["line"] for row in rows] == [3, 1]
    assert run(*command).stdout.count("query: ") == 2
    assert not (tmp_path / ".litebert-index").exists()


def test_wrong_use_of_search_is_told(model_dir: Path, corpus: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((), "give one QUERY"),
        (("a", "--queries", corpus), "give one QUERY"),
        (("a", "--query-column", "text"), "belongs to --queries"),
        (("a", "--index", tmp_path / "i.safetensors", "--no-cache"), "choose one"),
    ):
        result = run("search", model_dir, corpus, *arguments)
        assert result.exit_code == 2 and message in result.output
