from __future__ import annotations

from typing import Any

import pytest
import torch

from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.freeze import (
    PARTS,
    freeze_weights,
    names_of_part,
    present_parts,
    trained_names,
)

EVERYTHING = {
    "sharing": "none",
    "lora_rank": 1,
    "adapter_size": 2,
    "depth_norms": True,
    "depth_embeddings": True,
    "norm_position": "pre",
    "ffn": "geglu",
    "positions": "disentangled",
    "relative_distance": 3,
    "relative_form": "v1",
    "lora_on": ("query", "gate", "down"),
}


def build(**options: Any) -> AlbertWithHead:
    values = {
        "vocab_size": 20,
        "embedding_size": 4,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 8,
        "litebert": options,
    }
    return AlbertWithHead(AlbertConfig.from_dict(values))


def names(**options: Any) -> list[str]:
    return [name for name, _ in build(**options).named_parameters()]


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
def test_parts_divide_the_weights(options: dict[str, Any]) -> None:
    all_names = names(**options)
    present = present_parts(all_names)
    shared = {"attention", "ffn", "norms", "relative"} & set(present)
    seen: list[str] = []
    for part in present:
        if part not in shared:
            seen += names_of_part(part, all_names)
    assert sorted(seen) == sorted(all_names)
    block = names_of_part("block", all_names)
    inner = [names_of_part(part, all_names) for part in shared]
    assert set().union(*inner) == block and sum(map(len, inner)) == len(block)
    if options:
        assert present == list(PARTS)


def test_what_parts_mean() -> None:
    all_names = names()
    assert names_of_part("norms", all_names) == {
        f"model.encoder.{kind}.0.norm.{leaf}"
        for kind in ("attentions", "ffns")
        for leaf in ("weight", "bias")
    }
    assert names_of_part("head", all_names) == {
        "heads.sequence.classifier.weight", "heads.sequence.classifier.bias"
    }  # fmt: skip
    assert "model.embeddings.norm.weight" in names_of_part("embeddings", all_names)
    assert names_of_part("encoder.ffns.0.up.*", all_names) == {
        "model.encoder.ffns.0.up.weight", "model.encoder.ffns.0.up.bias"
    }  # fmt: skip
    assert names_of_part("pooler.bias", all_names) == {"model.pooler.bias"}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("embedings", "did you mean 'embeddings'"),
        ("zzz", "parts are: embeddings, block"),
        ("lora", "no weights in 'lora'; it has: embeddings, block, attention, ffn, norms, pooler"),
        ("encoder.ffns.0.upp.*", r"no weight has a name like .* did you mean 'encoder.ffns.0.up."),
        ("q?z", "parts are"),
    ],
)
def test_unknown_parts_are_refused(part: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        names_of_part(part, names())


def test_freeze_and_train() -> None:
    all_names = names()
    assert trained_names(all_names, only=None) == set(all_names)
    found = trained_names(all_names, only=None, freeze=["block"], train=["encoder.ffns.0.down.*"])
    assert {name for name in found if ".encoder." in name} == {
        "model.encoder.ffns.0.down.weight", "model.encoder.ffns.0.down.bias"
    }  # fmt: skip
    assert trained_names(all_names, only=["head"], train=["pooler"]) == (
        names_of_part("head", all_names) | names_of_part("pooler", all_names)
    )
    with pytest.raises(SettingsError, match="ffn is both frozen and trained"):
        trained_names(all_names, only=None, freeze=["ffn"], train=["ffn"])
    with pytest.raises(SettingsError, match="nothing is left to train"):
        trained_names(all_names, only=["head"], freeze=["head"])


def test_frozen_weights_get_no_gradient_and_others_the_same_as_ever() -> None:
    torch.manual_seed(0)
    model = build().double()
    ids = torch.arange(10).view(2, 5)

    def gradients() -> dict[str, torch.Tensor]:
        model.zero_grad(set_to_none=True)
        model(ids, labels=torch.tensor([0, 1])).loss.backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    model.eval()
    whole = gradients()
    for part in ("embeddings", "attention", "ffn", "norms", "encoder.ffns.0.down.weight"):
        chosen = trained_names(list(whole), only=None, freeze=[part])
        freeze_weights(model, chosen)
        found = gradients()
        assert found.keys() == chosen
        for name, grad in found.items():
            torch.testing.assert_close(grad, whole[name], rtol=1e-12, atol=1e-14)
