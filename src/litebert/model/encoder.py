"""The stack: a plan of steps, run in a loop over the stored attentions and feed-forwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from litebert.errors import SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.layers import Attention, FeedForward, Layout
from litebert.model.packing import Packing
from litebert.model.sharing import Plan, num_attentions, num_ffns

__all__ = ["Checkpointing", "Encoder", "Trace"]

Checkpointing = bool | int | Literal["ffn"]
"""What is recomputed in the backward pass; see `Encoder.set_checkpointing`."""

Fused = list[tuple[Tensor, Tensor] | None]


@dataclass(slots=True)
class Trace:
    """Collects what a forward pass shows on request.

    Attributes:
        hidden_states: input of the first depth, then the output of each depth, [T, H]; None if unwanted.
        attentions: for each step, the probabilities of each sequence, [A, n, n]; None if unwanted.
    """

    hidden_states: list[Tensor] | None = None
    attentions: list[tuple[Tensor, ...]] | None = None


class Encoder(nn.Module):
    """Runs a plan. No flag says "shared": a plan that names an index twice shares it.

    Source: Lan et al. 2020, section 3.1; official `modeling.py`, `transformer_model`.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.plan: Plan = config.plan
        self.inner = config.inner_group_num
        self.attentions = nn.ModuleList(
            [Attention(config) for _ in range(num_attentions(self.plan))]
        )
        self.ffns = nn.ModuleList([FeedForward(config) for _ in range(num_ffns(self.plan))])
        self.checkpointing: Checkpointing = False
        self.active_depth: int | None = None

    @property
    def num_depths(self) -> int:
        """Depths that run: `active_depth`, or all of the plan."""
        return self.active_depth or len(self.plan) // self.inner

    def set_active_depth(self, depths: int | None) -> None:
        """Run the first depths only, for training that starts shallow; None runs all.

        A setting of the run, not of the model: it is not saved.

        Args:
            depths: how many, 1 to the model's own; None: all.

        Raises:
            SettingsError: no such number, or some stored weights would not run and so not train.
        """
        total = len(self.plan) // self.inner
        if depths is not None and (type(depths) is not int or not 1 <= depths <= total):
            raise SettingsError(
                f"active depth is {depths!r}, allowed are 1 to num_hidden_layers = {total}, or None for all"
            )
        if depths is not None and depths < total:
            active = self.plan[: depths * self.inner]
            idle = [
                f"{stored - used} of {stored} {kind}"
                for kind, used, stored in (
                    ("attentions", len({s.attention for s in active}), len(self.attentions)),
                    ("ffns", len({s.ffn for s in active}), len(self.ffns)),
                )
                if used < stored
            ]
            if idle:
                raise SettingsError(
                    f"the first {depths} of {total} depths leave out {' and '.join(idle)}, which would "
                    "not train; choose a plan that shares its blocks in the first depths (sharing "
                    "'all', or 'cycle' with fewer groups), or build a shallower model and change it "
                    "with set_depth"
                )
        self.active_depth = depths

    def set_checkpointing(self, value: Checkpointing) -> None:
        """Choose what is recomputed in the backward pass, to hold less in memory.

        One shared block runs at every depth, so a segment of n depths needs no weights but the
        block's own: with `n` only every n-th hidden state is held.

        Args:
            value: False: nothing; True: every depth; "ffn": the feed-forwards, which hold most;
                n >= 1: in segments of n depths.

        Raises:
            SettingsError: none of these.
        """
        is_number = type(value) is int and value >= 1
        if value is not False and value is not True and value != "ffn" and not is_number:
            raise SettingsError(
                f'checkpointing is {value!r}, allowed are False, True, "ffn" or a number of depths >= 1'
            )
        self.checkpointing = value

    def forward(
        self, hidden: Float[Tensor, "*tokens H"], layout: Layout, trace: Trace | None = None
    ) -> Float[Tensor, "*tokens H"]:
        """Run the plan.

        Args:
            hidden: packed [T, H] with a `Packing` as layout, or padded [B, S, H] with a mask.
            layout: where attention may look.
            trace: filled with hidden states and attentions, if given (packed only for attentions).
        """
        fused = self._fuse(hidden.numel() // hidden.shape[-1])
        recompute = self.checkpointing if self.training and torch.is_grad_enabled() else False
        if trace is None and recompute is not False and recompute != "ffn":
            return self._in_segments(hidden, layout, fused, int(recompute))
        if trace is not None and trace.hidden_states is not None:
            trace.hidden_states.append(hidden)
        for depth in range(self.num_depths):
            hidden = self._depth(depth, hidden, layout, fused, trace, recompute == "ffn")
            if trace is not None and trace.hidden_states is not None:
                trace.hidden_states.append(hidden)
        return hidden

    def _fuse(self, tokens: int) -> Fused:
        """Query, key and value as one projection, where joining weights costs less than results."""
        uses = [0] * len(self.attentions)
        for step in self.plan[: self.num_depths * self.inner]:
            uses[step.attention] += 1
        modules = [cast(Attention, module) for module in self.attentions]
        return [
            module.fuse() if tokens * count > module.query.in_features else None
            for module, count in zip(modules, uses, strict=True)
        ]

    def _depth(
        self,
        depth: int,
        hidden: Tensor,
        layout: Layout,
        fused: Fused,
        trace: Trace | None = None,
        recompute_ffn: bool = False,
    ) -> Tensor:
        for step in self.plan[depth * self.inner : (depth + 1) * self.inner]:
            attention = cast(Attention, self.attentions[step.attention])
            ffn = self.ffns[step.ffn]
            if trace is not None and trace.attentions is not None and isinstance(layout, Packing):
                trace.attentions.append(attention.probabilities(hidden, layout))
            hidden = attention(hidden, layout, fused[step.attention])
            hidden = _recomputed(ffn, hidden) if recompute_ffn else ffn(hidden)
        return hidden

    def _in_segments(self, hidden: Tensor, layout: Layout, fused: Fused, size: int) -> Tensor:
        depths = self.num_depths

        def segment(first: int, hidden: Tensor) -> Tensor:
            for depth in range(first, min(first + size, depths)):
                hidden = self._depth(depth, hidden, layout, fused)
            return hidden

        for first in range(0, depths, size):
            hidden = _recomputed(lambda value, first=first: segment(first, value), hidden)
        return hidden


def _recomputed(function: Callable[[Tensor], Tensor], hidden: Tensor) -> Tensor:
    return checkpoint(function, hidden, use_reentrant=False)  # pyright: ignore[reportReturnType]
