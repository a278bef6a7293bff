"""Options alone and together, by a short name; what every test of options goes through."""

from __future__ import annotations

from typing import Any

OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "rotary": {"positions": "rotary", "rotary_base": 100.0},
    "absolute+rotary": {"positions": "absolute+rotary"},
    "disentangled": {"positions": "disentangled", "relative_distance": 4},
    "disentangled v1": {
        "positions": "absolute+disentangled",
        "relative_distance": 5,
        "relative_form": "v1",
    },
    "c2p in buckets": {
        "positions": "disentangled",
        "relative_terms": "c2p",
        "relative_distance": 14,
        "relative_buckets": 4,
    },
    "p2c v1": {
        "positions": "disentangled",
        "relative_terms": "p2c",
        "relative_form": "v1",
        "relative_distance": 3,
    },
    "geglu": {"ffn": "geglu"},
    "pre-norm": {"norm_position": "pre"},
    "depth": {"depth_embeddings": True},
    "lora": {"lora_rank": 2, "lora_alpha": 3.0},
    "lora on some": {"lora_rank": 1, "lora_on": ("value", "down")},
    "depth norms": {"depth_norms": True},
    "bottlenecks": {"adapter_size": 3},
    "local": {"local_window": 4, "global_every": 2},
    "local everywhere": {"local_window": 3, "global_every": 0},
    "local, rotary, multi-query": {
        "positions": "rotary",
        "local_window": 4,
        "num_key_value_heads": 1,
    },
    "all with rotary": {
        "positions": "absolute+rotary",
        "ffn": "geglu",
        "norm_position": "pre",
        "depth_embeddings": True,
        "lora_rank": 2,
        "lora_on": ("query", "key", "value", "output", "gate", "up", "down"),
        "depth_norms": True,
        "adapter_size": 2,
        "local_window": 6,
        "global_every": 2,
        "num_key_value_heads": 2,
    },
    "all with disentangled": {
        "positions": "disentangled",
        "relative_distance": 9,
        "relative_buckets": 6,
        "ffn": "geglu",
        "norm_position": "pre",
        "depth_embeddings": True,
        "lora_rank": 2,
        "local_window": 4,
        "global_every": 2,
        "num_key_value_heads": 2,
        "sharing": "attention_only",
    },
}
