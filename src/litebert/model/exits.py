"""Exit heads: a classifier of its own for each depth but the last, whose classifier is the model's.

All depths are stored as one tensor, so that a graph can take the row of the depth that it runs.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from litebert.model.config import AlbertConfig
from litebert.model.head_kinds import EXIT_WORDS

__all__ = ["ExitHeads", "has_exit_heads", "resized_exits"]


class ExitHeads(nn.Module):
    """Classifiers of depths 1..L-1; zero at the start.

    The pooler before them is the model's own at every depth. Source: Zhou et al. 2020, BERT Loses
    Patience, section 3.1 (an internal classifier after each layer); Xin et al. 2021, BERxiT.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        rows = config.num_hidden_layers - 1
        self.weight = nn.Parameter(torch.zeros(rows, config.num_labels, config.hidden_size))
        self.bias = nn.Parameter(torch.zeros(rows, config.num_labels))
        self.dropout_prob = config.classifier_dropout_prob

    def forward(self, features: Float[Tensor, "rows H"], depth: int) -> Float[Tensor, "rows C"]:
        """Return the logits after a depth, 1..L-1; features are pooled first tokens, or tokens."""
        if self.training and self.dropout_prob:
            features = functional.dropout(features, self.dropout_prob)
        return functional.linear(features, self.weight[depth - 1], self.bias[depth - 1])


def has_exit_heads(config: AlbertConfig, head: str | None) -> bool:
    """Whether a model of this configuration with this head has classifiers at its depths."""
    return config.litebert.exit_heads and head in EXIT_WORDS and config.num_hidden_layers > 1


def resized_exits(state: dict[str, Tensor], head: str, depths: int) -> dict[str, Tensor]:
    """Return a state with one classifier for each of another number of depths.

    The last of them becomes the model's own; depths beyond the old ones start with the last one.
    """
    if "exits.weight" not in state:
        return state
    kept = {name: value for name, value in state.items() if not name.startswith("exits.")}
    for leaf in ("weight", "bias"):
        own = f"heads.{head}.classifier.{leaf}"
        every = torch.cat([state[f"exits.{leaf}"], state[own][None]])
        more = max(0, depths - len(every))
        every = torch.cat([every, every[-1:].expand(more, *every.shape[1:])])[:depths].clone()
        kept[own] = every[-1]
        if depths > 1:
            kept[f"exits.{leaf}"] = every[:-1]
    return kept
