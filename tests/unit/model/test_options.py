"""Options as data: what is refused, counted, stored, converted and exported."""

from __future__ import annotations

import json

import pytest
import torch
from tests.unit.model.option_cases import OPTIONS
from torch import nn

from litebert.checkpoint.folder import load_encoder, load_model, save_model
from litebert.checkpoint.keys import resolve
from litebert.checkpoint.skeleton import skeleton
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.counting import activation_bytes, count_parameters, flops_per_token
from litebert.model.options import LitebertOptions
from litebert.model.presets import preset
from litebert.model.resharing import add_depth_parts, reshare, set_depth, share, unshare
from litebert.model.simple_start import start_simple

IDS = torch.arange(14).view(2, 7)
MASK = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
ATOL = 1e-12
"""float64; sums in another order."""
CHANGING = [name for name in OPTIONS if name != "none"]


def disturb(model):
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    return model


def outputs(model):
    with torch.inference_mode():
        return model.eval()(IDS, MASK).last_hidden_state


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": "sinusoid"}, "Input should be 'absolute', 'rotary'"),
        ({"rotary_base": 500.0}, "rotary_base = 500.0 changes nothing without positions with"),
        ({"relative_distance": 64}, "relative_distance = 64 changes nothing without positions"),
        ({"relative_form": "v1"}, "relative_form = 'v1' changes nothing without"),
        ({"relative_terms": "c2p"}, "changes nothing without positions with 'disentangled'"),
        ({"lora_alpha": 8.0}, "lora_alpha = 8.0 changes nothing without lora_rank >= 1"),
        ({"lora_on": ["query"]}, "changes nothing without lora_rank >= 1"),
        ({"global_every": 2}, "global_every = 2 changes nothing without local_window"),
        ({"local_window": 8, "global_every": 1}, "global_every = 1 makes every depth global"),
        ({"positions": "disentangled", "relative_buckets": 5}, "must be even and below"),
        ({"positions": "disentangled", "relative_buckets": 128}, "below relative_distance = 128"),
        ({"lora_rank": 1, "lora_on": []}, r"lora_on = \[\] must name projections"),
        ({"lora_rank": 1, "lora_on": ["up", "up"]}, "each once"),
        ({"lora_rank": 1, "lora_on": ["gate"]}, "only ffn = 'geglu' has"),
        ({"lora_rank": 1, "lora_on": ["qkv"]}, "Input should be 'query'"),
        ({"local_window": 1}, "greater than or equal to 2"),
        ({"norm_position": "sandwich"}, "Input should be 'post' or 'pre'"),
    ],
)
def test_contradictions_are_refused(make_config, options, message):
    with pytest.raises(SettingsError, match=message):
        make_config(litebert=options)


def test_rotary_needs_even_heads(make_config):
    with pytest.raises(SettingsError, match="heads have 3"):
        make_config(hidden_size=12, litebert={"positions": "rotary"})


@pytest.mark.parametrize("name", CHANGING)
def test_a_model_with_options_never_pretends_to_be_albert(make_config, name):
    config = make_config(litebert=OPTIONS[name])
    assert config.model_type == "litebert"
    table = json.loads(json.dumps(config.to_dict()))
    assert table["model_type"] == "litebert"
    assert AlbertConfig.from_dict(table) == config
    assert config.replace(num_hidden_layers=4).litebert == config.litebert


def test_options_that_change_no_hidden_state_stay_albert(make_config):
    assert make_config(litebert={"pooling": "mean", "head": "mlm"}).model_type == "albert"
    assert LitebertOptions().is_albert


@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_closed_form_is_the_real_count(make_config, name, inner):
    config = make_config(litebert=OPTIONS[name], inner_group_num=inner)
    with skeleton():
        model = AlbertModel(config)
    counted = count_parameters(config)
    assert counted.total == sum(weight.numel() for weight in model.parameters())
    beside = ("encoder.relative.", "encoder.depths.", "encoder.adapters.", "encoder.final_norm.")
    assert counted.options == sum(
        weight.numel() for key, weight in model.named_parameters() if key.startswith(beside)
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_saved_and_loaded_bit_for_bit(make_config, name, tmp_path):
    model = disturb(AlbertWithHead(make_config(litebert=OPTIONS[name]), "sequence")).eval()
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.config == model.config
    assert again.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(a, model.state_dict()[n]) for n, a in again.state_dict().items())
    assert torch.equal(again(IDS, MASK).logits, model(IDS, MASK).logits)
    assert torch.equal(outputs(load_encoder(tmp_path / "m")), outputs(model))


