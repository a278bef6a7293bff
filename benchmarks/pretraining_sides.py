"""One pretraining step of either side, with the same weights: what is measured against what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from benchmarks.pretraining_batches import SPECIALS, StepBatch
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.counting import flops_per_token
from litebert.model.presets import preset
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.loss import PretrainingLoss
from litebert.recipes.pretrain.settings import PretrainTrain
from litebert.train.micro import accumulate_gradient, weighted_sum
from litebert.train.optim import make_optimizer, set_learning_rate
from litebert.train.precision import Precision

LEARNING_RATE: Final = 1e-5
WEIGHT_DECAY: Final = 0.01
SMALL: Final = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "intermediate_size": 1536,
    "num_attention_heads": 12,
}
TINY: Final = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "embedding_size": 32,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A model and a batch.

    Attributes:
        title: for people.
        values: what differs from ALBERT-base.
        sequences: of a batch.
        length: most tokens of a sequence.
        speedup: least ratio of tokens per second that is aimed at, None without an aim.
        rounds: turns of each side in each table.
        batches: different batches.
    """

    title: str
    values: dict[str, int]
    sequences: int
    length: int
    speedup: float | None
    rounds: int
    batches: int

    @property
    def config(self) -> AlbertConfig:
        """Model configuration, without any dropout (theirs has one before the order classifier)."""
        return preset("albert-base-v2", classifier_dropout_prob=0.0, **self.values)


SHAPES: Final = {
    "base-2x512": Shape("ALBERT-base (12 x 768), 2 x 512", {}, 2, 512, 1.15, 4, 4),
    "small-8x128": Shape("Small (6 x 384), 8 x 128", SMALL, 8, 128, 1.35, 12, 12),
    "small-8x512": Shape("Small (6 x 384), 8 x 512", SMALL, 8, 512, 1.35, 4, 4),
}
TINY_SHAPES: Final = {
    "base-2x512": Shape("Tiny, 2 x 128", TINY, 2, 128, 1.15, 2, 2),
    "small-8x128": Shape("Tiny, 8 x 128", TINY, 8, 128, 1.35, 2, 2),
}


def make_theirs(config: AlbertConfig) -> nn.Module:
    """Return `AlbertForPreTraining` with weights from seed 0."""
    import transformers

    values = config.to_dict()
    for key in ("litebert", "model_type", "architectures"):
        values.pop(key, None)
    torch.manual_seed(0)
    return transformers.AlbertForPreTraining(transformers.AlbertConfig(**values))


def make_ours(config: AlbertConfig, theirs: nn.Module | None = None) -> AlbertWithHead:
    """Return our model, with the weights of theirs if given."""
    torch.manual_seed(0)
    ours = AlbertWithHead(config, "pretraining")
    if theirs is not None:
        from litebert.checkpoint.keys import to_published

        published = theirs.state_dict()
        ours.load_state_dict(
            {
                name: published[to_published(name.removeprefix("model."), inner=1, head=ours.head)]
                for name in ours.state_dict()
            }
        )
    return ours


class OurSide:
    """What `litebert.train.loop` does in a step: packed tokens, logits at masked places only."""

    def __init__(self, model: AlbertWithHead, optimizer: str = "adamw") -> None:
        self.settings = PretrainTrain(
            optimizer=optimizer, learning_rate=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        self.model = model.train()
        self.loss = PretrainingLoss(ObjectiveSettings())
        self.precision = Precision("fp32", "cpu")
        self.optimizer = make_optimizer(model, self.settings)

    def gradient(self, batch: StepBatch) -> float:
        """Leave the gradient in the model; return the loss."""
        means = accumulate_gradient(
            self.model,
            batch.packed,
            self.loss,
            counts=self.loss.counts(batch.packed),
            micro_batch_tokens=self.settings.micro_batch_tokens,
            device=torch.device("cpu"),
            precision=self.precision,
        )
        return weighted_sum(means, self.loss.weights)

    def step(self, batch: StepBatch) -> float:
        """Forward, backward, clip, update."""
        set_learning_rate(self.optimizer, LEARNING_RATE)
        loss = self.gradient(batch)
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.max_grad_norm))
        assert math.isfinite(norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss


class TheirSide:
    """The usual loop: padded tokens, logits and loss at every place, AdamW."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model.train()
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )

    def step(self, batch: StepBatch) -> float:
        """Forward, backward, clip, update."""
        output: Any = self.model(**batch.padded)
        output.loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return output.loss.item()


def step_flops(config: AlbertConfig, batch: StepBatch) -> float:
    """Matrix-product operations of a step; those of the head at masked places only."""
    encoder = sum(n * flops_per_token(config, n) for n in batch.packed.lengths.tolist())
    e = config.embedding_size
    head = 2 * batch.num_masked * e * (config.hidden_size + SPECIALS.vocab_size)
    return 3.0 * (encoder + head)
