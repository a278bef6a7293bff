"""Texts of shards in a fixed order, with and without random pieces; batches of any step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.bert_folders import WORDS, write_vocabulary
from typer.testing import CliRunner

from litebert.cli import app
from litebert.data.chunks import ChunkIndex
from litebert.data.shards import ShardSet
from litebert.recipes.distill.source import DistillSource
from litebert.recipes.distill.texts import ShardTexts
from litebert.text.tokenizer import Tokenizer
from litebert.train.settings import TrainSettings
from litebert.train.source import Part


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_vocabulary(folder / "words")
    words = [word for word in WORDS if word.isalpha()]
    lines = (" ".join(words[(n * k) % len(words)] for k in range(2, 9)) for n in range(1, 700))
    (folder / "text.txt").write_text("\n".join(lines) + "\n", "utf-8")
    words_of = [folder / "text.txt", "--tokenizer", folder / "words", "--out", folder / "shards"]
    command = ["prepare", *words_of, "--documents", "line", "--sentences", "lines", "-j", 1]
    assert CliRunner().invoke(app, [*map(str, command)]).exit_code == 0
    return folder / "shards"


def texts(shards: Path, **options: object) -> tuple[ShardTexts, ChunkIndex, Tokenizer]:
    index = ChunkIndex.build(ShardSet.open(shards), max_tokens=12, short_fraction=0.5, seed=3)
    tokenizer = Tokenizer.from_pretrained(shards / "tokenizer")
    return ShardTexts(index, tokenizer, seed=3, **options), index, tokenizer  # type: ignore[arg-type]


def test_every_chunk_is_one_text(shards: Path) -> None:
    found, index, tokenizer = texts(shards)
    assert len(found) == len(index)
    examples = [found.example(n) for n in range(len(found))]
    assert [len(example) for example in examples] == found.lengths.tolist()
    assert {(e.ids[0], e.ids[-1]) for e in examples} == {(tokenizer.cls_id, tokenizer.sep_id)}
    ours = sorted(tuple(example.ids[1:-1]) for example in examples)
    assert ours == sorted(tuple(index.chunk(n).ids) for n in range(len(index)))
    assert len(texts(shards, limit=5)[0]) == 5


def test_random_pieces(shards: Path) -> None:
    plain, _, tokenizer = texts(shards)
    found, _, _ = texts(shards, replaced=0.3)
    assert found.fingerprint != plain.fingerprint
    assert plain.fingerprint == texts(shards, replaced=0.0)[0].fingerprint
    changed, total = 0, 0
    for number in range(len(found)):
        old, new = plain.example(number).ids, found.example(number).ids
        assert np.array_equal(new, found.example(number).ids)
        if number % 2 == 0:
            assert np.array_equal(old, new)
            continue
        assert (old[0], old[-1]) == (new[0], new[-1])
        assert new[1:-1].min() > tokenizer.mask_id
        assert new.max() < tokenizer.vocab_size
        changed, total = changed + int((old != new).sum()), total + len(old) - 2
    assert 0.25 < changed / total < 0.33


def test_random_pieces_by_their_place(shards: Path) -> None:
    alike, _, tokenizer = texts(shards, replaced=0.5)
    found, _, _ = texts(shards, replaced=0.5, by_rank=True)
    assert found.fingerprint != alike.fingerprint
    plain, _, _ = texts(shards)
    drawn: list[int] = []
    for number in range(1, len(found), 2):
        old, new = plain.example(number).ids, found.example(number).ids
        drawn += new[old != new].tolist()
    words = [i for i in range(tokenizer.vocab_size) if tokenizer.token(i).isalnum()]
    words = [i for i in words if len(tokenizer.token(i)) > 1]
    assert set(drawn) <= {i for i in range(tokenizer.vocab_size) if len(tokenizer.token(i)) > 1}
    half = len(words) // 2
    early = sum(number in words[:half] for number in drawn)
    late = sum(number in words[-half:] for number in drawn)
    assert 0 < late < early


def test_epochs_visit_every_text_once(shards: Path) -> None:
    found, _, _ = texts(shards)
    settings = TrainSettings(batch_size=32, seed=5)
    source = DistillSource(found, 600, settings, key="k")
    steps = source.steps_in(2)
    numbers = [n for step in range(steps) for n in source.numbers_of(step)][:1200]
    assert sorted(numbers[:600]) == list(range(600)) == sorted(numbers[600:])
    assert numbers[:600] != numbers[600:]
    again = DistillSource(found, 600, settings, key="k")
    assert again.numbers_of(19) == source.numbers_of(19)
    shares = [again.numbers_of(4, Part(rank, 3)) for rank in range(3)]
    assert sorted(n for share in shares for n in share) == sorted(source.numbers_of(4))
    assert source.fingerprint != DistillSource(found, 600, settings, key="other").fingerprint
    batch = source.batch(0, 0.0)
    assert batch is not None
    assert batch.example_index.tolist() == source.numbers_of(0)
    assert source.epoch(steps) == pytest.approx(2.0, abs=0.06)
