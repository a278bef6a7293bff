"""How much the vector of a text feels each direction of what enters the first block.

A table cut to fewer directions should keep those that matter to what the encoder makes of them, which
are not those with the most energy. Differs from Hsu et al. 2022, Language model compression with weighted
low-rank factorization, section 3: directions are weighed, not rows, and by gradients of the vector, not of a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from litebert.errors import DataError
from litebert.model.albert import AlbertWithHead
from litebert.model.packing import Packing

__all__ = ["vector_sensitivity"]

PROJECTIONS: Final = 3
"""Random directions of each vector whose gradients are taken."""
BATCH_TOKENS: Final = 512


def vector_sensitivity(
    model: AlbertWithHead,
    sequences: Sequence[Int[Tensor, " S"]],
    *,
    seed: int = 0,
) -> Float[Tensor, "D D"]:
    """Return the mean of `g g^T`, scaled to a mean diagonal of 1, in float64.

    `g` is the gradient of a random projection of a text's unit vector (the mean of its last hidden
    states) by the input of the first block at one of its tokens.

    Args:
        model: encoder in evaluation mode whose embeddings have the width of its blocks.
        sequences: token ids of texts, special ones included; at least one.
        seed: of the projections.

    Raises:
        DataError: no sequences, or nothing that the vectors feel.
    """
    if not sequences:
        raise DataError("no texts to measure by what the vectors feel; give shards with text")
    generator = torch.Generator().manual_seed(seed)
    width = model.config.hidden_size
    total = torch.zeros(width, width, dtype=torch.float64)
    entered: list[Tensor] = []

    def keep(_module: object, _given: object, output: Tensor) -> Tensor:
        entered.append(output.detach().requires_grad_())
        return entered[-1]

    hook = model.model.embeddings.register_forward_hook(keep)
    try:
        for batch in _batches(sequences):
            entered.clear()
            packing = Packing.from_lengths([len(ids) for ids in batch])
            with torch.enable_grad():
                output = model.model.forward_packed(torch.cat(batch), packing)
                parts = output.last_hidden_state.split([len(ids) for ids in batch])
                vectors = functional.normalize(torch.stack([part.mean(0) for part in parts]))
                for _ in range(PROJECTIONS):
                    drawn = torch.randn(vectors.shape, generator=generator)
                    (found,) = torch.autograd.grad(
                        (vectors * drawn).sum(), entered[0], retain_graph=True
                    )
                    rows = found.reshape(-1, width).double()
                    total += rows.T @ rows
    finally:
        hook.remove()
    size = total.diagonal().mean()
    if not torch.isfinite(total).all() or size <= 0:
        raise DataError(
            "the vectors feel nothing of what enters the first block; check the weights"
        )
    return total / size


def _batches(sequences: Sequence[Tensor]) -> list[list[Tensor]]:
    """Neighbours together, up to a number of tokens."""
    batches: list[list[Tensor]] = []
    tokens = 0
    for ids in sequences:
        if not batches or tokens + len(ids) > BATCH_TOKENS:
            batches.append([])
            tokens = 0
        batches[-1].append(ids)
        tokens += len(ids)
    return batches
