from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from litebert.data.batch import EncodedExample
from litebert.errors import DataError, SettingsError
from litebert.train.evaluate import Evaluator, predict_logits
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
