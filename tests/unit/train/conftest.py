"""A model of a few hundred weights with the interface of the real one, and data it can learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from litebert.data.batch import EncodedExample
from litebert.model.packing import Packing
from litebert.train.evaluate import Evaluation, Evaluator
from litebert.train.settings import TrainSettings
from litebert.train.stop import StopRequest

VOCAB = 24


@dataclass
class Output:
    loss: Tensor | None
    logits: Tensor


class TinyModel(nn.Module):
    """Embeddings, LayerNorm, dropout, mean over the sequence, classifier."""

    def __init__(self, seed: int = 0, classes: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(VOCAB, 8)
            self.norm = nn.LayerNorm(8)
            self.classifier = nn.Linear(8, classes)
        self.dropout = nn.Dropout(dropout)
        self.classes = classes

    def forward_packed(
        self,
        input_ids: Tensor,
        packing: Packing,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Output:
        hidden = self.dropout(self.norm(self.embedding(input_ids)))
        logits = self.classifier(packing.mean_tokens(hidden.float()))
        if labels is None:
            return Output(None, logits)
        if self.classes == 1:
            return Output(functional.mse_loss(logits[:, 0], labels), logits)
        return Output(functional.cross_entropy(logits, labels), logits)


def make_examples(count: int, seed: int = 0, classes: int = 2) -> list[EncodedExample]:
    """The label is whether small ids outnumber large ones; nobody else's text is needed."""
    rng = np.random.default_rng(seed)
    examples: list[EncodedExample] = []
    for index in range(count):
        ids = rng.integers(0, VOCAB, int(rng.integers(1, 12))).astype(np.int32)
        label: Any = int((ids < VOCAB // 2).mean() * classes * 0.999)
        examples.append(EncodedExample(ids, np.zeros_like(ids), label, index))
    return examples


def accuracy(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {"accuracy": float((logits.argmax(1) == labels).mean())}


@pytest.fixture
def tiny() -> type[TinyModel]:
    return TinyModel


@pytest.fixture(name="make_examples")
def make_examples_fixture() -> Any:
    return make_examples


@pytest.fixture
def evaluator() -> Evaluator:
    return Evaluator(make_examples(60, seed=9), accuracy, "accuracy")


@pytest.fixture
def settings() -> TrainSettings:
    return TrainSettings(
        epochs=3, batch_size=8, learning_rate=1e-2, threads=1, precision="fp32", log_steps=3
    )


@pytest.fixture
def scores() -> Any:
    """Make an evaluation that returns given scores one after the other."""

    def make(*values: float) -> Any:
        rest = list(values)

        def evaluate(model: nn.Module, stop: StopRequest) -> Evaluation | None:
            value = rest.pop(0)
            return Evaluation(value, {"score": value})

        return evaluate

    return make
