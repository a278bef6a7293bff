"""Every sentence splitter: keeps all characters, gives clean lines, goes to other processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from litebert.text.sentences import SENTENCE_SPLITTERS, sentence_splitter

TEXT = "One, two.\nThree! Four\n\n  Fünf… \U0001f600? 六。\u2028 x\x0b\n" * 50


@pytest.mark.parametrize("language", ["en", "de", "hi", "zh-Hant", "pt_BR"])
@pytest.mark.parametrize("name", list(SENTENCE_SPLITTERS))
def test_a_splitter_keeps_all_characters_and_can_be_pickled(name: str, language: str) -> None:
    splitter = pickle.loads(pickle.dumps(sentence_splitter(name, language)))  # noqa: S301
    found = splitter(TEXT)
    assert "".join("".join(found).split()) == "".join(TEXT.split())
    assert all(s == s.strip() and s and "\n" not in s for s in found)
    assert found == splitter(TEXT)
    assert splitter("") == splitter(" \n\n ") == []


def test_a_splitter_outside_the_project_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside_splitter.py").write_text("def words(language):\n    return str.split\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(SENTENCE_SPLITTERS, "_items", dict(SENTENCE_SPLITTERS._items))
    assert sentence_splitter("outside_splitter:words")("a b") == ["a", "b"]
