"""Closed forms against real modules, published counts and the paper's table."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.checkpoint.skeleton import skeleton
from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.counting import (
    activation_bytes,
    count_parameters,
    flops_per_token,
    parameter_count,
    unique_bytes,
    unshared_parameter_count,
)
from litebert.model.head_kinds import HEADS
from litebert.model.packing import Packing
from litebert.model.presets import PRESETS, preset
from litebert.model.sharing import SHARING

ACTIVATION_RTOL = 0.1
"""An estimate: log-sums and short probabilities are left out."""

COUNTS = {  # with pooler, pretraining heads, without pooler, unshared in millions, file in MB
    "base": (11_683_584, 11_813_810, 11_092_992, 89.65, 46.7),
    "large": (17_683_968, 17_847_474, 16_634_368, 307.4, 70.7),
    "xlarge": (58_724_864, 59_021_490, 54_528_512, 1217.0, 234.9),
    "xxlarge": (222_595_584, 223_158_450, 205_814_272, 2437.8, 890.4),
}
PAPER_TABLE_4 = {  # E, pattern -> parameters in millions
    (128, "all"): 11.68, (128, "attention_only"): 63.65, (128, "ffn_only"): 37.69,
    (128, "none"): 89.65, (768, "all"): 31.11, (768, "attention_only"): 83.08,
    (768, "ffn_only"): 57.12, (768, "none"): 109.08,
}  # fmt: skip


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("size", COUNTS)
def test_published_counts_exactly(size, version):
    config = preset(f"albert-{size}-{version}")
    bare, pretraining, no_pooler, unshared, file_mb = COUNTS[size]
    assert parameter_count(config) == bare
    assert parameter_count(config, head="pretraining") == pretraining
    assert parameter_count(config, pooler=False) == no_pooler
    assert unshared_parameter_count(config) / 1e6 == pytest.approx(unshared, abs=0.05)
    assert unique_bytes(config) / 1e6 == pytest.approx(file_mb, abs=0.05)


def test_bert_and_the_sharing_ablation_of_the_paper():
    assert parameter_count(preset("bert-base")) == 109_081_344
    assert parameter_count(preset("bert-large")) == 334_607_360
    for (embedding, pattern), millions in PAPER_TABLE_4.items():
        config = preset("albert-base-v1", embedding_size=embedding, litebert={"sharing": pattern})
        assert parameter_count(config) / 1e6 == pytest.approx(millions, abs=0.005)


def test_counts_of_real_configurations(shared):
    folder = shared / "models" / "configs"
    expected = json.loads((folder / "param_counts.json").read_text())
    checked = 0
    for name, counts in expected.items():
        values = json.loads((folder / name).read_text())
        for key in ("directionality", "ln_type", *(k for k in values if k.startswith("pooler_"))):
            values.pop(key, None)
        try:
            config = AlbertConfig.from_dict(values)
        except SettingsError:
            continue
        checked += 1
        assert parameter_count(config) == counts["AlbertModel"], name
        assert parameter_count(config, head="mlm") == counts["AlbertForMaskedLM"], name
        assert parameter_count(config, head="pretraining") == counts["AlbertForPreTraining"], name
    assert checked >= 38


@st.composite
def configs(draw) -> AlbertConfig:
    layers = draw(st.integers(1, 5))
    sharing = draw(st.sampled_from(list(SHARING)))
    groups = 1 if sharing in ("all", "none") else draw(st.integers(1, layers))
    if sharing == "sandwich":
        layers = groups + 2 + draw(st.integers(0, 2))
    heads = draw(st.sampled_from([1, 2, 4]))
    return AlbertConfig.from_dict(
        {
            "vocab_size": draw(st.integers(1, 30)),
            "embedding_size": draw(st.sampled_from([3, 8])),
            "hidden_size": 8,
            "num_hidden_layers": layers,
            "num_hidden_groups": groups,
            "inner_group_num": draw(st.integers(1, 2)),
            "num_attention_heads": heads,
            "intermediate_size": draw(st.integers(1, 20)),
            "max_position_embeddings": draw(st.integers(1, 9)),
            "type_vocab_size": draw(st.integers(1, 3)),
            "litebert": {
                "sharing": sharing,
                "num_key_value_heads": draw(st.sampled_from([None, 1, heads])),
                "project_embeddings": draw(st.sampled_from([None, True])),
            },
        }
    )


@given(configs(), st.sampled_from([None, *HEADS]), st.booleans())
def test_closed_form_is_the_real_count(config, head, pooler):
    with skeleton():
        model = AlbertWithHead(config, head) if head else AlbertModel(config, add_pooler=pooler)
    real = sum(weight.numel() for weight in model.parameters())
    assert parameter_count(config, head=head, pooler=None if head else pooler) == real
    parts = count_parameters(config, head=head, pooler=None if head else pooler)
    assert parts.embeddings == sum(
        weight.numel() for name, weight in model.named_parameters() if "embeddings." in name
    )


def test_flops_by_hand():
    config = preset("bert-base")  # H 768, I 3072, 12 depths, no projection
    per_depth = 4 * 768 * 768 + 2 * 10 * 768 + 2 * 768 * 3072
    assert flops_per_token(config, 10) == 2 * 12 * per_depth
    projected = preset("albert-base-v2")  # E 128
    assert flops_per_token(projected, 10) - flops_per_token(config, 10) == 2 * 128 * 768
    shared_keys = projected.replace(litebert={"num_key_value_heads": 1})
    assert flops_per_token(shared_keys, 10) < flops_per_token(projected, 10)


@pytest.mark.parametrize("name", ["albert-base-v2", "small"])
def test_sharing_saves_no_operations(name):
    config = preset(name)
    unshared = config.replace(
        litebert={"sharing": "none"}, num_hidden_groups=config.num_hidden_layers
    )
    assert flops_per_token(config, 64) == flops_per_token(unshared, 64)


def test_wrong_numbers_are_refused():
    with pytest.raises(SettingsError, match="length is 0"):
        flops_per_token(preset("tiny"), 0)
    with pytest.raises(SettingsError, match="tokens is 0"):
        activation_bytes(preset("tiny"), 0, mode="train")
    with pytest.raises(SettingsError, match="unknown head 'ner'"):
        parameter_count(preset("tiny"), head="ner")


def saved_bytes(model: AlbertModel, lengths: list[int]) -> int:
    """Bytes of distinct activation storages that one forward pass keeps for the backward pass."""
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, int] = {}

    def hold(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and tensor.is_floating_point():
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    packing = Packing.from_lengths(lengths)
    ids = torch.ones(packing.num_tokens, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        output = model.forward_packed(ids, packing)
    assert output.last_hidden_state.requires_grad
    return sum(kept.values())


@pytest.mark.parametrize("checkpointing", [False, "ffn"])
def test_activation_estimate_is_what_autograd_keeps(checkpointing):
    config = preset(
        "tiny", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_hidden_layers=6
    )
    model = AlbertModel(config, add_pooler=False)
    model.set_checkpointing(checkpointing)
    lengths = [60, 61, 62]
    real = saved_bytes(model, lengths)
    # What the estimate leaves out: the joined projection weights and the probabilities.
    h, heads = config.hidden_size, config.num_attention_heads
    real -= 4 * (3 * h * h + 3 * h) + 4 * 6 * heads * sum(n * n for n in lengths)
    estimate = activation_bytes(config, sum(lengths), mode="train", checkpointing=checkpointing)
    if checkpointing == "ffn":
        estimate -= 4 * sum(lengths) * (2 * config.intermediate_size + 2 * h)  # only in backward
    assert estimate == pytest.approx(real, rel=ACTIVATION_RTOL)


@settings(max_examples=20)
@given(st.sampled_from(list(PRESETS)), st.integers(1, 512))
def test_estimates_are_ordered(name, tokens):
    config = preset(name)
    full = activation_bytes(config, tokens, mode="train")
    assert activation_bytes(config, tokens, mode="infer") < full
    assert activation_bytes(config, tokens, mode="train", checkpointing="ffn") < full
    assert activation_bytes(config, tokens, mode="train", checkpointing=1) < full
