"""Attention whose heads together are narrower (or wider) than the model."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel
from litebert.model.config import AlbertConfig
from litebert.model.counting import activation_bytes, flops_per_token, parameter_count
from litebert.model.packing import Packing

OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_key_value_heads": 1},
    {"lora_rank": 2, "lora_on": ["query", "key", "value", "output"]},
    {"positions": "rotary"},
    {"positions": "disentangled", "relative_distance": 4},
    {"positions": "disentangled", "relative_distance": 4, "relative_form": "v1"},
    {"local_window": 4},
]


def narrow(**options: Any) -> AlbertConfig:
    return AlbertConfig(
        vocab_size=40,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=16,
        litebert={"head_size": 4} | options,  # pyright: ignore[reportArgumentType]
    )


@pytest.mark.parametrize("options", OPTIONS, ids=lambda value: "-".join(map(str, value)) or "plain")
def test_counts_follow_and_padding_changes_nothing(options: dict[str, Any]) -> None:
    config = narrow(**options)
    assert config.attention_size == 12 and config.model_type == "litebert"
    torch.manual_seed(0)
    model = AlbertModel(config).eval()
    assert sum(p.numel() for p in model.parameters()) == parameter_count(config)
    ids = torch.randint(0, 40, (2, 7))
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    padded = model(ids, mask).last_hidden_state
    packed = model.forward_packed(ids[1, :4], Packing.from_lengths([4])).last_hidden_state
    torch.testing.assert_close(padded[1, :4], packed, atol=1e-5, rtol=1e-5)
    padded.sum().backward()
    assert all(p.grad is not None for n, p in model.named_parameters() if "pooler" not in n)


def test_fewer_heads_cost_less_and_the_folder_says_so() -> None:
    config = narrow()
    wide = config.replace(num_attention_heads=4)
    assert wide.attention_size == wide.hidden_size
    for cost in (parameter_count, lambda c: flops_per_token(c, 8)):
        assert cost(config) < cost(wide)
    assert activation_bytes(config, 8, mode="train") < activation_bytes(wide, 8, mode="train")
    assert AlbertConfig.from_dict(config.to_dict()) == config
    with pytest.raises(SettingsError, match="no multiple of num_attention_heads"):
        config.replace(litebert={"head_size": None})
    with pytest.raises(SettingsError, match="an odd number"):
        config.replace(litebert={"head_size": 3, "positions": "rotary"})
    with pytest.raises(SettingsError):
        config.replace(litebert={"head_size": 0})
