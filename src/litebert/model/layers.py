"""The two sub-layers of a block: self-attention and feed-forward, each with residual and LayerNorm.

Post-norm: `norm(x + sublayer(x))`. Biases everywhere, as in the official code.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from litebert.model.attend import HeadLayout, attend, attend_padded, attention_probabilities
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing

__all__ = ["Attention", "FeedForward", "LayerNorm", "activate", "init_weights"]

Layout = Packing | Tensor | None
"""A packing for packed tokens; an attention mask [B, 1, 1, S], or None, for a padded batch."""


class LayerNorm(nn.LayerNorm):
    """LayerNorm over the last dimension, always computed in float32.

    The published epsilon 1e-12 is 0 in half precision, and the variance of wide activations
    overflows it. Source: official `modeling.py`, `layer_norm`.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - name of the base class
        """Return the normalised input; float32 weights give a float32 result."""
        weight, bias = self.weight, self.bias
        if input.dtype == weight.dtype == torch.float32:
            return functional.layer_norm(input, self.normalized_shape, weight, bias, self.eps)
        if weight.dtype == torch.float64:
            return functional.layer_norm(
                input.double(), self.normalized_shape, weight, bias, self.eps
            )
        with torch.autocast(input.device.type, enabled=False):
            result = functional.layer_norm(
                input.float(), self.normalized_shape, weight.float(), bias.float(), self.eps
            )
        return result.to(weight.dtype)


class Attention(nn.Module):
    """Self-attention with output projection, residual and LayerNorm.

    Source: official `modeling.py`, `attention_layer` and the first half of `attention_ffn_block`.
    `num_key_value_heads` below `num_attention_heads` is multi-query (1) or grouped-query attention,
    which no published ALBERT has. Source: Shazeer 2019; Ainslie et al. 2023.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        hidden, heads = config.hidden_size, config.num_attention_heads
        size = hidden // heads
        self.heads = HeadLayout(heads, config.num_key_value_heads, size)
        narrow = config.num_key_value_heads * size
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, narrow)
        self.value = nn.Linear(hidden, narrow)
        self.output = nn.Linear(hidden, hidden)
        self.norm = LayerNorm(hidden, eps=config.layer_norm_eps)
        self.probs_dropout_prob = config.attention_probs_dropout_prob
        self.dropout_prob = config.hidden_dropout_prob

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

    def forward(
        self,
        hidden: Float[Tensor, "*tokens H"],
        layout: Layout,
        fused: tuple[Tensor, Tensor] | None = None,
    ) -> Float[Tensor, "*tokens H"]:
        """Return `norm(hidden + output(attention(hidden)))`.

        Args:
            hidden: packed [T, H], or padded [B, S, H].
            layout: a `Packing` for packed tokens, else a mask [B, 1, 1, S] or None.
            fused: result of `fuse()`, to share it between depths.
        """
        qkv = self.project(hidden, fused)
        dropout = self.probs_dropout_prob if self.training else 0.0
        if isinstance(layout, Packing):
            context = attend(qkv, self.heads, layout, dropout_prob=dropout)
        else:
            context = attend_padded(qkv, self.heads, layout, dropout_prob=dropout)
        update = functional.linear(context, self.output.weight, self.output.bias)
        if self.training and self.dropout_prob:
            update = functional.dropout(update, self.dropout_prob)
        return self.norm(hidden + update)

    def project(
        self, hidden: Float[Tensor, "*tokens H"], fused: tuple[Tensor, Tensor] | None = None
    ) -> Float[Tensor, "*tokens W"]:
        """Return query, key and value side by side."""
        if fused is not None:
            return functional.linear(hidden, *fused)
        projections = (self.query, self.key, self.value)
        parts = [functional.linear(hidden, part.weight, part.bias) for part in projections]
        return torch.cat(parts, dim=-1)

    def probabilities(
        self, hidden: Float[Tensor, "T H"], packing: Packing
    ) -> tuple[Float[Tensor, "A n n"], ...]:
        """Return what each sequence attends to, before dropout."""
        return attention_probabilities(self.project(hidden), self.heads, packing)


class FeedForward(nn.Module):
    """Two projections with an activation between, residual and LayerNorm.

    Source: official `modeling.py`, second half of `attention_ffn_block`.
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

    def forward(self, hidden: Float[Tensor, "*tokens H"]) -> Float[Tensor, "*tokens H"]:
        """Return `norm(hidden + down(activation(up(hidden))))`."""
        inner = functional.linear(hidden, self.up.weight, self.up.bias)
        inner = activate(inner, self.activation)
        update = functional.linear(inner, self.down.weight, self.down.bias)
        if self.training and self.dropout_prob:
            update = functional.dropout(update, self.dropout_prob)
        return self.norm(hidden + update)


def activate(inner: Tensor, name: str) -> Tensor:
    """Apply an activation by its published name: `gelu` (erf), `gelu_new` (tanh) or `relu`."""
    if name == "relu":
        return functional.relu(inner)
    return functional.gelu(inner, approximate="tanh" if name == "gelu_new" else "none")


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
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
            nn.init.zeros_(part.bias)