def test_weights_of_other_options_are_refused(make_config, tmp_path):
    save_model(AlbertModel(make_config(litebert={"ffn": "geglu"})), tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    table = json.loads(path.read_text())
    table["litebert"] = {"format_version": 1, "norm_position": "pre"}
    path.write_text(json.dumps(table))
    with pytest.raises(CheckpointError, match=r"weights are missing: encoder.final_norm.weight"):
        load_encoder(tmp_path / "m")


@pytest.mark.parametrize("name", ["rotary", "disentangled", "local, rotary, multi-query"])
def test_without_a_table_of_positions_length_is_not_limited(make_config, name):
    ids = torch.randint(0, 50, (1, 20))
    free = AlbertModel(make_config(litebert=OPTIONS[name], max_position_embeddings=8))
    assert free.embeddings.position is None
    assert free(ids).last_hidden_state.shape == (1, 20, 16)
    tabled = AlbertModel(
        make_config(litebert={"positions": "absolute+rotary"}, max_position_embeddings=8)
    )
    with pytest.raises(DataError, match="the model has 8 positions"):
        tabled(ids)


def test_rotary_sees_distances_only(make_config):
    model = AlbertModel(make_config(litebert={"positions": "rotary"})).double().eval()
    places = torch.arange(7)[None]
    one, two = (model(IDS, position_ids=places + shift).last_hidden_state for shift in (0, 1000))
    assert torch.allclose(one, two, atol=ATOL * 100)  # angles of 1000 have fewer digits left
    assert not torch.allclose(one, model(IDS.flip(1)).last_hidden_state.flip(1), atol=0.01)


@pytest.mark.parametrize("name", OPTIONS)
def test_unshare_keeps_outputs_and_share_takes_it_back(make_config, name):
    config = make_config(litebert=OPTIONS[name])
    model = disturb(AlbertModel(config)).double()
    free = unshare(model)
    assert torch.allclose(outputs(free), outputs(model), atol=ATOL)  # one joined product or three
    back = reshare(free, config)
    assert torch.equal(outputs(back), outputs(model))
    assert all(torch.equal(a, model.state_dict()[n]) for n, a in back.state_dict().items())
    with pytest.raises(SettingsError, match="hold different weights"):
        share(disturb(free), "all")


@pytest.mark.parametrize("name", [name for name in OPTIONS if "with dis" not in name])
def test_depth_parts_of_more_and_fewer_depths(make_config, name):
    model = disturb(AlbertModel(make_config(litebert=OPTIONS[name])))
    deeper = set_depth(model, 5)
    shallow = set_depth(deeper, 2)
    old = shallow.state_dict()
    for key, value in deeper.state_dict().items():
        if key.endswith("depths.weight"):
            assert not value[3:].any()
            assert torch.equal(value[:3], model.state_dict()[key])
        elif "adapters.3" in key or "adapters.4" in key:
            assert value.any() == key.endswith((".a", ".down"))
            assert key not in old
        else:
            assert torch.equal(value, model.state_dict()[key])
    again = set_depth(model, 2)
    assert all(torch.equal(value, again.state_dict()[key]) for key, value in old.items())
    assert torch.equal(outputs(again), outputs(shallow))


@pytest.mark.parametrize("name", ["none", "geglu", "rotary", "all with rotary"])
@pytest.mark.parametrize("head", [None, "mlm"])
def test_depth_parts_can_be_added_to_a_finished_model(make_config, name, head):
    added = ("depth_embeddings", "lora_rank", "lora_on", "depth_norms", "adapter_size")
    options = {k: v for k, v in OPTIONS[name].items() if k not in added}
    config = make_config(litebert=options)
    model = disturb(AlbertModel(config) if head is None else AlbertWithHead(config, head)).eval()
    wider = add_depth_parts(
        model, lora_rank=2, lora_alpha=4, depth_embeddings=True, depth_norms=True, adapter_size=3
    )
    assert torch.equal(outputs(wider), outputs(model))
    assert wider.config.litebert.lora_scale == 2.0
    encoder = wider.encoder if head is None else wider.model.encoder
    assert "gate" not in dict(encoder.adapters[0].named_children())
    wider(IDS, MASK).last_hidden_state.sum().backward()
    assert encoder.depths.weight.grad.any()
    own = encoder.adapters[2]
    assert own.value.b.grad.any()
    assert own.attention_norm.weight.grad.any() and own.ffn_norm.bias.grad.any()
    assert own.attention_bottleneck.up.grad.any() and own.ffn_bottleneck.up.grad.any()
    with pytest.raises(SettingsError, match="has lora_rank 2 and adapter_size 3 already"):
        add_depth_parts(wider, lora_rank=1, adapter_size=1)
    one_by_one = add_depth_parts(add_depth_parts(model, depth_norms=True), lora_rank=1)
    assert torch.equal(outputs(one_by_one), outputs(model))
    chosen = add_depth_parts(model, lora_rank=1, lora_on=["value"])
    assert torch.equal(outputs(chosen), outputs(model))


def test_nothing_to_add(make_config):
    model = AlbertModel(make_config())
    with pytest.raises(SettingsError, match="nothing to add"):
        add_depth_parts(model, lora_alpha=2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth_embeddings": True}, "leave out 1 of 3 depth embeddings"),
        ({"lora_rank": 1}, "leave out the low-rank updates of 1 depths"),
        ({"depth_norms": True}, "leave out the LayerNorm changes of 1 depths"),
        ({"adapter_size": 1}, "leave out the bottlenecks of 1 depths"),
    ],
)
def test_parts_of_idle_depths_would_not_train(make_config, options, message):
    model = AlbertModel(make_config(litebert=options))
    with pytest.raises(SettingsError, match=message):
        model.set_active_depth(2)


