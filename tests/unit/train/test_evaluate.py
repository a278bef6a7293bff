from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from litebert.data.batch import EncodedExample
from litebert.errors import DataError, SettingsError
from litebert.train.evaluate import Evaluator, predict_logits, predict_outputs
from litebert.train.stop import StopRequest

BATCH_ATOL = 1e-6
"""float32 sums over other groupings."""


def test_logits_are_in_data_order_whatever_the_batches(tiny: Any, make_examples: Any) -> None:
    model = tiny().train()
    examples = make_examples(37)
    singles = np.concatenate([predict_logits(model, [example]) for example in examples])  # type: ignore[misc]
    before = torch.get_rng_state()
    for tokens in (1, 7, 50, 100_000):
        logits = predict_logits(model, examples, batch_tokens=tokens)
        np.testing.assert_allclose(logits, singles, atol=BATCH_ATOL)
    assert model.training, "the mode is put back"
    assert torch.equal(torch.get_rng_state(), before), "no random number is drawn"


def test_token_heads_give_the_rows_of_all_tokens(make_examples: Any) -> None:
    class Echo(torch.nn.Module):
        """Logits are the ids themselves."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward_packed(self, input_ids: Any, *rest: Any, labels: Any) -> Any:
            class Result:
                logits = input_ids[:, None] * self.weight

            return Result

    examples = make_examples(20)
    logits = predict_logits(Echo(), examples, batch_tokens=16)
    assert logits is not None
    assert logits[:, 0].tolist() == np.concatenate([e.ids for e in examples]).tolist()


def test_a_stop_request_ends_it_between_batches(tiny: Any, make_examples: Any) -> None:
    stop = StopRequest()
    assert predict_logits(tiny(), make_examples(5), stop=stop) is not None
    stop.request(15)
    assert predict_logits(tiny(), make_examples(5), stop=stop) is None
    evaluator = Evaluator(make_examples(5), lambda logits, labels: {"x": 1.0}, "x")
    assert evaluator(tiny(), stop) is None


def test_memory_that_runs_out_halves_the_batches(tiny: Any, make_examples: Any) -> None:
    class Small(tiny):
        def forward_packed(self, input_ids: Any, *rest: Any, labels: Any = None) -> Any:
            if len(input_ids) > 20:
                raise MemoryError("too many")
            return super().forward_packed(input_ids, *rest, labels=labels)

    examples = make_examples(30)
    np.testing.assert_allclose(
        predict_logits(Small(), examples), predict_logits(tiny(), examples), atol=BATCH_ATOL
    )

    class Hopeless(tiny):
        def forward_packed(self, *rest: Any, labels: Any = None) -> Any:
            raise MemoryError("none at all")

    with pytest.raises(MemoryError):
        predict_logits(Hopeless(), examples)


def test_the_metric_decides_and_can_be_a_loss(tiny: Any, make_examples: Any) -> None:
    def score(logits: Any, labels: Any) -> dict[str, float]:
        assert logits.shape == (9, 2) and labels.shape == (9,)
        return {"good": 0.25, "bad": 0.5}

    examples = make_examples(9)
    up = Evaluator(examples, score, "good")(tiny(), StopRequest())
    down = Evaluator(examples, score, "bad", greater_is_better=False)(tiny(), StopRequest())
    assert up is not None and down is not None
    assert (up.score, down.score) == (0.25, -0.5)
    assert up.metrics == {"good": 0.25, "bad": 0.5}
    with pytest.raises(SettingsError, match="no metric 'f1'; there are: good, bad"):
        Evaluator(examples, score, "f1")(tiny(), StopRequest())


def test_wrong_data(tiny: Any) -> None:
    with pytest.raises(DataError, match="no examples"):
        predict_logits(tiny(), [])
    ids = np.array([1, 2], np.int32)
    unlabelled = [EncodedExample(ids, ids * 0, None, 0)]
    with pytest.raises(DataError, match="no labels"):
        Evaluator(unlabelled, lambda logits, labels: {}, "x")(tiny(), StopRequest())


class Groups(torch.nn.Module):
    """The logit of a sequence is the sum of its ids; of a token, the id."""

    def __init__(self, per_token: bool, per_row: int | None = None) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.per_token = per_token
        self.per_row = per_row

    def forward_packed(
        self, ids: Any, packing: Any, *rest: Any, labels: Any, group_sizes: Any = None
    ) -> Any:
        values = ids.float() * self.weight
        if not self.per_token:
            values = torch.stack([part.sum() for part in values.split(list(packing.lengths))])
        if self.per_row is not None:
            values = values[:, None].expand(-1, self.per_row)

        class Result:
            logits = values

        return Result


@pytest.mark.parametrize("per_row", [None, 1, 3])
@pytest.mark.parametrize("is_grouped", [True, False])
@pytest.mark.parametrize("tokens", [1, 13, 10_000])
def test_each_example_has_its_own_outputs(
    is_grouped: bool, per_row: int | None, tokens: int
) -> None:
    rng = np.random.default_rng(4)
    examples: list[EncodedExample] = []
    for index in range(17):
        parts = tuple(rng.integers(1, 6, rng.integers(1, 4) if is_grouped else 1).tolist())
        ids = rng.integers(0, 9, sum(parts)).astype(np.int32)
        examples.append(EncodedExample(ids, ids * 0, index % 2, index, parts if is_grouped else ()))
    tail = () if per_row is None else (per_row,)
    by_token = predict_outputs(Groups(True, per_row), examples, batch_tokens=tokens)
    by_sequence = predict_outputs(Groups(False, per_row), examples, batch_tokens=tokens)
    assert by_token is not None and by_sequence is not None
    for example, each, whole in zip(examples, by_token, by_sequence, strict=True):
        assert each.shape == (len(example), *tail) and whole.shape == (example.num_sequences, *tail)
        flat = whole if per_row is None else whole[:, 0]
        bounds = np.cumsum([0, *(example.sequence_lengths or (len(example),))])
        assert flat.tolist() == [example.ids[a:b].sum() for a, b in pairwise(bounds)]
        assert (each if per_row is None else each[:, 0]).tolist() == example.ids.tolist()


def test_no_outputs_after_a_stop_or_without_examples(tiny: Any, make_examples: Any) -> None:
    stop = StopRequest()
    stop.request(15)
    assert predict_outputs(tiny(), make_examples(3), stop=stop) is None
    with pytest.raises(DataError, match="no examples"):
        predict_outputs(tiny(), [])
