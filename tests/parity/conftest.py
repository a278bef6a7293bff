"""The reference: transformers' ALBERT with random weights, and an independent table of names."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig

TIED = ("predictions.decoder.weight", "predictions.decoder.bias")
RENAMES = (
    (r"^albert\.", "model."),
    (r"embeddings\.word_embeddings", "embeddings.token"),
    (r"embeddings\.position_embeddings", "embeddings.position"),
    (r"embeddings\.token_type_embeddings", "embeddings.token_type"),
    (r"embeddings\.LayerNorm", "embeddings.norm"),
    (r"encoder\.embedding_hidden_mapping_in", "embeddings.project"),
    (r"^predictions\.LayerNorm", "heads.mlm.norm"),
    (r"^predictions\.", "heads.mlm."),
    (r"^sop_classifier\.", "heads.sentence_order."),
    (r"^qa_outputs\.", "heads.span.classifier."),
)
BLOCK = re.compile(r"(.*)encoder\.albert_layer_groups\.(\d+)\.albert_layers\.(\d+)\.(.+)\.(\w+)$")
IN_BLOCK = {
    "attention.query": "attentions.{}.query",
    "attention.key": "attentions.{}.key",
    "attention.value": "attentions.{}.value",
    "attention.dense": "attentions.{}.output",
    "attention.LayerNorm": "attentions.{}.norm",
    "ffn": "ffns.{}.up",
    "ffn_output": "ffns.{}.down",
    "full_layer_layer_norm": "ffns.{}.norm",
}


class Reference:
    """Builds transformers models and hands their weights and gradients over under our names."""

    def __init__(self) -> None:
        import transformers

        self.transformers = transformers
        self.classes = {
            None: transformers.AlbertModel,
            "mlm": transformers.AlbertForMaskedLM,
            "pretraining": transformers.AlbertForPreTraining,
            "sequence": transformers.AlbertForSequenceClassification,
            "token": transformers.AlbertForTokenClassification,
            "span": transformers.AlbertForQuestionAnswering,
            "choice": transformers.AlbertForMultipleChoice,
        }

    def model(self, config: AlbertConfig, head: str | None = None, *, seed: int = 0) -> nn.Module:
        """A transformers model in eval mode; every weight is random, biases and norms too."""
        values = config.to_dict()
        for key in ("litebert", "model_type", "architectures"):
            values.pop(key, None)
        theirs = self.classes[head](self.transformers.AlbertConfig(**values))
        theirs.set_attn_implementation("eager")
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in theirs.parameters():
                weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
        return theirs.eval()

    def ours(self, theirs: nn.Module, config: AlbertConfig, head: str | None = None) -> Any:
        """Our model with the same weights, in eval mode."""
        ours = AlbertModel(config) if head is None else AlbertWithHead(config, head)
        state = {
            self.name(key, config.inner_group_num, head): value
            for key, value in theirs.state_dict().items()
            if key not in TIED
        }
        ours.load_state_dict(state, strict=True)
        return ours.eval()

    def gradients(self, theirs: nn.Module, config: AlbertConfig, head: str | None = None):
        """Gradient of each weight of theirs, by our name; zeros where there is none."""
        return {
            self.name(key, config.inner_group_num, head): (
                torch.zeros_like(weight) if weight.grad is None else weight.grad
            )
            for key, weight in theirs.named_parameters()
            if key not in TIED
        }

    @staticmethod
    def name(key: str, inner: int, head: str | None) -> str:
        """Our name of a published weight."""
        for pattern, replacement in RENAMES:
            key = re.sub(pattern, replacement, key)
        if key.startswith("classifier."):
            key = f"heads.{head}.{key}"
        match = BLOCK.match(key)
        if match:
            prefix, group, slot, layer, leaf = match.groups()
            block = int(group) * inner + int(slot)
            key = f"{prefix}encoder.{IN_BLOCK[layer].format(block)}.{leaf}"
        return key


@pytest.fixture(scope="session")
def reference() -> Reference:
    pytest.importorskip("transformers")
    return Reference()


def _tiny_config(groups: int = 1, inner: int = 1, **changes: Any) -> AlbertConfig:
    return AlbertConfig.from_dict(
        {
            "vocab_size": 61,
            "embedding_size": 12,
            "hidden_size": 24,
            "num_hidden_layers": 4,
            "num_hidden_groups": groups,
            "inner_group_num": inner,
            "num_attention_heads": 3,
            "intermediate_size": 40,
            "max_position_embeddings": 32,
            **changes,
        }
    )


@pytest.fixture(scope="session")
def tiny_config():
    """Maker of small configurations: `tiny_config(groups, inner, **changes)`."""
    return _tiny_config


def _ragged_batch(lengths: list[int], *, vocab: int, width: int | None = None, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    width = width or max(lengths)
    mask = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(1, vocab, (len(lengths), width), generator=generator) * mask
    types = torch.randint(0, 2, ids.shape, generator=generator) * mask
    return ids, mask, types


@pytest.fixture(scope="session")
def ragged_batch():
    """Maker of right-padded batches: ids (0 on padding only), mask, segment ids."""
    return _ragged_batch


@pytest.fixture(scope="session")
def assert_gradients_equal():
    def check(ours: nn.Module, theirs: dict[str, Tensor], tolerance: float) -> None:
        found = {name: weight.grad for name, weight in ours.named_parameters()}
        assert set(found) == set(theirs)
        for name, grad in found.items():
            grad = torch.zeros_like(theirs[name]) if grad is None else grad
            worst = float((grad - theirs[name]).abs().max())
            assert worst <= tolerance, f"{name}: gradients differ by {worst:.1e}"

    return check
