"""The two sub-layers of a block: self-attention and feed-forward, each with residual and LayerNorm.

Post-norm: `norm(x + sublayer(x))`. Biases everywhere, as in the official code. The options (pre-norm,
gating, positions, windows, low-rank updates) change nothing where they are not set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from litebert.model.activation import GELU_FORMS, activate
from litebert.model.attend import attend, attend_padded, repeat_heads
from litebert.model.config import AlbertConfig
from litebert.model.disentangled import RelativeTerms
from litebert.model.head_layout import HeadLayout
from litebert.model.norm import LayerNorm
from litebert.model.packing import Packing
from litebert.model.quantization import Site
from litebert.model.recompute import can_recompute, gelu_linear
from litebert.model.sight import Layout, Sight, look, look_probabilities
from litebert.model.step_adapter import StepAdapter

__all__ = ["Attention", "FeedForward", "LayerNorm", "Layout", "Rounding", "View", "activate",
           "init_weights"]  # fmt: skip

_JOINED: Final = ("query", "key", "value")
"""Projections whose results stand side by side."""


class Rounding(Protocol):
    """Changes what enters the projections: rounds it (`rounding.py`), or masks it.

    Attributes:
        reaches_updates: whether low-rank updates of single depths meet the change, too.
    """

    reaches_updates: bool

    def begin_step(self, step: int, ranges: Tensor | None) -> None:
        """Say which step of the plan runs next."""
        ...

    def __call__(self, site: Site, numbers: Tensor, center: Tensor | None) -> Tensor:
        """Return the inputs of a projection as the integers hold them."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """What is particular to one depth of a model with options.

    Attributes:
        sight: what positions mean to attention; the same for all depths of a forward pass.
        terms: relative positions, projected for the attention that runs here.
        is_local: whether attention sees its window only.
        adapter: what the step has for itself.
    """

    sight: Sight | None = None
    terms: RelativeTerms | None = None
    is_local: bool = False
    adapter: StepAdapter | None = None


class Attention(nn.Module):
    """Self-attention with output projection, residual and LayerNorm.

    Source: official `modeling.py`, `attention_layer` and the first half of `attention_ffn_block`.
    `num_key_value_heads` below `num_attention_heads` is multi-query (1) or grouped-query attention,
    which no published ALBERT has. Source: Shazeer 2019; Ainslie et al. 2023.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        hidden, width, narrow = config.hidden_size, config.attention_size, config.key_value_size
        self.heads = HeadLayout(
            config.num_attention_heads, config.num_key_value_heads, config.head_size
        )
        self.query = nn.Linear(hidden, width)
        self.key = nn.Linear(hidden, narrow)
        self.value = nn.Linear(hidden, narrow)
        self.output = nn.Linear(width, hidden)
        self.norm = LayerNorm(hidden, eps=config.layer_norm_eps)
        self.probs_dropout_prob = config.attention_probs_dropout_prob
        self.dropout_prob = config.hidden_dropout_prob
        options = config.litebert
        self.is_pre_norm = options.norm_position == "pre"
        self.relative_terms = options.relative_terms.split("+") if options.has_relative else []
        self.run_finish: Callable[..., Tensor] = Attention.finish
        self.rounding: Rounding | None = None
        self.qkv_center: Tensor | None
        self.output_center: Tensor | None
        _add_centers(self, config, qkv=hidden, output=width)
        if options.has_relative and options.relative_form == "v1":
            if "c2p" in self.relative_terms:
                self.relative_key = nn.Linear(hidden, narrow, bias=False)
            if "p2c" in self.relative_terms:
                self.relative_query = nn.Linear(hidden, width)

    def fuse(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias of query, key and value as one projection.

        Made once per forward pass and used at every depth that shares this attention; the
        gradient flows to the three stored weights.
        """
        projections = (self.query, self.key, self.value)
        return (
            torch.cat([projection.weight for projection in projections]),
            torch.cat([projection.bias for projection in projections]),
        )

    def relate(self, rows: Float[Tensor, "R H"]) -> RelativeTerms:
        """Return the embeddings of relative positions as keys and queries of this attention."""

        def heads(term: str, own: str, content: nn.Linear) -> Tensor | None:
            if term not in self.relative_terms:
                return None
            projected = cast(nn.Linear, self._modules.get(own, content))(rows)
            parts = repeat_heads(projected.unflatten(-1, (-1, self.heads.size)), self.heads.heads)
            return parts.transpose(0, 1)  # [A, R, D]

        return RelativeTerms(
            heads("c2p", "relative_key", self.key), heads("p2c", "relative_query", self.query)
        )

    def forward(
        self,
        hidden: Float[Tensor, "*tokens H"],
        layout: Layout,
        fused: tuple[Tensor, Tensor] | None = None,
        view: View | None = None,
    ) -> Float[Tensor, "*tokens H"]:
        """Return `norm(hidden + output(attention(hidden)))`, or pre-norm the same of `norm(hidden)`.

        Args:
            hidden: packed [T, H], or padded [B, S, H].
            layout: a `Packing` for packed tokens, else a mask [B, 1, 1, S] or None.
            fused: result of `fuse()`, to share it between depths.
            view: what is particular to this depth, if anything.
        """
        adapter = None if view is None else view.adapter
        entering = self._norm(hidden, adapter) if self.is_pre_norm else hidden
        qkv = self.project(entering, fused, adapter)
        dropout = self.probs_dropout_prob if self.training else 0.0
        if view is not None and view.sight is not None:
            context = look(
                qkv,
                self.heads,
                layout,
                view.sight,
                view.terms,
                is_local=view.is_local,
                dropout_prob=dropout,
            )
        elif isinstance(layout, Packing):
            context = attend(qkv, self.heads, layout, dropout_prob=dropout)
        else:
            context = attend_padded(qkv, self.heads, layout, dropout_prob=dropout)
        return self.run_finish(self, hidden, context, adapter)

    def finish(
        self,
        hidden: Float[Tensor, "*tokens H"],
        context: Float[Tensor, "*tokens W"],
        adapter: StepAdapter | None,
    ) -> Float[Tensor, "*tokens H"]:
        """Return what follows the attention itself: output projection, residual and LayerNorm."""
        entering = context
        if self.rounding is not None:
            entering = self.rounding("output", context, self.output_center)
            context = entering if self.rounding.reaches_updates else context
        update = functional.linear(entering, self.output.weight, self.output.bias)
        if adapter is not None:
            update = adapter.add("output", context, update)
        if self.training and self.dropout_prob:
            update = functional.dropout(update, self.dropout_prob)
        if adapter is not None:
            update = adapter.squeeze("attention", update)
        return hidden + update if self.is_pre_norm else self._norm(hidden + update, adapter)

    def _norm(self, hidden: Tensor, adapter: StepAdapter | None) -> Tensor:
        return (
            self.norm(hidden)
            if adapter is None
            else adapter.normalise("attention", self.norm, hidden)
        )

    def project(
        self,
        hidden: Float[Tensor, "*tokens H"],
        fused: tuple[Tensor, Tensor] | None = None,
        adapter: StepAdapter | None = None,
    ) -> Float[Tensor, "*tokens W"]:
        """Return query, key and value side by side."""
        entering = hidden
        if self.rounding is not None:
            entering = self.rounding("qkv", hidden, self.qkv_center)
        if fused is not None:
            result = functional.linear(entering, *fused)
        else:
            projections = (self.query, self.key, self.value)
            parts = [functional.linear(entering, part.weight, part.bias) for part in projections]
            result = torch.cat(parts, dim=-1)
        return result if adapter is None else adapter.add_joined(_JOINED, hidden, result)

    def probabilities(
        self, hidden: Float[Tensor, "T H"], packing: Packing, view: View | None = None
    ) -> tuple[Float[Tensor, "A n n"], ...]:
        """Return what each sequence attends to, before dropout."""
        view = view or View()
        hidden = self._norm(hidden, view.adapter) if self.is_pre_norm else hidden
        return look_probabilities(
            self.project(hidden, adapter=view.adapter),
            self.heads,
            packing,
            view.sight,
            view.terms,
            is_local=view.is_local,
        )


class FeedForward(nn.Module):
    """Two projections with an activation between, residual and LayerNorm; gated if `geglu`.

    Source: official `modeling.py`, second half of `attention_ffn_block`; gated: Shazeer 2020, GLU
    Variants Improve Transformer, equation 6 (there without biases).
    Differs from transformers: dropout of the output before the residual, as in the official code;
    transformers leaves it out. Without dropout the two are equal.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.activation = config.hidden_act
        self.dropout_prob = config.hidden_dropout_prob
        self.is_pre_norm = config.litebert.norm_position == "pre"
        self.is_gated = config.litebert.ffn == "geglu"
        self.run: Callable[..., Tensor] = FeedForward.update
        self.rounding: Rounding | None = None
        self.up_center: Tensor | None
        self.down_center: Tensor | None
        _add_centers(self, config, up=config.hidden_size, down=config.intermediate_size)
        if self.is_gated:
            self.gate = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(
        self, hidden: Float[Tensor, "*tokens H"], adapter: StepAdapter | None = None
    ) -> Float[Tensor, "*tokens H"]:
        """Return `norm(hidden + down(activation(up(hidden))))`, or pre-norm the same of `norm(hidden)`.

        Gated, the activation is that of `gate`, times `up`.

        Args:
            hidden: packed [T, H], or padded [B, S, H].
            adapter: what this step has for itself.
        """
        return self.run(self, hidden, adapter)

    def update(
        self, hidden: Float[Tensor, "*tokens H"], adapter: StepAdapter | None
    ) -> Float[Tensor, "*tokens H"]:
        """Compute `forward`, which runs this or its compiled form."""
        entering = self._norm(hidden, adapter) if self.is_pre_norm else hidden
        inner = self._project("up", self.up, entering, adapter)
        has_updates = adapter is not None and adapter.has_updates
        is_special = has_updates or self.is_gated or self.rounding is not None
        if not is_special and self.activation != "relu" and can_recompute(inner, self.down.weight):
            update = gelu_linear(
                inner, self.down.weight, self.down.bias, GELU_FORMS[self.activation]
            )
        else:
            if self.is_gated:
                gate = self._project("gate", self.gate, entering, adapter)
                inner = activate(gate, self.activation) * inner
            else:
                inner = activate(inner, self.activation)
            update = self._project("down", self.down, inner, adapter)
        if self.training and self.dropout_prob:
            update = functional.dropout(update, self.dropout_prob)
        if adapter is not None:
            update = adapter.squeeze("ffn", update)
        return hidden + update if self.is_pre_norm else self._norm(hidden + update, adapter)

    def _norm(self, hidden: Tensor, adapter: StepAdapter | None) -> Tensor:
        return self.norm(hidden) if adapter is None else adapter.normalise("ffn", self.norm, hidden)

    def _project(
        self, name: str, layer: nn.Linear, inputs: Tensor, adapter: StepAdapter | None
    ) -> Tensor:
        entering = inputs
        if self.rounding is not None:
            is_down = name == "down"
            center = self.down_center if is_down else self.up_center
            entering = self.rounding("down" if is_down else "up", inputs, center)
            inputs = entering if self.rounding.reaches_updates else inputs
        result = functional.linear(entering, layer.weight, layer.bias)
        return result if adapter is None else adapter.add(name, inputs, result)


def _add_centers(module: nn.Module, config: AlbertConfig, **widths: int) -> None:
    """Give a sub-layer the buffers that `Quantization.centers` speaks of, None for other models."""
    quantization = config.litebert.quantization
    has_centers = quantization is not None and quantization.has_centers
    for site, width in widths.items():
        module.register_buffer(f"{site}_center", torch.zeros(width) if has_centers else None)


def init_weights(module: nn.Module, std: float) -> None:
    """Initialise as the official code: truncated normal, zero biases, LayerNorm 1 and 0.

    Draws beyond 2 standard deviations are drawn again. Source: official `create_initializer`.
    Differs from transformers: that draws a plain normal, and zeroes the row of the padding token.

    Args:
        module: whose own and inner modules are initialised.
        std: standard deviation before truncation, > 0.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.trunc_normal_(part.weight, std=std, a=-2 * std, b=2 * std)
        if isinstance(part, nn.Linear) and part.bias is not None:  # pyright: ignore[reportUnnecessaryComparison]
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
            nn.init.zeros_(part.bias)
