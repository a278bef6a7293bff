"""Files of records with anything changed in them: records, or an error of ours, and nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.record_files import FILES

from litebert.data.readers import ReadOptions
from litebert.errors import LitebertError
from litebert.tasks.records import RECORD_KINDS
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

ROUNDS = 12
"""Files of each kind; 8,353 were tried when this was written."""
VALUES: tuple[Any, ...] = (
    None, True, 3, -1, 1e308, float("nan"), 10**30, "", " ", "\x00", "\ud800", "x" * 2000, "9" * 400,
    [], {}, [[]], [{}],
)  # fmt: skip
PIECES = (
    b"\n", b"\t", b"\r", b'"', b"\xff", b"\x00", b"  ", b"#", b"-DOCSTART-\n", "\u2028é".encode(),
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = ["the lake lies north of the mill", "abc"]
    return train_vocabulary(texts * 4, 40, tmp_path_factory.mktemp("vocabulary"))


def other_value(value: Any, rng: random.Random) -> Any:
    """A JSON value with some of its parts replaced, renamed, repeated or left out."""
    if rng.random() < 0.06:
        return rng.choice(VALUES)
    if isinstance(value, dict):
        kept = ((key, inner) for key, inner in value.items() if rng.random() > 0.04)
        return {key + "x" * (rng.random() < 0.03): other_value(inner, rng) for key, inner in kept}
    if isinstance(value, list):
        items = [other_value(item, rng) for item in value]
        if items and rng.random() < 0.1:
            items = rng.choice(([*items, items[0]], items[1:]))
        return items
    if isinstance(value, int) and rng.random() < 0.2:
        return value + rng.choice((-100, -1, 1, 100))
    return value


def other_bytes(content: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(content) + 1)
        end = rng.choice((place, place + 1, place + rng.randint(1, 20), len(content)))
        content = content[:place] + rng.choice((b"", *PIECES)) + content[end:]
    return content


def changed(file: Path, rng: random.Random) -> bytes:
    content = file.read_bytes()
    if rng.random() < 0.5:
        return other_bytes(content, rng)
    try:
        rows = [json.loads(line) for line in content.decode("utf-8").splitlines()]
    except ValueError:
        return other_bytes(content, rng)
    lines = (json.dumps(other_value(row, rng)) for row in rows)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", sorted(FILES))
def test_records_or_an_error_of_ours(name: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    kind, rng = RECORD_KINDS.get(name), random.Random(name)
    for number in range(ROUNDS):
        path = FILES[name](tmp_path / str(number))
        for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
            file.write_bytes(changed(file, rng))
        try:
            source = kind.read(path, ReadOptions(on_bad_row=rng.choice(("error", "skip"))), True)
            records = source.train.records
            task = kind.make_task(records, {"max_length": 48})
            task.features(records, tokenizer, labelled=True)
            task.baselines(records, records)
            json.dumps([task.show(record) for record in records])
        except LitebertError as error:
            assert str(error)
