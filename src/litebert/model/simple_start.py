"""New weights from which a classifier learns on little text: the first token starts as a mean of words.

The official start (normal, standard deviation 0.02) makes attention add almost nothing to the first
token, so a classifier that has no pretraining must first find out that it may look at the text. Here
value and output matrices start near the identity and attention scores near zero: at the start the
first token is itself plus the mean of all tokens, a bag of words, and training goes on from there.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import nn

from litebert.model.albert import AlbertWithHead

__all__ = ["start_simple"]

POSITION_SCALE: Final = 0.1
"""Position embeddings start small, so that they do not drown the words in the mean."""


def start_simple(model: AlbertWithHead) -> None:
    """Change new weights in place.

    The published initialisation stays for everything else, and the function class and file format

    Source: Trockman and Kolter 2023, Mimetic Initialization of Self-Attention Layers (value times
    output near the identity); measured for this use in docs/log.md.
    Differs from: the official initialisation, which is for pretraining.
    """
    with torch.no_grad():
        model.model.embeddings.position.weight.mul_(POSITION_SCALE)
        project = model.model.embeddings.project
        if project is not None:
            nn.init.orthogonal_(project.weight)
        for attention in model.model.encoder.attentions.children():
            for name in ("value.weight", "output.weight"):
                weight = attention.get_parameter(name)  # [K*D, H], [H, A*D]
                weight.add_(torch.eye(*weight.shape, dtype=weight.dtype))
