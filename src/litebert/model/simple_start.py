"""New weights from which a classifier learns on little text: the first token starts as a mean of words.

The official start (normal, standard deviation 0.02) makes attention add almost nothing to the first
token, so a classifier that has no pretraining must first find out that it may look at the text. Here
value and output matrices and the pooler start near the identity, and attention scores near zero:
at the start the first token is itself plus the mean of all tokens, a bag of words, and training
goes on from there. Word vectors can be given to start from.
"""

from __future__ import annotations

from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from litebert.model.albert import AlbertWithHead

__all__ = ["start_simple"]

POSITION_SCALE: Final = 0.1
"""Position embeddings start small, so that they do not drown the words in the mean."""
WORD_SCALE: Final = 0.1
"""Standard deviation of given word vectors, five times that of the official random start."""
POOLER_SCALE: Final = 0.5
"""Weight of the identity in the pooler, small enough to keep tanh out of saturation."""


def start_simple(
    model: AlbertWithHead,
    words: Float[Tensor, "V E"] | None = None,
    *,
    has_matching_head: bool = False,
) -> None:
    """Change new weights in place; what the model computes and how it is stored stay the same.

    Args:
        model: just initialised.
        words: vectors of standard deviation 1 for the embedding table; they are scaled and added.
        has_matching_head: whether query and key of the first attention head start at the identity, so
            that a token attends to its like, in the other text as well. Small models hardly find
            that by themselves, and texts cannot be compared without it: STS-B 0.50 instead of 0.21
            after a short pretraining (docs/log.md).

    Source: Trockman and Kolter 2023, Mimetic Initialization of Self-Attention Layers (value times
    output near the identity); measured for this use in docs/log.md.
    Differs from: the official initialisation, which is for pretraining.
    """
    with torch.no_grad():
        if words is not None:
            model.model.embeddings.token.weight.add_(words, alpha=WORD_SCALE)
        if model.model.pooler is not None:
            pooler = model.model.pooler.get_parameter("weight")
            pooler.add_(torch.eye(*pooler.shape, dtype=pooler.dtype), alpha=POOLER_SCALE)
        if model.model.embeddings.position is not None:
            model.model.embeddings.position.weight.mul_(POSITION_SCALE)
        project = model.model.embeddings.project
        if project is not None:
            nn.init.orthogonal_(project.weight)
        for attention in model.model.encoder.attentions.children():
            for name in ("value.weight", "output.weight"):
                weight = attention.get_parameter(name)  # [K*D, H], [H, A*D]
                weight.add_(torch.eye(*weight.shape, dtype=weight.dtype))
            if has_matching_head:
                size = model.config.head_size
                for name in ("query.weight", "key.weight"):
                    block = attention.get_parameter(name)[:size, :size]  # [D, D]
                    block.add_(torch.eye(size, dtype=block.dtype))
