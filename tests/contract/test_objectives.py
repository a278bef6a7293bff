"""Every pretraining objective: the same example for the same numbers, clean labels, true counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "data"))
from shard_fixture import make_shards

from litebert.data.chunks import ChunkIndex
from litebert.objectives.base import IGNORED, OBJECTIVES, Objective, SpecialIds
from litebert.objectives.compose import ObjectiveSettings, make_objectives
from litebert.objectives.examples import ExampleMaker, collate_examples
from litebert.objectives.randomness import example_rng
from litebert.settings import build_settings
from litebert.text.tokenizer import Tokenizer

CHOICES: dict[str, dict[str, Any]] = {
    "mlm": {"order": "none"},
    "sop": {"order": "sop", "mlm": {"weight": 0.0}},
    "nsp": {"order": "nsp", "mlm": {"weight": 0.0}},
    "rtd": {"order": "none", "rtd": {}},
}
"""For each registered objective: settings that use it, and no other unless it needs one."""
EXAMPLES = 40
NAMES = pytest.mark.parametrize("name", list(CHOICES))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ChunkIndex:
    shards = make_shards(tmp_path_factory.mktemp("corpus"))
    return ChunkIndex.build(shards, max_tokens=61, short_fraction=0.1)


@pytest.fixture(scope="module")
def tokens(index: ChunkIndex) -> SpecialIds:
    return SpecialIds.of(Tokenizer.from_pretrained(index.shards.tokenizer_folder))


def settings_of(name: str) -> ObjectiveSettings:
    return build_settings(ObjectiveSettings, CHOICES[name])


def objective_of(name: str) -> Objective:
    return next(o for o in make_objectives(settings_of(name)) if o.name == name)


def numbers(index: ChunkIndex) -> Iterator[int]:
    return iter(range(min(EXAMPLES, len(index))))


def test_every_objective_has_settings_here() -> None:
    assert set(OBJECTIVES) == set(CHOICES)


@NAMES
def test_an_objective_has_a_weight_under_its_own_name(name: str) -> None:
    assert settings_of(name).weights[name] > 0
    assert objective_of(name).name == name
    assert type(objective_of(name)).__doc__


@NAMES
def test_segments_are_real_text_and_the_same_again(name: str, index: ChunkIndex) -> None:
    objective = objective_of(name)
    for number in numbers(index):
        chunk = index.chunk(number)
        first, again = (
            objective.arrange(index.chunk(number), index, example_rng(3, 1, number))
            for _ in range(2)
        )
        if first is None or again is None:
            assert first is again
            continue
        parts = [part for part in (first.first, first.second) if part is not None]
        assert all(len(part) > 0 and len(part.ids) == len(part.word_starts) for part in parts)
        assert sum(map(len, parts)) <= 61
        assert [part.ids.tolist() for part in parts] == [
            part.ids.tolist() for part in (again.first, again.second) if part is not None
        ]
        assert np.array_equal(chunk.ids, index.chunk(number).ids)  # the clean text stays clean


@NAMES
@pytest.mark.parametrize("progress", [0.0, 1.0])
def test_labels_are_the_original_tokens_and_special_ones_stay(
    name: str, progress: float, index: ChunkIndex, tokens: SpecialIds
) -> None:
    maker = ExampleMaker(index, settings_of(name), tokens, 3)
    special = (tokens.cls, tokens.sep)
    for number in numbers(index):
        example = maker.make(1, number, progress)
        found = maker.arrangement(1, number)
        clean = [tokens.cls, *found.first.ids, tokens.sep]
        if found.second is not None:
            clean += [*found.second.ids, tokens.sep]
        has_target = example.labels != IGNORED
        assert np.array_equal(example.labels[has_target], np.asarray(clean)[has_target])
        assert np.array_equal(example.ids[~has_target], np.asarray(clean)[~has_target])
        assert not np.isin(clean, special)[has_target].any()


@NAMES
def test_targets_are_counted_per_example(name: str, index: ChunkIndex, tokens: SpecialIds) -> None:
    objective = objective_of(name)
    maker = ExampleMaker(index, settings_of(name), tokens, 3)
    examples = [maker.make(0, number) for number in numbers(index)]
    batch = collate_examples(examples)
    assert 0 < objective.count(batch) <= batch.num_tokens
    assert objective.count(batch) == sum(objective.count(collate_examples([e])) for e in examples)
