"""The stack: a plan of steps, run in a loop over the stored attentions and feed-forwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from litebert.errors import SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.depth import DepthEmbeddings
from litebert.model.depth_decay import DepthDecay, scale_gradient
from litebert.model.disentangled import RelativeEmbeddings, RelativeTerms
from litebert.model.layers import Attention, FeedForward, Rounding, View
from litebert.model.norm import LayerNorm
from litebert.model.packing import Packing
from litebert.model.quantization import SITES
from litebert.model.rotary import rotation
from litebert.model.sharing import Plan, num_attentions, num_ffns
from litebert.model.sight import Layout, Sight
from litebert.model.step_adapter import StepAdapter

__all__ = ["Backend", "Checkpointing", "Encoder", "Run", "Trace"]

Checkpointing = bool | int | Literal["ffn"]
"""What is recomputed in the backward pass; see `Encoder.set_checkpointing`."""

Backend = Callable[..., Callable[..., object]]
"""A backend of `torch.compile` of one's own."""

Fused = list[tuple[Tensor, Tensor] | None]
Terms = list[RelativeTerms | None]


@dataclass(slots=True)
class Trace:
    """Collects what a forward pass shows on request.

    Attributes:
        hidden_states: input of the first depth, then the output of each depth, [T, H]; None if unwanted.
        attentions: for each step, the probabilities of each sequence, [A, n, n]; None if unwanted.
    """

    hidden_states: list[Tensor] | None = None
    attentions: list[tuple[Tensor, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What all depths of one forward pass use; the last two only with options."""

    layout: Layout
    fused: Fused
    sight: Sight | None = None
    terms: Terms | None = None


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
        self.options = options = config.litebert
        self.head_size = config.head_size
        if options.has_relative:
            self.relative = RelativeEmbeddings(config)
        if options.depth_embeddings:
            self.depths = DepthEmbeddings(config.num_hidden_layers, config.hidden_size)
        if options.has_step_parts:
            self.adapters = nn.ModuleList([StepAdapter(config) for _ in self.plan])
        if options.norm_position == "pre":
            self.final_norm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.activation_ranges: Tensor | None
        quantization = options.quantization
        has_ranges = quantization is not None and quantization.activations == "static"
        ranges = torch.zeros(len(self.plan), len(SITES), 2) if has_ranges else None
        self.register_buffer("activation_ranges", ranges)
        self.rounding: Rounding | None = None
        self.checkpointing: Checkpointing = False
        self.active_depth: int | None = None
        self.decay: DepthDecay | None = None

    @property
    def num_depths(self) -> int:
        """Depths that run: `active_depth`, or all of the plan."""
        return self.active_depth or len(self.plan) // self.inner

    def set_active_depth(self, depths: int | None, *, allow_idle: bool = False) -> None:
        """Run the first depths only; None runs all.

        A setting of the run, not of the model: it is not saved.

        Args:
            depths: how many, 1 to the model's own; None: all.
            allow_idle: also where stored weights would not run; for what does not train.

        Raises:
            SettingsError: no such number, or some stored weights would not run and so not train.
        """
        total = len(self.plan) // self.inner
        if depths is not None and (type(depths) is not int or not 1 <= depths <= total):
            raise SettingsError(
                f"active depth is {depths!r}, allowed are 1 to num_hidden_layers = {total}, or None for all"
            )
        if depths is not None and depths < total and not allow_idle:
            active = self.plan[: depths * self.inner]
            idle = [
                f"{stored - used} of {stored} {kind}"
                for kind, used, stored in (
                    ("attentions", len({s.attention for s in active}), len(self.attentions)),
                    ("ffns", len({s.ffn for s in active}), len(self.ffns)),
                )
                if used < stored
            ]
            if self.options.depth_embeddings:
                idle.append(f"{total - depths} of {total} depth embeddings")
            for chosen, kind in (
                (self.options.lora_rank, "low-rank updates"),
                (self.options.depth_norms, "LayerNorm changes"),
                (self.options.adapter_size, "bottlenecks"),
            ):
                if chosen:
                    idle.append(f"the {kind} of {total - depths} depths")
            if idle:
                raise SettingsError(
                    f"the first {depths} of {total} depths leave out {' and '.join(idle)}, which would "
                    "not train; choose a plan that shares its blocks in the first depths (sharing "
                    "'all', or 'cycle' with fewer groups), or build a shallower model and change it "
                    "with set_depth"
                )
        self.active_depth = depths

    def set_depth_decay(self, decay: float | None) -> None:
        """Let earlier applications of a block count less in its gradient; None: all the same.

        A setting of the run, not of the model. Outputs, and what flows on to earlier depths, stay
        the same. The rates that go with it are for the optimizer; see `DepthDecay`.

        Args:
            decay: factor from one depth to the one before, in (0, 1].

        Raises:
            SettingsError: decay out of range.
        """
        self.decay = None if decay is None else DepthDecay(self.plan, self.inner, decay)

    def compile_block(self, *, dynamic: bool = True, backend: str | Backend = "inductor") -> None:
        """Compile the feed-forward, and what follows attention, with `torch.compile`.

        One code serves all depths, shared or not, so that compiling takes as long for 2 depths as for
        24; attention itself stays as it is. What is computed stays the same up to rounding, but dropout
        draws other numbers. A compiled model cannot be pickled whole; saving and state dicts do not care.

        Args:
            dynamic: one code for any number of tokens, instead of one for each.
            backend: of `torch.compile`; "inductor" needs a C++ compiler or a CUDA device.
        """
        finish = torch.compile(Attention.finish, dynamic=dynamic, backend=backend)
        update = torch.compile(FeedForward.update, dynamic=dynamic, backend=backend)
        for attention in self.attentions:
            cast(Attention, attention).run_finish = finish
        for ffn in self.ffns:
            cast(FeedForward, ffn).run = update

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
        self,
        hidden: Float[Tensor, "*tokens H"],
        layout: Layout,
        trace: Trace | None = None,
        position_ids: Int[Tensor, " T"] | Int[Tensor, "*rows S"] | None = None,
    ) -> Float[Tensor, "*tokens H"]:
        """Run the plan.

        Args:
            hidden: packed [T, H] with a `Packing` as layout, or padded [B, S, H] with a mask.
            layout: where attention may look.
            trace: filled with hidden states and attentions, if given (packed only for attentions).
            position_ids: for rotary and disentangled positions, packed [T], or [S] or [B, S]; None: the
                place of each token.
        """
        run = self.begin(hidden, layout, position_ids)
        recompute = self.checkpointing if self.training and torch.is_grad_enabled() else False
        if trace is None and recompute is not False and recompute != "ffn":
            return self.end(self._in_segments(hidden, run, int(recompute)))
        states = None if trace is None else trace.hidden_states
        if states is not None:
            states.append(hidden)
        for depth in range(self.num_depths):
            hidden = self.run_depth(depth, hidden, run, trace, recompute == "ffn")
            if depth == self.num_depths - 1:
                hidden = self.end(hidden)
            if states is not None:
                states.append(hidden)
        return hidden

    def begin(
        self,
        hidden: Float[Tensor, "*tokens H"],
        layout: Layout,
        position_ids: Int[Tensor, " T"] | Int[Tensor, "*rows S"] | None = None,
        last: Run | None = None,
    ) -> Run:
        """Return what all depths of a forward pass use.

        Args:
            hidden: as `forward`.
            layout: as `forward`.
            position_ids: as `forward`.
            last: of the depths before, where sequences have left since: spares joining weights again.
        """
        fused = last.fused if last else self._fuse(hidden.numel() // hidden.shape[-1])
        options = self.options
        if not (options.has_rotary or options.has_relative or options.local_window):
            return Run(layout, fused)
        places = position_ids
        if places is None and isinstance(layout, Packing):
            places = layout.position_ids
        elif places is None:
            places = torch.arange(hidden.shape[1], device=hidden.device)
        sight = Sight(
            places,
            position_ids is None and (not isinstance(layout, Packing) or layout.indices is None),
            half=None if options.local_window is None else options.local_window // 2,
        )
        terms: Terms = [None] * len(self.attentions)
        if options.has_rotary:
            double = hidden.dtype == torch.float64
            sight.rotation = rotation(places, self.head_size, options.rotary_base, double=double)
        if options.has_relative:
            sight.relative = self.relative
            rows = self.relative()
            terms = [cast(Attention, module).relate(rows) for module in self.attentions]
        return Run(layout, fused, sight, terms)

    def end(self, hidden: Float[Tensor, "*tokens H"]) -> Float[Tensor, "*tokens H"]:
        """Return what the encoder gives if it ends here: with the last norm, where it has one."""
        return self.final_norm(hidden) if self.options.norm_position == "pre" else hidden

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

    def run_depth(
        self,
        depth: int,
        hidden: Float[Tensor, "*tokens H"],
        run: Run,
        trace: Trace | None = None,
        recompute_ffn: bool = False,
    ) -> Float[Tensor, "*tokens H"]:
        """Run one depth, counted from 0."""
        if self.options.depth_embeddings:
            hidden = self.depths(hidden, depth)
        for number in range(depth * self.inner, (depth + 1) * self.inner):
            step = self.plan[number]
            attention = cast(Attention, self.attentions[step.attention])
            ffn = cast(FeedForward, self.ffns[step.ffn])
            if self.rounding is not None:
                self.rounding.begin_step(number, self.activation_ranges)
            view = self._view(depth, number, run)
            adapter = None if view is None else view.adapter
            if (
                trace is not None
                and trace.attentions is not None
                and isinstance(run.layout, Packing)
            ):
                trace.attentions.append(attention.probabilities(hidden, run.layout, view))
            before, after = self._scales(number)
            hidden = scale_gradient(hidden, 1 / before)
            hidden = attention(hidden, run.layout, run.fused[step.attention], view)
            hidden = scale_gradient(hidden, before / after)
            feed = partial(ffn, adapter=adapter)
            hidden = _recomputed(feed, hidden) if recompute_ffn else feed(hidden)
            hidden = scale_gradient(hidden, after)
        return hidden

    def _scales(self, number: int) -> tuple[float, float]:
        """Factors of the gradients of attention and feed-forward of a step."""
        decay = self.decay
        return (1.0, 1.0) if decay is None else (
            decay.attention_scales[number], decay.ffn_scales[number]
        )  # fmt: skip

    def _view(self, depth: int, number: int, run: Run) -> View | None:
        """What is particular to a step; None for a model without options."""
        adapter = None
        if self.options.has_step_parts:
            adapter = cast(StepAdapter, self.adapters[number])
        elif run.sight is None:
            return None
        terms = run.terms[self.plan[number].attention] if run.terms else None
        return View(run.sight, terms, self.options.is_local(depth), adapter)

    def _in_segments(self, hidden: Tensor, run: Run, size: int) -> Tensor:
        depths = self.num_depths

        def segment(first: int, hidden: Tensor) -> Tensor:
            for depth in range(first, min(first + size, depths)):
                hidden = self.run_depth(depth, hidden, run)
            return hidden

        for first in range(0, depths, size):
            hidden = _recomputed(lambda value, first=first: segment(first, value), hidden)
        return hidden


def _recomputed(function: Callable[[Tensor], Tensor], hidden: Tensor) -> Tensor:
    return checkpoint(function, hidden, use_reentrant=False)  # pyright: ignore[reportReturnType]
