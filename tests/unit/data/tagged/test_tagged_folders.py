"""Folders: train, dev and test by their names, and `seq.in` with its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from litebert.data.readers import ReadOptions
from litebert.data.tagged.reader import read_intents_and_slots, read_tagged
from litebert.data.tagged.record import Span
from litebert.errors import DataError

SENTENCES = "Ada B-PER\nleft O\n"


def fill(folder: Path, names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names.split():
        (folder / name).write_text(SENTENCES, encoding="utf-8")
    (folder / "README.md").write_text("words", encoding="utf-8")
    (folder / "LICENSE").write_text("words", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        ("esp.train esp.testa esp.testb", "esp.train esp.testa esp.testb"),
        ("train.txt valid.txt test.txt", "train.txt valid.txt test.txt"),
        ("data_train.conll data-dev.conll", "data_train.conll data-dev.conll -"),
        ("wnut17train.conll emerging.dev.conll emerging.test emerging.test.annotated",
         "wnut17train.conll emerging.dev.conll emerging.test.annotated"),
        ("AnEM.train AnEM.test", "AnEM.train - AnEM.test"),
        ("wikigold.conll.txt", "wikigold.conll.txt - -"),
    ],
)  # fmt: skip
def test_roles_follow_from_names(tmp_path: Path, names: str, roles: str) -> None:
    source = read_tagged(fill(tmp_path / "set", names), ReadOptions(), True)
    parts = (source.train, source.eval, source.test)
    assert " ".join(part.path.name if part else "-" for part in parts) == roles
    assert all(part.sha256 for part in parts if part)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("esp.train ned.train", "several files for train: esp.train, ned.train"),
        ("a.dev b.test", "no training file among a.dev, b.test"),
        ("", "no training file"),
    ],
)
def test_folders_that_cannot_be_told(tmp_path: Path, names: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_tagged(fill(tmp_path / "set", names), ReadOptions(), True)


def slots(folder: Path, words: str, tags: str | None, intents: str | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("seq.in", words), ("seq.out", tags), ("label", intents)):
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_slots_and_intents_of_three_folders(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        slots(tmp_path / part, "fly  to rome \nhelp\n", "O O B-city\nO\n", "flight\nother#help\n")
    source = read_intents_and_slots(tmp_path, ReadOptions(), True)
    assert source.eval and source.test
    first, second = source.train.records
    assert (first.text, first.spans, first.intent) == (
        "fly to rome",
        (Span(7, 11, "city"),),
        "flight",
    )
    assert (second.spans, second.intent, second.line) == ((), "other#help", 2)
    one = read_tagged(tmp_path / "test" / "seq.in", ReadOptions(), True)
    assert len(one.train.records) == 2 and one.eval is None


def test_prediction_needs_words_alone(tmp_path: Path) -> None:
    folder = slots(tmp_path / "new", "fly to rome\n", None, None)
    (record,) = read_intents_and_slots(folder, ReadOptions(), False).train.records
    assert (record.spans, record.intent) == (None, None)
    with pytest.raises(DataError, match="no such file"):
        read_tagged(folder, ReadOptions(), True)


@pytest.mark.parametrize(
    ("words", "tags", "intents", "said", "line"),
    [
        ("a b\nc\n", "O O\n", "x\ny\n", "1 lines, but seq.in has 2", 2),
        ("a b\nc\n", "O O\nO\n", "x\n", "1 lines, but seq.in has 2", 2),
        ("a b\nc\n", "O\nO\n", "x\ny\n", "2 words, but seq.out has 1 tags", 1),
        ("a b\n\nc\n", "O O\n\nO\n", "x\ny\nz\n", "no word", 2),
        ("a b\nc\n", "O O\nO\n", "x\n \n", "no intent", 2),
    ],
)
def test_files_that_do_not_fit_each_other(
    tmp_path: Path, words: str, tags: str, intents: str, said: str, line: int
) -> None:
    folder = slots(tmp_path / "train", words, tags, intents)
    with pytest.raises(DataError, match=said) as caught:
        read_tagged(folder, ReadOptions(), True)
    assert caught.value.line == line
