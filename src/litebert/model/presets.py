"""Named configurations: the released ALBERTs, BERT for comparison, and our own small shapes.

Source: paper Table 1, the released `albert_config.json` files, google-research README.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

from litebert.errors import SettingsError
from litebert.model.config import AlbertConfig

__all__ = ["PRESETS", "preset"]


def _english(depth: int, width: int, heads: int, version: int, *, dropout: float) -> dict[str, Any]:
    prob = dropout if version == 1 else 0.0
    return {
        "vocab_size": 30_000,
        "num_hidden_layers": depth,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "hidden_act": "gelu" if version == 1 else "gelu_new",
        "hidden_dropout_prob": prob,
        "attention_probs_dropout_prob": prob,
    }


def _chinese(depth: int, width: int, heads: int, *, std: float = 0.02) -> dict[str, Any]:
    # WordPiece vocabulary of Chinese BERT: [CLS] 101, [SEP] 102.
    return {
        "vocab_size": 21_128,
        "num_hidden_layers": depth,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "hidden_act": "relu",
        "initializer_range": std,
        "bos_token_id": 101,
        "eos_token_id": 102,
    }


def _bert(depth: int, width: int) -> dict[str, Any]:
    # The paper's comparison: BERT with ALBERT's vocabulary of 30,000 (Table 1).
    return {
        "vocab_size": 30_000,
        "embedding_size": width,
        "num_hidden_layers": depth,
        "hidden_size": width,
        "num_attention_heads": width // 64,
        "intermediate_size": 4 * width,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "litebert": {"sharing": "none"},
    }


def _own(depth: int, width: int, embedding: int) -> dict[str, Any]:
    return {
        "vocab_size": 8_000,
        "embedding_size": embedding,
        "num_hidden_layers": depth,
        "hidden_size": width,
        "num_attention_heads": width // 32,
        "intermediate_size": 4 * width,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        # Projected even where E = H, so that transformers can read it.
        "litebert": {"project_embeddings": True},
    }


PRESETS: Final[dict[str, dict[str, Any]]] = {
    "albert-base-v1": _english(12, 768, 12, 1, dropout=0.1),
    "albert-large-v1": _english(24, 1024, 16, 1, dropout=0.1),
    "albert-xlarge-v1": _english(24, 2048, 16, 1, dropout=0.1),  # 16 heads of 128, not H / 64
    "albert-xxlarge-v1": _english(12, 4096, 64, 1, dropout=0.0),
    "albert-base-v2": _english(12, 768, 12, 2, dropout=0.0),
    "albert-large-v2": _english(24, 1024, 16, 2, dropout=0.0),
    "albert-xlarge-v2": _english(24, 2048, 16, 2, dropout=0.0),
    "albert-xxlarge-v2": _english(12, 4096, 64, 2, dropout=0.0),
    "albert-zh-tiny": _chinese(4, 312, 12),
    "albert-zh-small": _chinese(6, 384, 12),
    "albert-zh-base": _chinese(12, 768, 12),
    "albert-zh-large": _chinese(24, 1024, 16),
    "albert-zh-xlarge": _chinese(24, 2048, 16, std=0.014),
    "albert-zh-xxlarge": _chinese(12, 4096, 16, std=0.01),
    "bert-base": _bert(12, 768),
    "bert-large": _bert(24, 1024),
    "tiny": _own(2, 128, 128),
    "small": _own(6, 256, 128),
}
"""Preset name -> values of `AlbertConfig`."""


def preset(name: str, **changes: Any) -> AlbertConfig:
    """Return a named configuration, optionally with some values changed.

    Raises:
        SettingsError: no such preset; the message names the nearest or all.
    """
    if name not in PRESETS:
        near = get_close_matches(str(name)[:80], PRESETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(PRESETS)}"
        raise SettingsError(f"unknown preset {name!r:.80}; {hint}")
    config = AlbertConfig.from_dict(PRESETS[name])
    return config.replace(**changes) if changes else config
