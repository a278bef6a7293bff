"""Examples: a function of four numbers, packed end to end, the same for every worker."""

from __future__ import annotations

import hashlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from litebert.data.batch import split_batch
from litebert.errors import DataError, SettingsError
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.examples import ExampleMaker, collate_examples
from litebert.objectives.randomness import SAMPLING, example_rng
from litebert.settings import build_settings, dump_toml


def digest(examples) -> str:
    total = hashlib.sha256()
    for example in examples:
        for part in (example.ids, example.type_ids, example.labels):
            total.update(part.tobytes())
        total.update(repr((example.order_label, example.index)).encode())
    return total.hexdigest()


def test_the_same_numbers_give_the_same_example(corpus):
    maker, other = corpus.maker(), corpus.maker()
    order = np.random.default_rng(1).permutation(len(corpus.index)).tolist()
    backwards = {index: other.make(2, index, 0.5) for index in order}
    forwards = [maker.make(2, index, 0.5) for index in range(len(corpus.index))]
    assert digest(forwards) == digest(backwards[i] for i in range(len(corpus.index)))
    assert forwards[3].index == 2 * len(corpus.index) + 3
    again = [digest([maker.make(*where)]) for where in ((2, 3), (3, 3), (2, 4))]
    assert len({*again, digest([corpus.maker(seed=6).make(2, 3)])}) == 4


def _work(maker: ExampleMaker, numbers: list[int]) -> list:
    return [maker.make(1, number, 0.25) for number in numbers]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_workers_gives_the_same_batches(corpus, tmp_path, workers):
    corpus.index.save(tmp_path / "chunks")
    maker = corpus.maker()
    numbers = list(range(120))
    parts = [numbers[k::workers] for k in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        done = list(pool.map(_work, [maker] * workers, parts))
    found = {
        n: e
        for part, made in zip(parts, done, strict=True)
        for n, e in zip(part, made, strict=True)
    }
    assert digest(found[n] for n in numbers) == digest(_work(maker, numbers))


def test_progress_moves_the_rate_and_nothing_else(corpus):
    mlm = {"mask_fraction": 0.4, "schedule": "linear", "end_fraction": 0.1}
    maker = corpus.maker(mlm=mlm)
    early, late = maker.make(0, 1, 0.0), maker.make(0, 1, 1.0)
    assert early.order_label == late.order_label
    assert (early.labels != -100).sum() > 2 * (late.labels != -100).sum()


def test_collate(corpus):
    maker = corpus.maker()
    examples = [maker.make(0, index) for index in (4, 9, 2)]
    batch = collate_examples(examples)
    assert batch.num_tokens == sum(map(len, examples))
    assert batch.example_index.tolist() == [4, 9, 2]
    assert batch.labels.dtype == batch.order_labels.dtype == np.int64
    assert batch.order_labels.tolist() == [example.order_label for example in examples]
    bounds = batch.cu_seqlens
    for place, example in enumerate(examples):
        part = slice(bounds[place], bounds[place + 1])
        assert np.array_equal(batch.input_ids[part], example.ids)
        assert np.array_equal(batch.labels[part], example.labels)
        assert batch.position_ids[part].tolist() == list(range(len(example)))
    micro = split_batch(batch, len(examples[0]))
    assert micro[0].order_labels.tolist() == [examples[0].order_label]
    none = corpus.maker(order="none")
    assert collate_examples([none.make(0, 4)]).order_labels is None
    with pytest.raises(DataError, match="at least one example"):
        collate_examples([])


def test_only_masking_or_only_order(corpus):
    order = corpus.maker(mlm={"weight": 0})
    assert all((order.make(0, i).labels == -100).all() for i in range(5))
    assert list(order.settings.weights) == ["sop"]
    assert order.settings.head == "sentence_order"
    mlm = corpus.maker(order="none")
    assert list(mlm.settings.weights) == ["mlm"]
    assert mlm.settings.head == "mlm"
    both = corpus.maker(order="nsp", rtd={})
    assert both.settings.weights == {"mlm": 1.0, "rtd": 50.0, "nsp": 1.0}
    assert both.settings.head == "pretraining"


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"mlm": {"weight": 0}, "order": "none"}, "nothing to learn"),
        ({"mlm": {"weight": 0}, "rtd": {}}, "generator that learns"),
        ({"sop": {}}, "no setting 'sop'"),
    ],
)
def test_settings_that_contradict(values, match):
    with pytest.raises(SettingsError, match=match):
        build_settings(ObjectiveSettings, values)


def test_settings_survive_a_file(tmp_path):
    from litebert.settings import load_settings

    settings = build_settings(ObjectiveSettings, {"order": "nsp", "rtd": {"share": "all"}})
    (tmp_path / "o.toml").write_text(dump_toml(settings))
    assert load_settings(ObjectiveSettings, tmp_path / "o.toml") == settings


def test_a_negative_seed(corpus):
    with pytest.raises(SettingsError, match="seed is -1"):
        corpus.maker(seed=-1)


def philox(key: tuple[int, int], counter: list[int]) -> list[float]:
    """Four uniform numbers by the definition of Salmon et al. 2011, Philox 4x64 with 10 rounds."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        low, high = c0 * 0xD2E7470EE14C6C93, c2 * 0xCA5A826395121157
        c0, c1, c2, c3 = (high >> 64) ^ c1 ^ k0, high % 2**64, (low >> 64) ^ c3 ^ k1, low % 2**64
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) % 2**64, (k1 + 0xBB67AE8584CAA73B) % 2**64
    return [(word >> 11) * 2.0**-53 for word in (c0, c1, c2, c3)]


def test_random_numbers_are_those_of_the_definition():
    found = example_rng(1, 2, 3, SAMPLING).random(8).tolist()
    assert found == philox((1, 2), [1, 0, 3, 1]) + philox((1, 2), [2, 0, 3, 1])
    first = example_rng(0, 0, 0).random(4)
    for other in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0, SAMPLING)):
        assert not np.isin(example_rng(*other).random(1000), first).any()
