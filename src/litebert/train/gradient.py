"""The gradient of one step over all ranks, in as many passes as memory asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from litebert.data.batch import Batch
from litebert.errors import SettingsError
from litebert.train.device import seed_dropout
from litebert.train.micro import StepLoss, accumulate_gradient, is_out_of_memory, weighted_sum
from litebert.train.precision import Precision
from litebert.train.ranks import Ranks
from litebert.train.sharding import Replicas
from litebert.train.state import TrainState

__all__ = ["StepGradient", "StepOutcome"]


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What all ranks agree on after the gradient of a step.

    Attributes:
        loss: weighted sum of the mean terms over the whole step.
        terms: term -> mean over the whole step.
        tokens: real tokens of the whole step.
        seconds: time used so far, by the clock of the first rank.
        is_stop_requested: whether any rank was asked to stop.
    """

    loss: float
    terms: dict[str, float]
    tokens: int
    seconds: float
    is_stop_requested: bool


@dataclass(slots=True, eq=False)
class StepGradient:
    """Computes gradients; holds what does not change from step to step."""

    model: nn.Module
    step_loss: StepLoss
    ranks: Ranks
    weights: Replicas
    device: torch.device
    precision: Precision
    scaler: torch.amp.GradScaler | None
    warn: Callable[[int, str], None]

    def compute(
        self,
        batch: Batch | None,
        state: TrainState,
        *,
        dropout_seed: int,
        is_stop_requested: bool,
    ) -> StepOutcome:
        """Leave the gradient of the whole step in the parameters.

        Args:
            batch: this rank's share of the step, None if it has none.
            state: numbers of the run; its micro-batch limit falls when memory runs out.
            dropout_seed: of this step and rank.
            is_stop_requested: whether this rank was asked to stop.

        Raises:
            SettingsError: there is too little memory for a single example.
            RankLostError: another rank died or hangs.
        """
        names = list(self.step_loss.weights)
        own = {} if batch is None else self.step_loss.counts(batch)
        counts = self.ranks.sum_numbers({name: own.get(name, 0) for name in names})
        self.weights.gather()
        means = {} if batch is None else self._accumulate(batch, state, counts, dropout_seed)
        clock = state.seconds if self.ranks.is_first else 0.0
        tokens = 0 if batch is None else batch.num_tokens
        summed = self.weights.sum_gradients(
            [*(means.get(name, 0.0) for name in names), tokens, clock, float(is_stop_requested)]
        )
        terms = {
            name: value
            for name, value in zip(names, summed[: len(names)], strict=True)
            if counts[name]
        }
        return StepOutcome(
            weighted_sum(terms, self.step_loss.weights),
            terms,
            int(summed[-3]),
            summed[-2],
            summed[-1] > 0,
        )

    def _accumulate(
        self, batch: Batch, state: TrainState, counts: dict[str, float], seed: int
    ) -> dict[str, float]:
        """When memory runs out, the same share is done again in smaller parts."""
        while True:
            seed_dropout(seed, self.device)
            try:
                return accumulate_gradient(
                    self.model,
                    batch,
                    self.step_loss,
                    counts=counts,
                    micro_batch_tokens=state.micro_batch_tokens,
                    device=self.device,
                    precision=self.precision,
                    scaler=self.scaler,
                )
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                reason = str(error).partition("\n")[0]
            self.model.zero_grad(set_to_none=True)
            longest = int(batch.lengths.max())
            used = min(state.micro_batch_tokens, batch.num_tokens)
            if used <= longest:
                raise SettingsError(
                    f"step {state.step}: memory is too small for one example of {longest} tokens "
                    f"({reason}); use gradient_checkpointing, a smaller max_length or model"
                )
            state.micro_batch_tokens = max(longest, used // 2)
            self.warn(
                state.step,
                f"out of memory with {used} tokens in one pass; going on with "
                f"{state.micro_batch_tokens}, same batch size",
            )