@pytest.mark.parametrize("name", ["rotary", "disentangled", "pre-norm", "geglu", "local"])
def test_active_depth_is_the_shallower_model(make_config, name):
    model = disturb(AlbertModel(make_config(litebert=OPTIONS[name]))).eval()
    shallow = set_depth(model, 2)
    model.set_active_depth(2)
    assert torch.equal(outputs(model), outputs(shallow))


def test_flops_by_hand():
    base = preset("bert-base")  # H 768, I 3072, 12 depths

    def more(**options):
        return flops_per_token(base.replace(litebert=options), 100) - flops_per_token(base, 100)

    assert more(ffn="geglu") == 2 * 12 * 768 * 3072
    assert more(lora_rank=4, lora_on=("query", "up")) == 2 * 12 * 4 * (2 * 768 + 768 + 3072)
    assert more(adapter_size=8, depth_norms=True) == 2 * 12 * 2 * 2 * 8 * 768
    assert more(positions="disentangled", relative_distance=9) == 2 * 12 * 2 * 18 * 768
    # 8 of 12 depths are local; blocks of 10 look at 30 keys
    assert more(local_window=20) == -2 * 8 * 2 * 70 * 768
    assert more(local_window=200) == 0
    assert more(norm_position="pre", depth_embeddings=True, positions="rotary") == 0


def test_gating_holds_more_activations():
    plain, gated = preset("tiny"), preset("tiny", litebert={"ffn": "geglu"})
    assert activation_bytes(gated, 64, mode="train") > activation_bytes(plain, 64, mode="train")
    assert activation_bytes(gated, 64, mode="infer") > activation_bytes(plain, 64, mode="infer")


@pytest.mark.parametrize("name", OPTIONS)
def test_simple_start_with_options(make_config, name):
    model = AlbertWithHead(make_config(litebert=OPTIONS[name]), "sequence")
    start_simple(model)
    assert outputs(model).isfinite().all()


class Plain(nn.Module):
    """What an exporter sees: padded tensors in, padded tensors out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        hidden = self.model.embeddings(ids, None, torch.arange(ids.shape[1]))
        return self.model.encoder(hidden, mask[:, None, None, :].bool())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["disentangled v1", "local everywhere", "all with rotary", "all with disentangled"]
)
def test_torch_export_with_open_sizes(make_config, name):
    plain = Plain(AlbertModel(make_config(litebert=OPTIONS[name])).eval())
    sizes = {0: torch.export.Dim("B", min=1, max=64), 1: torch.export.Dim("S", min=2, max=128)}
    program = torch.export.export(
        plain, (IDS, MASK), dynamic_shapes={"ids": sizes, "mask": sizes}, strict=False
    ).module()
    other = torch.randint(0, 50, (3, 19)), torch.ones(3, 19, dtype=torch.long)
    for inputs in ((IDS, MASK), other):
        assert torch.equal(program(*inputs), plain(*inputs))


@pytest.mark.parametrize("name", OPTIONS)
def test_half_precision_and_autocast(make_config, name):
    config = make_config(litebert=OPTIONS[name], attention_probs_dropout_prob=0.1)
    model = AlbertModel(config).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(IDS, MASK).last_hidden_state
    assert out.dtype == torch.float32
    out.square().sum().backward()
    assert all(w.grad is None or w.grad.isfinite().all() for w in model.parameters())
    low = AlbertModel(config).to(torch.bfloat16).eval()(IDS, MASK).last_hidden_state
    assert low.dtype == torch.bfloat16
    assert low.isfinite().all()


@pytest.mark.parametrize("name", OPTIONS)
def test_empty_rows_and_empty_batches(make_config, name):
    model = AlbertModel(make_config(litebert=OPTIONS[name])).eval()
    out = model(IDS, torch.tensor([[0] * 7, [1] * 7]), output_attentions=True)
    assert not out.last_hidden_state[0].any()
    assert out.last_hidden_state.isfinite().all()
    assert not model(IDS, torch.zeros(2, 7)).last_hidden_state.any()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("encoder.adapters.0.gate.a", True),
        ("model.encoder.adapters.11.query.b", True),
        ("encoder.adapters.0.qkv.a", False),
        ("encoder.adapters.0.query.c", False),
        ("encoder.adapters.00.query.a", False),
        ("encoder.adapters.0.ffn_norm.bias", True),
        ("encoder.adapters.0.ffn_norm.a", False),
        ("encoder.adapters.3.attention_bottleneck.up_bias", True),
        ("encoder.adapters.3.embeddings_bottleneck.up", False),
        ("encoder.relative.norm.bias", True),
        ("encoder.relative.table.bias", False),
        ("encoder.attentions.0.relative_key.bias", False),
        ("encoder.depths.weight.more", False),
    ],
)
def test_names_of_weights_of_options(name, known):
    found = resolve([name], inner=1, classifier=None, own_layout=True)
    assert (found.unknown == []) is known
    assert resolve([name], inner=1, classifier=None, own_layout=False).unknown == [name]
