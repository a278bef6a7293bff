"""Outputs of a teacher on disk: made once, found again, refused when damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.compress import teacher_cache
from litebert.compress.teacher_cache import TeacherCache
from litebert.data.batch import EncodedExample
from litebert.errors import DataError
from litebert.recipes.distill.texts import EncodedTexts

WIDTH = 3


class Echo:
    """A teacher whose answers are the ids themselves."""

    fingerprint, relation_depth, vocabulary, width, max_length = "echo", None, "v", WIDTH, 99

    def __init__(self) -> None:
        self.asked: list[int] = []

    def width_of(self, part: str) -> int:
        return 2 if part == "logits" else WIDTH

    def describe(self) -> str:
        return "echo"

    def encode(self, text: str, pair: str | None, max_length: int, number: int) -> EncodedExample:
        pytest.fail(f"text {number} was encoded already, and is asked for again")

    def answer(self, examples: Sequence[EncodedExample], parts: Sequence[str]) -> dict[str, Any]:
        self.asked += [example.index for example in examples]
        tokens = np.concatenate([e.ids for e in examples])
        rows = np.asarray([e.ids.sum() for e in examples])
        return {
            part: np.repeat(
                (tokens if part == "hidden" else rows)[:, None], self.width_of(part), 1
            ).astype(np.float16)
            for part in parts
        }


def texts(count: int = 9) -> EncodedTexts:
    rng = np.random.default_rng(0)
    return EncodedTexts(
        [
            EncodedExample(
                rng.integers(0, 50, 1 + n % 4).astype(np.int32),
                np.zeros(1 + n % 4, np.int32),
                None,
                n,
            )
            for n in range(count)
        ]
    )


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_cache, "SHARD_EXAMPLES", 4)


PARTS = ("hidden", "pooled", "logits")


def test_rows_are_those_of_the_examples(tmp_path: Path) -> None:
    data, teacher = texts(), Echo()
    cache = TeacherCache(tmp_path, teacher, data, PARTS)
    chosen = np.array([8, 0, 5, 1])
    found = cache.targets(chosen)
    tokens = np.concatenate([data.example(n).ids for n in chosen])
    assert torch.equal(found.hidden, torch.tensor(tokens).float()[:, None].expand(-1, WIDTH))
    sums = torch.tensor([float(data.example(n).ids.sum()) for n in chosen])
    assert torch.equal(found.pooled, sums[:, None].expand(-1, WIDTH))
    assert torch.equal(found.logits, sums[:, None].expand(-1, 2))
    assert found.relations is None
    assert found.hidden.dtype == torch.float32


def test_the_teacher_is_asked_once_and_only_for_what_is_needed(tmp_path: Path) -> None:
    data, teacher = texts(), Echo()
    cache = TeacherCache(tmp_path, teacher, data, PARTS)
    cache.targets(np.array([5]))
    assert teacher.asked == [4, 5, 6, 7]
    made: list[tuple[int, int]] = []
    other = Echo()
    again = TeacherCache(tmp_path, other, data, PARTS, lambda *counts: made.append(counts))
    again.targets(np.array([6]))
    assert other.asked == []
    assert again.fill()
    assert other.asked == [0, 1, 2, 3, 8]
    assert made == [(2, 3), (3, 3)]
    assert not TeacherCache(tmp_path / "new", other, data, PARTS).fill(lambda: True)


def test_another_question_has_another_place(tmp_path: Path) -> None:
    data = texts()
    caches = [
        TeacherCache(tmp_path, Echo(), data, PARTS),
        TeacherCache(tmp_path, Echo(), texts(8), PARTS),
        TeacherCache(tmp_path, Echo(), data, ("hidden",)),
    ]
    stranger = Echo()
    stranger.fingerprint = "other"
    caches.append(TeacherCache(tmp_path, stranger, data, PARTS))
    assert len({cache.folder for cache in caches}) == 4


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0\0")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def swap(path: Path) -> None:
    path.write_bytes((path.parent / "shard-000001.bin").read_bytes())


def endless(path: Path) -> None:
    path.write_bytes(b"\0" * 200_000)


@pytest.mark.parametrize("damage", [flip, cut, lengthen, empty, swap, endless])
def test_damaged_files_are_named(tmp_path: Path, damage: Any) -> None:
    cache = TeacherCache(tmp_path, Echo(), texts(), PARTS)
    cache.fill()
    path = cache.folder / "shard-000000.bin"
    damage(path)
    with pytest.raises(DataError, match=r"shard-000000\.bin.*damaged, cut short, or of another"):
        TeacherCache(tmp_path, Echo(), texts(), PARTS).targets(np.array([0]))
    path.unlink()
    assert TeacherCache(tmp_path, Echo(), texts(), PARTS).targets(np.array([0])).hidden is not None


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    cache = TeacherCache(tmp_path, Echo(), texts(), PARTS)
    (cache.folder / "shard-000000.bin").mkdir(parents=True)
    with pytest.raises(DataError, match="cannot be read"):
        cache.targets(np.array([0]))


def test_few_files_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_cache, "OPEN_SHARDS", 1)
    cache = TeacherCache(tmp_path, Echo(), texts(), PARTS)
    first = cache.targets(np.array([0])).hidden
    cache.targets(np.array([8]))
    assert len(cache._open) == 1
    assert torch.equal(cache.targets(np.array([0])).hidden, first)
