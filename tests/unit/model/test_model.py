"""The model as a whole: what must not change its outputs, and what must."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.layers import LayerNorm
from litebert.model.packing import Packing
from litebert.model.resharing import unshare

ATOL = 2e-6
"""float32; batches of another shape sum in another order."""
GRAD_ATOL = 1e-5
"""Sums of such terms over depths."""


@pytest.fixture(scope="module")
def model(make_config):
    torch.manual_seed(0)
    return AlbertModel(make_config(num_hidden_groups=2, inner_group_num=2)).eval()


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=6),
    st.integers(0, 5),
    st.integers(0, 2**31),
)
def test_padding_and_batch_composition_change_nothing(model, lengths, extra, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(0, 50, (length,), generator=generator) for length in lengths]
    width = max(lengths) + extra
    ids, mask = torch.zeros(2, len(rows), width, dtype=torch.long)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
    with torch.inference_mode():
        batch = model(ids, mask)
        packed = model.forward_packed(torch.cat(rows), Packing.from_lengths(lengths))
        for row, tokens in enumerate(rows):
            alone = model(tokens[None])
            here = batch.last_hidden_state[row, : len(tokens)]
            assert torch.allclose(here, alone.last_hidden_state[0], atol=ATOL)
            assert torch.allclose(batch.pooler_output[row], alone.pooler_output[0], atol=ATOL)
    assert torch.allclose(packed.last_hidden_state, batch.last_hidden_state[mask.bool()], atol=ATOL)
    assert not batch.last_hidden_state[mask == 0].any()


def test_left_padding_with_positions_moved_along_changes_nothing(model):
    ids = torch.randint(0, 50, (1, 6))
    shifted = torch.nn.functional.pad(ids, (4, 0))
    mask = torch.tensor([[0] * 4 + [1] * 6])
    positions = (torch.arange(10) - 4).clamp(0)[None]
    a = model(ids)
    b = model(shifted, mask, position_ids=positions)
    assert torch.allclose(b.last_hidden_state[:, 4:], a.last_hidden_state, atol=ATOL)
    assert torch.allclose(b.pooler_output, a.pooler_output, atol=ATOL)


def test_encoder_on_plain_padded_tensors_for_exporters(model):
    ids = torch.randint(0, 50, (2, 6))
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    expected = model(ids, mask).last_hidden_state
    hidden = model.embeddings(ids, None, torch.arange(6))
    found = model.encoder(hidden, mask[:, None, None, :].bool())
    assert torch.allclose(found * mask[..., None], expected, atol=ATOL)


def test_rows_of_padding_only_are_finite(model):
    mask = torch.tensor([[0, 0, 0], [1, 1, 0]])
    out = model(torch.randint(0, 50, (2, 3)), mask, output_attentions=True)
    assert not out.last_hidden_state[0].any()
    assert out.pooler_output.isfinite().all()
    assert out.attentions[0].isfinite().all()
    out.pooler_output.sum().backward()
    assert all(
        weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None
    )
    nothing = model(torch.randint(0, 50, (2, 3)), torch.zeros(2, 3))
    assert not nothing.last_hidden_state.any()
    model.zero_grad()


def test_hidden_states_and_attentions(model):
    ids, mask = torch.randint(0, 50, (2, 5)), torch.tensor([[1] * 5, [0, 1, 1, 0, 1]])
    out = model(ids, mask, output_hidden_states=True, output_attentions=True)
    assert len(out.hidden_states) == 3 + 1
    assert torch.equal(out.hidden_states[-1], out.last_hidden_state)
    assert len(out.attentions) == 3 * 2  # one for each step
    assert out.attentions[0].shape == (2, 4, 5, 5)
    assert torch.allclose(out.attentions[0].sum(-1), mask[:, None, :].expand(2, 4, 5).float())
    plain = model(ids, mask)
    assert plain.hidden_states is None
    assert plain.attentions is None
    assert torch.equal(plain.last_hidden_state, out.last_hidden_state)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_ids": [3, 50]}, r"input_ids has values from 3 to 50, allowed are 0 to 49"),
        ({"input_ids": [-1, 3]}, r"input_ids has values from -1 to 3"),
        ({"token_type_ids": [0, 2]}, r"token_type_ids has values from 0 to 2"),
        ({"position_ids": [0, 128]}, r"position_ids has values from 0 to 128"),
        ({"token_type_ids": [0, 1, 1]}, "token_type_ids has shape"),
        ({"position_ids": [0, 1, 1]}, "position_ids has shape"),
        ({"input_ids": [1] * 129}, "a sequence has 129 tokens, the model has 128"),
    ],
)
def test_wrong_inputs_are_named(model, arguments, message, packed):
    inputs = {"input_ids": [1, 2], **arguments}
    tensors = {name: torch.tensor(value) for name, value in inputs.items()}
    with pytest.raises(DataError, match=message):
        if packed:
            packing = Packing.from_lengths([len(tensors["input_ids"])])
            model.forward_packed(packing=packing, **tensors)
        else:
            model(**{name: value[None] for name, value in tensors.items()})


def test_wrong_shapes_are_named(model):
    ids = torch.ones(2, 3, dtype=torch.long)
    with pytest.raises(DataError, match=r"input_ids must be \[B, S\]"):
        model(ids[0])
    with pytest.raises(DataError, match="attention_mask has shape"):
        model(ids, torch.ones(2, 4))
    with pytest.raises(DataError, match="the packing has 5 tokens"):
        model.forward_packed(ids.view(-1), Packing.from_lengths([5]))


@pytest.mark.parametrize("recompute", [True, "ffn", 2, 5])
def test_checkpointing_changes_neither_outputs_nor_gradients(make_config, recompute):
    config = make_config(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    model = AlbertModel(config).train()
    ids, packing = torch.randint(0, 50, (9,)), Packing.from_lengths([4, 5])
    results = []
    for choice in (False, recompute):
        model.set_checkpointing(choice)
        model.zero_grad()
        torch.manual_seed(7)
        out = model.forward_packed(ids, packing)
        out.pooler_output.square().sum().backward()
        results.append((out.pooler_output, *(w.grad.clone() for w in model.parameters())))
    for one, two in zip(*results, strict=True):
        assert torch.allclose(one, two, atol=GRAD_ATOL)


@pytest.mark.parametrize("wrong", [0, -1, "all", 1.5, None])
def test_wrong_checkpointing(make_config, wrong):
    with pytest.raises(SettingsError, match="checkpointing is"):
        AlbertWithHead(make_config()).set_checkpointing(wrong)


def test_gradient_of_a_shared_block_is_the_sum_over_its_copies(make_config):
    shared = AlbertModel(make_config()).eval()
    copies = unshare(shared)
    ids = torch.randint(0, 50, (2, 7))
    for model in (shared, copies):
        model(ids).pooler_output.pow(2).sum().backward()
    for name, weight in shared.named_parameters():
        if ".0." not in name:
            continue
        total = sum(copies.get_parameter(name.replace(".0.", f".{i}.")).grad for i in range(3))
        assert torch.allclose(weight.grad, total, atol=GRAD_ATOL), name


@pytest.mark.parametrize("kv", [1, 2])
def test_shared_key_value_heads_equal_full_heads_with_repeated_weights(make_config, kv):
    narrow = AlbertModel(make_config(litebert={"num_key_value_heads": kv})).eval()
    full = AlbertModel(make_config()).eval()
    state = narrow.state_dict()
    for name, value in list(state.items()):
        if ".key." in name or ".value." in name:
            heads = value.unflatten(0, (kv, -1)).repeat_interleave(4 // kv, dim=0)
            state[name] = heads.flatten(0, 1)
    full.load_state_dict(state)
    ids, mask = torch.randint(0, 50, (2, 6)), torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    a, b = narrow(ids, mask), full(ids, mask)
    assert torch.allclose(a.last_hidden_state, b.last_hidden_state, atol=ATOL)


def test_no_projection_where_sizes_are_equal(make_config):
    config = make_config(embedding_size=16)
    model = AlbertModel(config)
    assert model.embeddings.project is None
    assert model(torch.ones(1, 3, dtype=torch.long)).last_hidden_state.shape == (1, 3, 16)
    assert AlbertModel(make_config()).embeddings.project is not None


def test_dropout_stands_where_the_official_code_has_it(make_config):
    ids = torch.randint(0, 50, (1, 8))
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        model = AlbertModel(make_config(**{name: 0.5}))
        assert not torch.equal(model(ids).last_hidden_state, model(ids).last_hidden_state)
        model.eval()
        assert torch.equal(model(ids).last_hidden_state, model(ids).last_hidden_state)
    ffn = AlbertModel(make_config(hidden_dropout_prob=0.5)).encoder.ffns[0]
    hidden = torch.randn(4, 16)
    assert not torch.equal(ffn(hidden), ffn(hidden))  # transformers has none here


def test_dropout_is_applied_at_each_of_its_places_and_nowhere_else(make_config, monkeypatch):
    """Embeddings after the norm, both sub-layers before the residual, the classifier."""
    places: list[tuple[tuple[int, ...], float]] = []

    def record(values: torch.Tensor, prob: float) -> torch.Tensor:
        places.append((tuple(values.shape), prob))
        return values

    monkeypatch.setattr(torch.nn.functional, "dropout", record)
    probs = {"hidden_dropout_prob": 0.2, "classifier_dropout_prob": 0.4}
    model = AlbertWithHead(make_config(**probs), "sequence")
    model(torch.ones(1, 5, dtype=torch.long))
    sub_layers = [((5, 16), 0.2)] * (2 * 3)
    assert places == [((5, 8), 0.2), *sub_layers, ((1, 16), 0.4)]
    places.clear()
    model.eval()(torch.ones(1, 5, dtype=torch.long))
    for head in ("mlm", "pretraining", "span"):  # none before their heads, as officially
        AlbertWithHead(make_config(classifier_dropout_prob=0.4), head)(torch.ones(1, 5).long())
    assert places == []


def test_initial_weights_are_those_of_the_official_code(make_config):
    std = 0.02
    model = AlbertModel(make_config(hidden_size=256, embedding_size=128, initializer_range=std))
    for name, weight in model.named_parameters():
        if name.endswith("norm.weight"):
            assert (weight == 1).all()
        elif name.endswith("bias"):
            assert not weight.any()
        else:
            assert weight.abs().max() <= 2 * std
            if weight.numel() > 4000:  # a normal cut at 2 sigma keeps 0.88 of its deviation
                assert math.isclose(float(weight.detach().std()), 0.8796 * std, rel_tol=0.05), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_layer_norm_is_computed_in_float32(dtype):
    norm = LayerNorm(64, eps=1e-12)
    values = torch.randn(5, 64) * 300  # its square overflows float16
    exact = torch.nn.functional.layer_norm(values.to(dtype).float(), (64,))
    low = LayerNorm(64, eps=1e-12).to(dtype)
    assert low(values.to(dtype)).dtype == dtype
    assert torch.equal(low(values.to(dtype)), exact.to(dtype))
    assert torch.equal(norm(values.to(dtype)), exact)
    with torch.autocast("cpu", dtype=dtype):
        assert norm(values.to(dtype)).dtype == torch.float32
    assert not norm(torch.zeros(1, 64, dtype=dtype)).isnan().any()  # eps 1e-12 is 0 in float16
    assert norm.double()(values.double()).dtype == torch.float64


def test_training_under_autocast(make_config):
    model = AlbertWithHead(make_config(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1))
    ids, mask = (
        torch.randint(0, 50, (3, 6)),
        torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 5 + [0]]),
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(ids, mask, labels=torch.tensor([0, 1, 1]))
    assert out.loss.dtype == torch.float32
    out.loss.backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_whole_model_in_bfloat16(make_config):
    model = AlbertModel(make_config()).to(torch.bfloat16).eval()
    out = model(torch.randint(0, 50, (2, 6)), torch.tensor([[1] * 6, [1] * 4 + [0] * 2]))
    assert out.last_hidden_state.dtype == torch.bfloat16
    assert out.last_hidden_state.isfinite().all()
