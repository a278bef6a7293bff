"""Training steps beside transformers: equal batches and equal weights give equal losses.

Ours is packed, with logits at masked places only; theirs is padded, with `labels` of -100 elsewhere.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from litebert.data.batch import Batch
from litebert.model.packing import Packing
from litebert.objectives.base import IGNORED
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.loss import PretrainingLoss
from litebert.train.micro import accumulate_gradient, weighted_sum
from litebert.train.optim import make_optimizer
from litebert.train.precision import Precision
from litebert.train.settings import TrainSettings

pytestmark = pytest.mark.parity

STEPS = 20
LEARNING_RATE = 1e-3
LOSS_ATOL = 1e-4
"""Two means of order 1 to 10 nats in float32, after 20 updates from equal weights."""
MIN_FALL = 0.5
"""Nats that 20 steps on the same batches win at least, so that the steps are real ones."""
VOCAB = 61


def make_batch(seed: int, lengths: list[int]) -> Batch:
    rng = np.random.default_rng(seed)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    tokens = int(bounds[-1])
    ids = rng.integers(5, VOCAB, tokens).astype(np.int32)
    labels = np.where(rng.random(tokens) < 0.15, rng.integers(5, VOCAB, tokens), IGNORED)
    labels[bounds[:-1] + 1] = 7
    types = np.concatenate([(np.arange(n) >= n // 2).astype(np.int32) for n in lengths])
    return Batch(
        input_ids=ids,
        token_type_ids=types,
        position_ids=np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]),
        cu_seqlens=bounds.astype(np.int32),
        labels=labels.astype(np.int64),
        example_index=np.arange(len(lengths)),
        order_labels=rng.integers(0, 2, len(lengths)),
    )


def pad(batch: Batch) -> dict[str, torch.Tensor]:
    packing = Packing.from_lengths(batch.lengths.tolist())

    def fill(values, blank: int) -> torch.Tensor:
        table = torch.full((batch.num_sequences, int(batch.lengths.max())), blank)
        for row, (start, end) in enumerate(pairwise(batch.cu_seqlens.tolist())):
            table[row, : end - start] = torch.from_numpy(values[start:end])
        return table

    return {
        "input_ids": fill(batch.input_ids, 0),
        "attention_mask": packing.mask().long(),
        "token_type_ids": fill(batch.token_type_ids, 0),
        "labels": fill(batch.labels, IGNORED),
        "sentence_order_label": torch.from_numpy(batch.order_labels),
    }


@pytest.mark.parametrize("micro_batch_tokens", [4096, 24])
def test_twenty_steps_have_the_losses_of_transformers(reference, tiny_config, micro_batch_tokens):
    # Theirs drops out before the sentence-order classifier too.
    config = tiny_config(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0
    )
    theirs = reference.model(config, "pretraining").train()
    ours = reference.ours(theirs, config, "pretraining").train()
    settings = TrainSettings(learning_rate=LEARNING_RATE, weight_decay=0.0)
    optimizer = make_optimizer(ours, settings)
    their_optimizer = torch.optim.AdamW(
        theirs.parameters(), lr=LEARNING_RATE, eps=settings.adam_epsilon, weight_decay=0.0
    )
    loss = PretrainingLoss(ObjectiveSettings())
    batches = [make_batch(seed, [17, 5, 24, 12]) for seed in range(2)]
    found: list[tuple[float, float]] = []
    for step in range(STEPS):
        batch = batches[step % len(batches)]
        means = accumulate_gradient(
            ours,
            batch,
            loss,
            counts=loss.counts(batch),
            micro_batch_tokens=micro_batch_tokens,
            device=torch.device("cpu"),
            precision=Precision("fp32", "cpu"),
        )
        their_loss = theirs(**pad(batch)).loss
        their_loss.backward()
        found.append((weighted_sum(means, loss.weights), their_loss.item()))
        for model, update in ((ours, optimizer), (theirs, their_optimizer)):
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
            update.step()
            update.zero_grad()
    assert found[-1][1] < found[0][1] - MIN_FALL
    for step, (mine, other) in enumerate(found):
        assert mine == pytest.approx(other, abs=LOSS_ATOL), f"step {step}"
