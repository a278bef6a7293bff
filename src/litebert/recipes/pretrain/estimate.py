"""What a run will cost, from its sizes and from some passes of the real model on real batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import nn

from litebert.data.batch import Batch, split_batch
from litebert.model.config import AlbertConfig
from litebert.model.counting import activation_bytes
from litebert.recipes.durations import format_duration
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.train.device import choose_device, seed_dropout, torch_threads
from litebert.train.micro import StepLoss, accumulate_gradient
from litebert.train.plan import StepPlan
from litebert.train.precision import choose_precision
from litebert.train.source import BatchSource, Part

__all__ = ["Estimate", "estimate_run"]

PROBE_PASSES: Final = 20
"""Passes that are timed, after one that is not."""
PROBE_EXAMPLES: Final = 512
"""Of a larger batch only a part of about this size is made."""
PROBE_SECONDS: Final = 30.0
"""No further pass is begun after this time."""
BYTES_PER_WEIGHT: Final = 16
"""float32 weight, gradient, and two moments of the optimizer."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a run.

    Attributes:
        parameters: unique weights that are trained.
        memory_bytes: weights, gradients, optimizer and the activations of one pass.
        tokens_per_second: of the passes that were timed, batches included.
        data_fraction: part of that time in which batches were made.
        total_steps: steps of the run.
        tokens_per_step: real tokens of a step, of the first batch.
        seconds: time to the end, evaluations and saving not counted; the budget if there is one.
        passes: passes that were timed.
    """

    parameters: int
    memory_bytes: int
    tokens_per_second: float
    data_fraction: float
    total_steps: int
    tokens_per_step: int
    seconds: float
    passes: int

    def describe(self) -> list[str]:
        """Return what a person reads before the run begins."""
        return [
            f"memory    about {self.memory_bytes / 1e6:,.0f} MB for weights, gradients, optimizer "
            "and one pass",
            f"speed     {self.tokens_per_second:,.0f} tokens/s in {self.passes} passes, "
            f"{100 * self.data_fraction:.1f} % of it making batches",
            f"plan      {self.total_steps:,} steps of about {self.tokens_per_step:,} tokens, "
            f"{format_duration(self.seconds)} to the end",
        ]


def estimate_run(
    model: nn.Module,
    config: AlbertConfig,
    source: BatchSource,
    loss: StepLoss,
    settings: PretrainSettings,
    *,
    world: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Estimate:
    """Time some passes of `model`; its weights stay as they are.

    Args:
        model: what is going to be trained.
        config: its sizes.
        source: the training batches.
        loss: the objectives.
        settings: the run.
        world: ranks that will share the work.
        clock: seconds from anywhere.

    Raises:
        SettingsError: a device that is not there, or unknown names.
    """
    train = settings.train
    device = choose_device(train.device)
    precision = choose_precision(train.precision, device)
    model.to(device).train()
    parts = max(1, train.batch_size // PROBE_EXAMPLES)
    begin = clock()
    first = source.batch(0, 0.0, Part(0, parts))
    data_seconds = clock() - begin
    if first is None:
        raise RuntimeError("the first step has no examples")
    micros = split_batch(first, train.micro_batch_tokens)
    spent, tokens, passes = 0.0, 0, 0
    with torch_threads(train.threads):
        for number in range(PROBE_PASSES + 1):
            micro: Batch = micros[number % len(micros)]
            seed_dropout(number, device)
            begin = clock()
            accumulate_gradient(
                model,
                micro,
                loss,
                counts=loss.counts(micro),
                micro_batch_tokens=train.micro_batch_tokens,
                device=device,
                precision=precision,
            )
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if number:  # the first pass warms up
                spent, tokens, passes = (
                    spent + clock() - begin,
                    tokens + micro.num_tokens,
                    passes + 1,
                )
            if passes and spent > PROBE_SECONDS:
                break
    model.zero_grad(set_to_none=True)
    per_step = spent / tokens * first.num_tokens + data_seconds
    steps = StepPlan(source, train).total_steps
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    step_tokens = parts * first.num_tokens
    seconds = steps * parts * per_step / world
    if train.max_seconds is not None:
        seconds = min(seconds, train.max_seconds)
    pass_tokens = min(train.micro_batch_tokens, step_tokens)
    return Estimate(
        parameters=parameters,
        memory_bytes=round(parameters * bytes_per_weight(train.shard_weights, world))
        + activation_bytes(
            config, pass_tokens, mode="train", checkpointing=train.gradient_checkpointing
        ),
        tokens_per_second=world * first.num_tokens / per_step,
        data_fraction=data_seconds / per_step,
        total_steps=steps,
        tokens_per_step=step_tokens,
        seconds=seconds,
        passes=passes,
    )


def bytes_per_weight(is_split: bool, world: int) -> float:
    """Return the memory of one weight on each rank: itself, its gradient, the optimizer's moments.

    Split weights and gradients are whole in a pass besides.
    """
    return 8 + 12 / world if is_split and world > 1 else BYTES_PER_WEIGHT
