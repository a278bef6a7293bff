from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from litebert.data.batch import EncodedExample, collate
from litebert.errors import DataError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.micro import LabelledLoss, accumulate_gradient, is_out_of_memory
from litebert.train.precision import Precision

GRAD_RTOL = 1e-5
GRAD_ATOL = 1e-6
"""float32 sums in another order."""

CONFIG = AlbertConfig.from_dict(
    {
        "vocab_size": 20,
        "embedding_size": 4,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": 0.0,
        "id2label": {0: "a", 1: "b", 2: "c"},
    }
)
MODELS = {}
for _head, _kind in (
    ("sequence", "single_label_classification"),
    ("sequence", "multi_label_classification"),
    ("token", None),
):
    torch.manual_seed(0)
    MODELS[_head, _kind] = AlbertWithHead(CONFIG.replace(problem_type=_kind), _head)


def gradient(model: Any, batch: Any, tokens: int) -> tuple[float, dict[str, torch.Tensor]]:
    model.zero_grad(set_to_none=True)
    means = accumulate_gradient(
        model,
        batch,
        LabelledLoss(),
        counts=LabelledLoss().counts(batch),
        micro_batch_tokens=tokens,
        device=torch.device("cpu"),
        precision=Precision("fp32", "cpu"),
    )
    return means["loss"], {
        n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None
    }


def label_of(head: str, kind: str | None, length: int, rng: np.random.Generator) -> Any:
    if head == "token":
        labels = rng.integers(0, 3, length)
        labels[rng.random(length) < 0.5] = -100
        return labels
    if kind == "multi_label_classification":
        return (rng.random(3) < 0.5).astype(np.float32)
    return int(rng.integers(0, 3))


@pytest.mark.parametrize("key", list(MODELS))
@hypothesis_settings(max_examples=12)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    tokens=st.integers(1, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_split_gradient_is_the_unsplit_gradient(
    key: tuple[str, str | None], lengths: list[int], tokens: int, seed: int
) -> None:
    """On the real model, for examples, multi-hot labels, and tokens with many unlabelled."""
    rng = np.random.default_rng(seed)
    examples: list[EncodedExample] = []
    for i, length in enumerate(lengths):
        ids = rng.integers(0, 20, length).astype(np.int32)
        examples.append(EncodedExample(ids, ids * 0, label_of(*key, length, rng), i))
    if key[0] == "token":
        examples[0].label[0] = 1  # type: ignore[index]
    batch = collate(examples)
    model = MODELS[key]
    whole_loss, whole = gradient(model, batch, 10_000)
    loss, parts = gradient(model, batch, tokens)
    assert loss == pytest.approx(whole_loss, rel=GRAD_RTOL, abs=GRAD_ATOL)
    assert parts.keys() == whole.keys()
    for name in whole:
        torch.testing.assert_close(parts[name], whole[name], rtol=GRAD_RTOL, atol=GRAD_ATOL)


def test_unlabelled_examples_cannot_be_trained_on() -> None:
    ids = np.array([1, 2], np.int32)
    with pytest.raises(DataError, match="no labels"):
        LabelledLoss().counts(collate([EncodedExample(ids, ids * 0, None, 0)]))


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: ..."), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried ..."), True),
        (RuntimeError("shape mismatch"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error: Exception, is_memory: bool) -> None:
    assert is_out_of_memory(error) == is_memory
