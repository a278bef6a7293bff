"""One training step on questions against transformers: loss and gradients, packed and in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.data.batch import EncodedExample, collate
from litebert.data.choices import ChoiceRecord
from litebert.tasks.choice import MultipleChoice
from litebert.text.vocabulary import train_vocabulary
from litebert.train.evaluate import predict_outputs
from litebert.train.micro import accumulate_gradient
from litebert.train.precision import Precision
from litebert.train.step_losses import make_step_loss

pytestmark = pytest.mark.parity

ATOL = 1e-5
"""float32, values of order 1."""
GRADIENT_ATOL = 1e-4
"""Gradients summed over depths, tokens and choices."""
TEXTS = ["the ship left the harbour at noon", "rain fell on the old market all day", "a fox ran by"]
CPU = torch.device("cpu")
TASK = MultipleChoice(max_length=24, max_answer_length=12)


def records(counts: list[int]) -> list[ChoiceRecord]:
    return [
        ChoiceRecord(
            context=TEXTS[i % 3] if i % 2 else "",
            question=TEXTS[(i + 1) % 3][: 9 + i],
            choices=tuple(TEXTS[(i + c) % 3][c : 7 + 3 * c] for c in range(count)),
            label=(2 * i) % count,
            id=str(i),
            group=str(i),
            path=Path("q.json"),
            line=i + 1,
        )
        for i, count in enumerate(counts)
    ]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return train_vocabulary(TEXTS * 4, 48, tmp_path_factory.mktemp("vocabulary"))


def padded(example: EncodedExample) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sequences of one question as [1, C, S]: ids, mask, segments."""
    lengths = example.sequence_lengths
    shape = (1, len(lengths), max(lengths))
    ids, mask, types = (torch.zeros(shape, dtype=torch.int64) for _ in range(3))
    start = 0
    for row, length in enumerate(lengths):
        ids[0, row, :length] = torch.from_numpy(
            example.ids[start : start + length].astype(np.int64)
        )
        types[0, row, :length] = torch.from_numpy(
            np.asarray(example.type_ids[start : start + length], np.int64)
        )
        mask[0, row, :length] = 1
        start += length
    return ids, mask, types


def step(model: Any, examples: list[EncodedExample], tokens: int) -> float:
    batch = collate(examples)
    loss = make_step_loss(TASK.loss, TASK)
    means = accumulate_gradient(
        model, batch, loss, counts=loss.counts(batch), micro_batch_tokens=tokens, device=CPU,
        precision=Precision("fp32", "cpu"),
    )  # fmt: skip
    return means["loss"]


@pytest.mark.parametrize("tokens", [1, 60, 100_000])
@pytest.mark.parametrize("counts", [[4, 4, 4], [2, 5, 3, 26]], ids=["equal", "uneven"])
def test_a_step_is_that_of_transformers(
    reference: Any, tiny_config: Any, assert_gradients_equal: Any, tokenizer: Any,
    counts: list[int], tokens: int,
) -> None:  # fmt: skip
    config = tiny_config(id2label=TASK.config_labels())
    theirs = reference.model(config, "choice")
    ours = reference.ours(theirs, config, "choice")
    examples = [f.encoded for f in TASK.features(records(counts), tokenizer, labelled=True)]
    assert [e.num_sequences for e in examples] == counts
    losses, logits = [], []
    for example in examples:  # a question at a time: transformers wants equal numbers of choices
        ids, mask, types = padded(example)
        out = theirs(
            ids, attention_mask=mask, token_type_ids=types, labels=torch.tensor([example.label])
        )
        losses.append(out.loss)
        logits.append(out.logits[0].detach().numpy())
    expected = torch.stack(losses).mean()
    expected.backward()
    assert step(ours, examples, tokens) == pytest.approx(float(expected.detach()), abs=ATOL)
    assert_gradients_equal(ours, reference.gradients(theirs, config, "choice"), GRADIENT_ATOL)
    outputs = predict_outputs(ours, examples, batch_tokens=tokens)
    assert outputs is not None
    for mine, other in zip(outputs, logits, strict=True):
        np.testing.assert_allclose(mine, other, atol=ATOL)


def test_equal_numbers_of_choices_in_one_padded_call(
    reference: Any, tiny_config: Any, assert_gradients_equal: Any, tokenizer: Any
) -> None:
    config = tiny_config(id2label=TASK.config_labels())
    theirs = reference.model(config, "choice")
    ours = reference.ours(theirs, config, "choice")
    examples = [f.encoded for f in TASK.features(records([3] * 4), tokenizer, labelled=True)]
    width = max(max(e.sequence_lengths) for e in examples)
    parts = [
        torch.cat([torch.nn.functional.pad(x, (0, width - x.shape[2])) for x in column])
        for column in zip(*map(padded, examples), strict=True)
    ]
    labels = torch.tensor([e.label for e in examples])
    out = theirs(parts[0], attention_mask=parts[1], token_type_ids=parts[2], labels=labels)
    out.loss.backward()
    assert step(ours, examples, 100_000) == pytest.approx(float(out.loss.detach()), abs=ATOL)
    assert_gradients_equal(ours, reference.gradients(theirs, config, "choice"), GRADIENT_ATOL)
