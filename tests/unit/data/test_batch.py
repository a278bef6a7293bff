from __future__ import annotations

import hashlib
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.batch import Batch, EncodedExample, batch_order, collate, split_batch
from litebert.errors import DataError, SettingsError

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


def encoded(length: int, index: int, label: object = None) -> EncodedExample:
    ids = np.arange(length, dtype=np.int32) + 100 * index
    return EncodedExample(ids, (np.arange(length) % 2).astype(np.int8), label, index)  # type: ignore[arg-type]


@given(LENGTHS)
def test_packing_keeps_every_token(lengths: list[int]) -> None:
    examples = [encoded(n, i, i % 3) for i, n in enumerate(lengths)]
    batch = collate(examples)
    assert (batch.num_tokens, batch.num_sequences) == (sum(lengths), len(lengths))
    assert batch.lengths.tolist() == lengths
    assert batch.labels is not None and batch.labels.dtype == np.int64
    for array in (batch.input_ids, batch.token_type_ids, batch.position_ids, batch.cu_seqlens):
        assert array.dtype == np.int32
    for i, example in enumerate(examples):
        a, b = batch.cu_seqlens[i], batch.cu_seqlens[i + 1]
        assert (batch.input_ids[a:b] == example.ids).all()
        assert (batch.token_type_ids[a:b] == example.type_ids).all()
        assert batch.position_ids[a:b].tolist() == list(range(lengths[i]))


def test_label_forms() -> None:
    def labels(*values: object) -> np.ndarray:
        batch = collate([encoded(3, i, value) for i, value in enumerate(values)])
        assert batch.labels is not None
        return batch.labels

    assert labels(1, 2).dtype == np.int64
    assert labels(0.5, np.float32(1)).dtype == np.float32
    multi = labels(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert multi.shape == (2, 2) and multi.dtype == np.float32
    tokens = labels(np.array([1, 2, 3]), np.array([4, 5, 6]))
    assert tokens.tolist() == [1, 2, 3, 4, 5, 6] and tokens.dtype == np.int64
    assert collate([encoded(3, 0)]).labels is None


@pytest.mark.parametrize(
    "values",
    [(1, None), (1, 0.5), (np.array([1.0]), np.array([1.0, 0.0])), (np.array([1, 2]), 1), ("x", 1)],
)
def test_mixed_labels_are_refused(values: tuple[object, ...]) -> None:
    with pytest.raises(DataError, match="differ in form"):
        collate([encoded(3, i, value) for i, value in enumerate(values)])


def test_shapes_are_checked() -> None:
    with pytest.raises(DataError, match="at least one"):
        collate([])
    with pytest.raises(DataError, match="one-dimensional"):
        EncodedExample(np.zeros(0, np.int32), np.zeros(0, np.int8), None, 0)
    with pytest.raises(DataError, match="one-dimensional"):
        EncodedExample(np.zeros(3, np.int32), np.zeros(2, np.int8), None, 0)
    good = collate([encoded(3, 0, 1), encoded(2, 1, 0)])
    parts = {name: getattr(good, name) for name in Batch.__dataclass_fields__}
    for name, value, message in (
        ("position_ids", np.zeros(4, np.int32), "position_ids"),
        ("cu_seqlens", np.array([0, 0, 5], np.int32), "rise strictly"),
        ("cu_seqlens", np.array([0, 3, 6], np.int32), "rise strictly"),
        ("labels", np.zeros(3), "3 labels"),
    ):
        with pytest.raises(DataError, match=message):
            Batch(**{**parts, name: value})


@given(LENGTHS, st.integers(1, 64), st.sampled_from(["class", "token", None]))
def test_micro_batches_join_to_the_batch(lengths: list[int], budget: int, form: str | None) -> None:
    label = {"class": lambda n: 1, "token": np.arange, None: lambda n: None}[form]
    batch = collate([encoded(n, i, label(n)) for i, n in enumerate(lengths)])
    parts = split_batch(batch, budget)
    for part in parts:
        assert part.num_tokens <= budget or part.num_sequences == 1
    for name in ("input_ids", "token_type_ids", "position_ids", "labels", "example_index"):
        whole = getattr(batch, name)
        if whole is None:
            assert all(getattr(part, name) is None for part in parts)
        else:
            assert np.array_equal(np.concatenate([getattr(p, name) for p in parts]), whole)
    for first, second in pairwise(parts):
        assert first.num_tokens + second.lengths[0] > budget


def test_micro_batch_budget_is_positive() -> None:
    with pytest.raises(SettingsError, match="micro_batch_tokens"):
        split_batch(collate([encoded(2, 0)]), 0)


@given(
    LENGTHS,
    st.one_of(st.none(), st.integers(1, 9)),
    st.one_of(st.none(), st.integers(1, 90)),
    st.booleans(),
    st.integers(0, 5),
)
def test_an_epoch_visits_each_example_once_within_the_limits(
    lengths: list[int], batch_size: int | None, max_tokens: int | None, bucket: bool, epoch: int
) -> None:
    if batch_size is None and max_tokens is None:
        max_tokens = 50
    told = {"batch_size": batch_size, "max_tokens": max_tokens, "seed": 7, "bucket": bucket}
    order = batch_order(lengths, epoch=epoch, **told)  # type: ignore[arg-type]
    assert sorted(np.concatenate(order).tolist()) == list(range(len(lengths)))
    for batch in order:
        assert batch_size is None or len(batch) <= batch_size
        assert max_tokens is None or len(batch) == 1 or sum(lengths[i] for i in batch) <= max_tokens
    again = batch_order(lengths, epoch=epoch, **told)  # type: ignore[arg-type]
    assert all(np.array_equal(a, b) for a, b in zip(order, again, strict=True))


def test_epochs_and_seeds_differ() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(batch_order([5] * 50, batch_size=8, seed=seed, epoch=epoch)).tolist()

    assert len({tuple(order(s, e)) for s in range(3) for e in range(3)}) == 9


def test_buckets_hold_similar_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 200, 4000)

    def spread(bucket: bool) -> float:
        batches = batch_order(lengths, batch_size=16, seed=0, epoch=0, bucket=bucket)
        return float(np.mean([np.ptp(lengths[batch]) for batch in batches]))

    assert spread(True) < 0.1 * spread(False)
    means = [lengths[b].mean() for b in batch_order(lengths, batch_size=16, seed=0, epoch=0)]
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.2  # batches come in random order


