"""Every kind of records reads its file as other programs leave it: marks, line ends, old encodings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tests.record_files import FILES

from litebert.data.readers import ReadOptions
from litebert.data.records import split_records
from litebert.errors import DataError
from litebert.recipes.finetune.record_plan import record_texts
from litebert.tasks.records import RECORD_KINDS

KINDS = pytest.mark.parametrize("name", sorted(FILES))
ASIAN = frozenset({"jcommonsenseqa", "jsts"})
ACCENTS = (("lake", "läke"), ("rain", "räin"), ("help", "hélp"), ("thing", "thîng"),
           ("water", "wäter"), ("the", "thé"))  # fmt: skip
"""Letters that Latin-1 has, one for one, so that places of answers stay where they are."""


def files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [p for p in sorted(path.rglob("*")) if p.is_file()]


def read(name: str, path: Path) -> list[Any]:
    source = RECORD_KINDS.get(name).read(path, ReadOptions(), True)
    return [
        dataclasses.replace(record, path=Path(record.path.name))
        for split in (source.train, source.eval, source.test)
        for record in (split.records if split is not None else ())
    ]


@KINDS
def test_a_mark_and_other_line_ends_change_nothing(name: str, tmp_path: Path) -> None:
    path = FILES[name](tmp_path)
    before = read(name, path)
    for file in files(path):
        plain = file.read_bytes()
        file.write_bytes(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"))
    assert read(name, path) == before
    for file in files(path):
        file.write_bytes(file.read_bytes()[3:].decode("utf-8").encode("utf-16"))
    assert read(name, path) == before


@KINDS
def test_letters_of_latin_1(name: str, tmp_path: Path) -> None:
    if name in ASIAN:
        pytest.skip("its texts have no letters of Latin-1")
    path = FILES[name](tmp_path)
    for file in files(path):
        text = file.read_text("utf-8")
        for plain, accented in ACCENTS:
            text = text.replace(plain, accented)
        file.write_text(text, "utf-8", newline="")
    before = read(name, path)
    assert any(not text.isascii() for record in before for text in record_texts(record))
    for file in files(path):
        file.write_bytes(file.read_bytes().decode("utf-8").encode("latin-1"))
    assert read(name, path) == before


@KINDS
@pytest.mark.parametrize(
    "content", [b"\0" * 40, b"\x80\x81\xfe\xff" * 30, b"{" * 50_000, b"\n\r\n"]
)
def test_a_file_that_holds_nothing_of_use_is_named(
    name: str, content: bytes, tmp_path: Path
) -> None:
    if name == "intent_slots" and content.startswith(b"{"):
        pytest.skip("any word may be a word, a tag and an intent")
    path = FILES[name](tmp_path)
    for file in files(path):
        file.write_bytes(content)
    with pytest.raises(DataError) as error:
        read(name, path)
    assert str(tmp_path) in str(error.value)


@KINDS
def test_a_part_has_a_digest_that_follows_its_files(name: str, tmp_path: Path) -> None:
    """A resumed run knows by it that its data are another's."""
    path = FILES[name](tmp_path)

    def digests() -> list[str]:
        source = RECORD_KINDS.get(name).read(path, ReadOptions(), True)
        return [
            part.sha256 for part in (source.train, source.eval, source.test) if part is not None
        ]

    before = digests()
    assert all(len(digest) == 64 for digest in before) and digests() == before
    for file in files(path):
        file.write_bytes(file.read_bytes().rstrip(b"\n") + b" \n")
    assert all(now != then for now, then in zip(digests(), before, strict=True))


@pytest.mark.parametrize("name", ["tagging", "choice", "commonsense_qa", "similarity", "squad"])
def test_a_json_list_in_one_line_is_many_records(name: str, tmp_path: Path) -> None:
    """Their line is one and the same, but neither their names nor what keeps them together in a split."""
    story = "Mira keeps lamp {n}."
    choices = [{"label": letter, "text": f"thing {letter}"} for letter in "AB"]
    rows: dict[str, Any] = {
        "tagging": {"text": story, "spans": [[0, 4, "PER"]]},
        "choice": {"question": story, "choices": ["yes", "no"], "answer": 0},
        "commonsense_qa": {"question": {"stem": story, "choices": choices}, "answerKey": "B"},
        "similarity": {"sentence1": story, "sentence2": "She has lamps.", "score": 0.5},
        "squad": {"question": "Who?", "context": story,
                  "answers": {"text": ["Mira"], "answer_start": [0]}},
    }  # fmt: skip
    text = json.dumps(rows[name])
    path = tmp_path / "r.json"
    path.write_text("[" + ", ".join(text.replace("{n}", str(n)) for n in range(9)) + "]")
    records = read(name, path)
    assert len({record.id for record in records}) == len({record.group for record in records}) == 9
    train, evaluation = split_records(records, 0.3, 0)
    assert len(train) + len(evaluation) == 9
