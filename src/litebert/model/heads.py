"""Task heads: their weights, under the names of their published twins, and what they compute.

A head sees packed hidden states; padded batches are unpacked afterwards.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from litebert.errors import SettingsError
from litebert.model.activation import activate
from litebert.model.chunked_loss import chunked_cross_entropy
from litebert.model.config import AlbertConfig
from litebert.model.head_kinds import head_kind
from litebert.model.layers import LayerNorm
from litebert.model.span_head import JointSpanHead

__all__ = ["ClassifierHead", "MlmHead", "ReplacedTokenHead", "make_heads"]


class MlmHead(nn.Module):
    """Masked-token prediction: H -> E, activation, LayerNorm, then the token table and a bias.

    Source: official `run_pretraining.py`, `get_masked_lm_output`.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.norm = LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.activation = config.hidden_act

    def forward(
        self, hidden: Float[Tensor, "P H"], table: Float[Tensor, "V E"]
    ) -> Float[Tensor, "P V"]:
        """Return the logits over the vocabulary; `table` is the tied token embedding."""
        return functional.linear(self.transform(hidden), table, self.bias)

    def transform(self, hidden: Float[Tensor, "P H"]) -> Float[Tensor, "P E"]:
        """Return what is compared with each row of the token table."""
        return self.norm(activate(self.dense(hidden), self.activation))

    def loss(
        self,
        hidden: Float[Tensor, "P H"],
        table: Float[Tensor, "V E"],
        targets: Int[Tensor, " P"],
    ) -> Float[Tensor, ""]:
        """Return the summed cross-entropy in nats; the logits never exist as a whole."""
        return chunked_cross_entropy(self.transform(hidden), table, self.bias, targets)


class ReplacedTokenHead(nn.Module):
    """Is this token the original? H -> H, activation, one logit; positive means replaced.

    Only in pretraining: no model folder keeps it. Source: ELECTRA, discriminator predictions.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.activation = config.hidden_act

    def forward(self, hidden: Float[Tensor, "T H"]) -> Float[Tensor, " T"]:
        """Return one logit for each token."""
        return self.classifier(activate(self.dense(hidden), self.activation))[:, 0]


class ClassifierHead(nn.Module):
    """Dropout and one projection, H -> outputs."""

    def __init__(self, hidden_size: int, outputs: int, dropout_prob: float) -> None:
        super().__init__()
        self.classifier = nn.Linear(hidden_size, outputs)
        self.dropout_prob = dropout_prob

    def forward(self, features: Float[Tensor, "rows H"]) -> Float[Tensor, "rows C"]:
        """Return the logits."""
        if self.training and self.dropout_prob:
            features = functional.dropout(features, self.dropout_prob)
        return self.classifier(features)


def make_heads(config: AlbertConfig, head: str) -> nn.ModuleDict:
    """Return the modules of a head by name; none for `embedding`.

    Dropout `classifier_dropout_prob` stands before `sequence`, `token` and `choice`.
    Differs from transformers: none before `sentence_order`, as in the official code.
    `sentence_order` has as many outputs as `id2label` has labels (2 in every published model),
    so that folders are exchangeable with transformers.

    Raises:
        SettingsError: unknown head, or a span head on a configuration without exactly 2 labels.
    """
    if head == "span" and config.num_labels != 2:
        raise SettingsError(
            f"a span head has 2 outputs (start, end), the configuration has {config.num_labels} labels; "
            "give it an id2label of 2 entries"
        )
    dropout = config.classifier_dropout_prob
    outputs = {
        "sentence_order": (config.num_labels, 0.0),
        "sequence": (config.num_labels, dropout),
        "token": (config.num_labels, dropout),
        "span": (2, 0.0),
        "choice": (1, dropout),
    }
    return nn.ModuleDict(
        {
            part: MlmHead(config)
            if part == "mlm"
            else JointSpanHead(config)
            if part == "span_joint"
            else ClassifierHead(config.hidden_size, *outputs[part])
            for part in head_kind(head).parts
        }
    )
