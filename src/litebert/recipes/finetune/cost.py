"""What a fine-tuning run costs: steps, time and memory, estimated before it starts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from litebert.train.settings import TrainSettings

__all__ = ["estimate_lines", "steps_of_seed"]

BASE_MB: Final = 250
"""Resident memory of a process that has imported torch (224 MB measured) and little else."""


def steps_of_seed(train: TrainSettings, num_encoded: int) -> int:
    """Return the optimizer steps of one seed, before early stopping."""
    return train.max_steps or math.ceil(train.epochs * math.ceil(num_encoded / train.batch_size))


def estimate_lines(plan: Any) -> list[str]:
    """Return the expected time and memory of an `AnyPlan`, as lines for a person.

    The time assumes half of the matrix speed measured now; what is reached varies with the shape.
    """
    from litebert.model.counting import activation_bytes, flops_per_token
    from litebert.recipes.finetune.adapt import count_trained
    from litebert.train.precision import choose_precision

    config, train = plan.model.config, plan.settings.train
    precision = choose_precision(train.precision)
    speed = 0.5e9 * max(precision.gflops.values(), default=20.0)
    length = max(1, round(plan.train.num_tokens / len(plan.train.encoded)))
    pairs = getattr(plan, "pairs", None)
    size = train.batch_size if pairs is None else 2 * pairs.batch_size
    tokens = plan.num_steps * size * length * plan.num_seeds
    seconds = 3 * tokens * flops_per_token(config, length) / speed
    counts = count_trained(config, plan.task.head, plan.settings.adapt)
    # Every weight; its gradient, two moments and perhaps its mean where it is trained.
    weights = 4 * counts.total + (16 if train.averaging else 12) * counts.trained
    held = activation_bytes(config, min(train.micro_batch_tokens, size * length), mode="train")
    if plan.settings.loss.r_drop:  # two passes in one graph
        seconds, held = 2 * seconds, 2 * held
    duration = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{math.ceil(seconds)} seconds"
    seeds = "" if plan.num_seeds == 1 else f" for {plan.num_seeds} seeds (--seeds 1 trains once)"
    return [
        f"estimate  {tokens:,} tokens, about {duration} without evaluations{seeds}",
        f"memory    about {(weights + held) / 1e6:,.0f} MB beside the {BASE_MB} MB of torch itself",
    ]
