"""Tokenizers of the text tests: one learnt from original sentences, and the published ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from litebert.text import Tokenizer, train_vocabulary

SUBJECTS = ("The baker", "A tired nurse", "My neighbour", "Our captain", "The quiet student")
VERBS = ("ordered", "returned", "painted", "repaired", "forgot", "counted", "sold")
OBJECTS = ("3 red lamps", "the old bicycle", "a wool coat", "25, no, 30 tickets", "two maps")
ENDS = ("before lunch.", "without a word!", "for £12.50 (again)?", "at the harbour - twice.")

SENTENCES = [
    f"{subject} {verb} {thing} {end}"
    for subject in SUBJECTS
    for verb in VERBS
    for thing in OBJECTS
    for end in ENDS
]

CHINESE_VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *(
        "我",
        "们",
        "去",
        "北",
        "京",
        "。",
        ",",
        "!",
        "hello",
        "wor",
        "##ld",
        "##s",
        "cafe",
        "2",
        "##0",
    ),
]


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    train_vocabulary(SENTENCES, 200, folder)
    return folder


@pytest.fixture(scope="session")
def small(small_folder: Path) -> Tokenizer:
    return Tokenizer.from_pretrained(small_folder)


@pytest.fixture(scope="session")
def wordpiece(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("wordpiece")
    (folder / "vocab.txt").write_text("\n".join(CHINESE_VOCABULARY) + "\n", encoding="utf-8")
    return Tokenizer.from_pretrained(folder)


@pytest.fixture(scope="session")
def english(shared: Path) -> Tokenizer:
    return Tokenizer.from_pretrained(shared / "models" / "albert-english-vocab")


@pytest.fixture(scope="session")
def chinese(shared: Path) -> Tokenizer:
    return Tokenizer.from_pretrained(shared / "models/tf1-index/albert_base_zh_google")