def test_the_order_does_not_depend_on_the_process() -> None:
    code = (
        "import hashlib, numpy as np\nfrom litebert.data.batch import batch_order\n"
        "o = batch_order(np.arange(1, 500) % 37 + 1, batch_size=9, seed=3, epoch=2, max_tokens=128)\n"
        "print(hashlib.sha256(b'|'.join(b.tobytes() for b in o)).hexdigest())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    order = batch_order(np.arange(1, 500) % 37 + 1, batch_size=9, seed=3, epoch=2, max_tokens=128)
    digest = hashlib.sha256(b"|".join(b.tobytes() for b in order)).hexdigest()
    assert out.stdout.strip() == digest


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"batch_size": None}, "give batch_size"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"epoch": -1}, "epoch is -1"),
    ],
)
def test_ranges(told: dict[str, int], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        batch_order([1, 2], **{"batch_size": 2, "seed": 0, "epoch": 0, **told})  # type: ignore[arg-type]


def test_lengths_are_positive() -> None:
    with pytest.raises(DataError, match="1 and above"):
        batch_order([1, 0], batch_size=2, seed=0, epoch=0)
    assert batch_order([], batch_size=2, seed=0, epoch=0) == []


def grouped(parts: tuple[int, ...], index: int, label: object = None) -> EncodedExample:
    ids = np.arange(sum(parts), dtype=np.int32) + 100 * index
    return EncodedExample(ids, (ids % 2).astype(np.int8), label, index, parts)  # type: ignore[arg-type]


GROUPS = st.lists(
    st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple), min_size=1, max_size=12
)


@given(GROUPS, st.integers(1, 60))
def test_examples_of_several_sequences_stay_together(
    groups: list[tuple[int, ...]], budget: int
) -> None:
    examples = [grouped(parts, i, i % 3) for i, parts in enumerate(groups)]
    batch = collate(examples)
    assert batch.lengths.tolist() == [n for parts in groups for n in parts]
    assert batch.num_sequences == sum(map(len, groups)) == sum(e.num_sequences for e in examples)
    assert (batch.num_examples, batch.num_tokens) == (len(groups), sum(map(sum, groups)))
    assert batch.group_sizes is not None and batch.group_sizes.tolist() == list(map(len, groups))
    assert batch.labels is not None and batch.labels.tolist() == [i % 3 for i in range(len(groups))]
    assert batch.position_ids.tolist() == [p for parts in groups for n in parts for p in range(n)]
    bounds = np.cumsum([0, *map(sum, groups)])
    assert batch.example_bounds.tolist() == bounds.tolist()
    pieces = split_batch(batch, budget)
    for name in (
        "input_ids",
        "token_type_ids",
        "position_ids",
        "labels",
        "example_index",
        "group_sizes",
    ):
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        assert np.array_equal(joined, getattr(batch, name))
    for piece in pieces:
        assert piece.num_tokens <= budget or piece.num_examples == 1
        assert piece.lengths.tolist() == [n for i in piece.example_index for n in groups[i]]


def test_single_and_grouped_examples_share_a_batch() -> None:
    batch = collate([encoded(4, 0), grouped((2, 3), 1), encoded(1, 2)])
    assert batch.group_sizes is not None and batch.group_sizes.tolist() == [1, 2, 1]
    assert collate([encoded(4, 0)]).group_sizes is None
    assert collate([encoded(4, 0)]).num_examples == encoded(4, 0).num_sequences == 1


@pytest.mark.parametrize("parts", [(2, 1), (5, -1), (4, 0), (3, 2)])
def test_sequences_are_the_ids(parts: tuple[int, ...]) -> None:
    ids = np.arange(4, dtype=np.int32)
    with pytest.raises(DataError, match=r"example 7: sequences of .* tokens for 4 ids"):
        EncodedExample(ids, ids * 0, None, 7, parts)


def test_group_sizes_are_checked() -> None:
    good = collate([grouped((2, 3), 0, 1), grouped((1, 4, 2), 1, 0)])
    parts = {name: getattr(good, name) for name in Batch.__dataclass_fields__}
    for sizes in ([2, 2], [5, 0], [6, -1]):
        changed = {**parts, "group_sizes": np.array(sizes, np.int32)}
        with pytest.raises(DataError, match="must be 1 and above and add up to 5 sequences"):
            Batch(**changed)
    with pytest.raises(DataError, match="example_index has shape"):
        Batch(**{**parts, "group_sizes": None})
    with pytest.raises(DataError, match="3 labels for 2 examples, 12 tokens"):
        Batch(**{**parts, "labels": np.zeros(3, np.int64)})
