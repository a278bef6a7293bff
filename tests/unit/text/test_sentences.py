"""Sentence splitters: no line ends, wrapped lines joined, several languages."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import MissingDependencyError, SettingsError
from litebert.text.sentences import paragraphs, sentence_splitter


def test_wrapped_lines_are_joined_and_long_lines_are_paragraphs() -> None:
    text = "A heron\nstood  \n still.\n \n\n" + "word " * 40 + "\nnext\n\n\nLast."
    assert list(paragraphs(text)) == [
        "A heron stood still.",
        "word " * 39 + "word",
        "next",
        "Last.",
    ]
    assert list(paragraphs(" \n\n \n")) == []


def test_wrapped_chinese_gets_no_blanks() -> None:
    assert list(paragraphs("他站在河\n边。\nABC\n很好")) == ["他站在河边。 ABC 很好"]


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "Mr. Hill went\nhome. He slept.", ["Mr. Hill went home.", "He slept."]),
        ("en", "No end\n\nNext one", ["No end", "Next one"]),
        ("de", "Es kam z. B. Dr. Berg. Er ging.", ["Es kam z. B. Dr. Berg.", "Er ging."]),
        ("hi", "यह नदी है। वह पेड़ है।", ["यह नदी है।", "वह पेड़ है।"]),
        ("ar", "هل أنت بخير؟ نعم.", ["هل أنت بخير؟", "نعم."]),
        ("zh", "你好。我很好！你呢？", ["你好。", "我很好！", "你呢？"]),
        ("ja", "今日は晴れ。明日は雨？", ["今日は晴れ。", "明日は雨？"]),
    ],
)
def test_sentences_of_languages(language: str, text: str, sentences: list[str]) -> None:
    assert sentence_splitter("sentencex", language)(text) == sentences


def test_lines() -> None:
    assert sentence_splitter("lines")(" One. Two.\n\nThree\n ") == ["One. Two.", "Three"]


def test_long_texts_are_split_in_pieces_without_loss() -> None:
    text = "\n\n".join(f"This is number {number}. It ends." for number in range(9_000))
    found = sentence_splitter()(text)
    assert len(found) == 18_000
    assert " ".join(found) == " ".join(text.split())


@pytest.mark.parametrize("language", ["", "EN", "english", "english language", "../x", "e"])
def test_what_is_no_language_code_is_refused(language: str) -> None:
    with pytest.raises(SettingsError, match="not a language code"):
        sentence_splitter("sentencex", language)


def test_unknown_splitters_are_refused() -> None:
    with pytest.raises(SettingsError, match="did you mean 'sentencex'"):
        sentence_splitter("sentencx")


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "sentencex":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"litebert\[train\]"):
        sentence_splitter("sentencex")


@pytest.mark.parametrize(
    ("file", "options", "language", "low", "high"),
    [
        ("corpora/german_novels/kafka_process.txt.xz", {"documents": "file"}, "de", 60, 200),
        ("xquad/xquad.hi.json", {"text_field": "context"}, "hi", 80, 250),
        ("xquad/xquad.ar.json", {"text_field": "context"}, "ar", 80, 250),
        ("xquad/xquad.zh.json", {"text_field": "context"}, "zh", 25, 90),
        ("jglue/jsquad-v1.3/valid-v1.3.json", {"text_field": "context"}, "ja", 25, 110),
    ],
)
def test_real_texts_have_sentences_of_usual_length(
    shared: Path, file: str, options: dict[str, str], language: str, low: float, high: float
) -> None:
    from litebert.data.corpus import CorpusOptions, read_documents

    chosen = CorpusOptions.model_validate(options)
    splitter = sentence_splitter("sentencex", language)
    found: list[str] = []
    for document in read_documents([shared / "data" / file], chosen, on_fault=print):
        found.extend(splitter(document.text))
    assert low < sum(map(len, found)) / len(found) < high
    assert max(map(len, found)) < 6_000
