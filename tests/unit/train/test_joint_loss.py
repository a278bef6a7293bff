"""The joint loss against plain cross-entropies over split columns, with gradients."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from litebert.data.batch import EncodedExample, collate
from litebert.errors import DataError
from litebert.train.joint_loss import JointTaggingLoss
from litebert.train.micro import accumulate_gradient, to_device
from litebert.train.precision import Precision
from litebert.train.step_losses import make_step_loss

TAGS, INTENTS = 5, 3
TASK = SimpleNamespace(num_tags=TAGS, slot_weight=2.0, intent_weight=0.5)


class Tokens(nn.Module):
    """One row of logits for each token id."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, TAGS + INTENTS, dtype=torch.float64)

    def forward_packed(
        self,
        input_ids: Tensor,
        packing: object,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> SimpleNamespace:
        assert labels is None
        return SimpleNamespace(logits=self.table(input_ids), loss=None)


def examples(count: int) -> list[EncodedExample]:
    rng = np.random.default_rng(3)
    result: list[EncodedExample] = []
    for index in range(count):
        length = int(rng.integers(2, 9))
        labels = rng.integers(0, TAGS, length)
        labels[rng.random(length) < 0.4] = -100
        labels[0] = TAGS + rng.integers(0, INTENTS) if index % 4 else -100
        ids = rng.integers(0, 20, length).astype(np.int32)
        result.append(EncodedExample(ids, np.zeros(length, np.int32), labels, index))
    return result


def expected(model: Tokens, batch: list[EncodedExample]) -> dict[str, Tensor]:
    slots: list[Tensor] = []
    intents: list[Tensor] = []
    for example in batch:
        rows = model.table(torch.from_numpy(example.ids).long()).float()
        for row, label in zip(rows, np.asarray(example.label).tolist(), strict=True):
            if label >= TAGS:
                target = torch.tensor([label - TAGS])
                intents.append(functional.cross_entropy(row[None, TAGS:], target))
            elif label >= 0:
                slots.append(functional.cross_entropy(row[None, :TAGS], torch.tensor([label])))
    return {"slots": torch.stack(slots).mean(), "intents": torch.stack(intents).mean()}


@pytest.mark.parametrize("micro_batch_tokens", [1, 12, 10_000])
def test_loss_and_gradient_are_those_of_two_cross_entropies(micro_batch_tokens: int) -> None:
    model = Tokens()
    parts = examples(9)
    loss = make_step_loss("joint_tagging", TASK)
    assert isinstance(loss, JointTaggingLoss)
    batch = collate(parts)
    counts = loss.counts(batch)
    means = accumulate_gradient(
        model, batch, loss, counts=dict(counts), micro_batch_tokens=micro_batch_tokens,
        device=torch.device("cpu"), precision=Precision("fp32", "cpu"),
    )  # fmt: skip
    got = model.table.weight.grad
    assert got is not None
    wanted = expected(model, parts)
    labels = np.concatenate([np.asarray(p.label) for p in parts])
    assert counts == {
        "slots": int(((labels >= 0) & (labels < TAGS)).sum()),
        "intents": int((labels >= TAGS).sum()),
    }
    for name, value in wanted.items():
        assert means[name] == pytest.approx(value.item(), rel=1e-5)
    total = 2.0 * wanted["slots"] + 0.5 * wanted["intents"]
    (grad,) = torch.autograd.grad(total, [model.table.weight])
    torch.testing.assert_close(got, grad, rtol=1e-5, atol=1e-8)


def test_a_batch_without_intents_or_labels() -> None:
    loss = JointTaggingLoss(TASK)
    bare = examples(1)
    terms = loss(Tokens(), to_device(collate(bare), torch.device("cpu")))
    assert [int(term.count) for term in terms][1] == 0
    assert terms[1].total.item() == 0.0
    unlabelled = collate([EncodedExample(bare[0].ids, bare[0].type_ids, None, 0)])
    with pytest.raises(DataError, match="no labels"):
        loss.counts(unlabelled)
    with pytest.raises(DataError, match="no labels"):
        loss(Tokens(), to_device(unlabelled, torch.device("cpu")))
