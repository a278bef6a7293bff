"""Hidden states, pooled output and gradients against transformers, over the whole grid."""

from __future__ import annotations

import pytest
import torch

from litebert.model.backbone import AlbertModel
from litebert.model.packing import Packing
from litebert.model.sharing import make_plan, transformers_groups

pytestmark = pytest.mark.parity

OUTPUT_ATOL = 1e-5
"""float32, values of order 1 after LayerNorm; the order of summation differs."""
GRADIENT_ATOL = 1e-4
"""Gradients are summed over depths and tokens, and here of order 1 to 10."""
KOKORO_ATOL = 5e-5
"""Trained weights with activations up to 11; the stored reference was computed in float64."""

GRID = [(groups, inner) for groups in (1, 2, 4) for inner in (1, 2)]


def run_padded_and_packed(model, ids, mask, types, packed: bool):
    """Hidden states of real tokens [T, H], pooled output, hidden states of each depth."""
    if packed:
        packing = Packing.from_lengths(mask.sum(1).tolist())
        real = mask.bool()
        out = model.forward_packed(ids[real], packing, types[real], output_hidden_states=True)
        return out.last_hidden_state, out.pooler_output, out.hidden_states
    out = model(ids, mask, types, output_hidden_states=True)
    real = mask.bool()
    states = tuple(state[real] for state in out.hidden_states)
    return out.last_hidden_state[real], out.pooler_output, states


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("masked", [False, True], ids=["unmasked", "masked"])
@pytest.mark.parametrize(("groups", "inner"), GRID)
def test_hidden_states_and_gradients(
    reference, tiny_config, ragged_batch, assert_gradients_equal, groups, inner, masked, packed
):
    config = tiny_config(groups, inner)
    theirs = reference.model(config)
    ours = reference.ours(theirs, config)
    ids, mask, types = ragged_batch([9, 4, 7, 1] if masked else [8, 8, 8], vocab=61)
    b = theirs(ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True)
    a_last, a_pooled, a_states = run_padded_and_packed(ours, ids, mask, types, packed)
    real = mask.bool()
    b_last = b.last_hidden_state[real]
    assert (a_last - b_last).abs().max() <= OUTPUT_ATOL
    assert (a_pooled - b.pooler_output).abs().max() <= OUTPUT_ATOL
    assert len(a_states) == config.num_hidden_layers + 1
    for mine, other in zip(a_states, b.hidden_states[::inner], strict=True):
        assert (mine - other[real]).abs().max() <= OUTPUT_ATOL

    weight = torch.randn(b_last.shape, generator=torch.Generator().manual_seed(1))
    (a_last * weight).sum().add(a_pooled.square().sum()).backward()
    (b_last * weight).sum().add(b.pooler_output.square().sum()).backward()
    assert_gradients_equal(ours, reference.gradients(theirs, config), GRADIENT_ATOL)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_every_activation(reference, tiny_config, ragged_batch, activation):
    config = tiny_config(hidden_act=activation)
    theirs = reference.model(config)
    ours = reference.ours(theirs, config)
    ids, mask, types = ragged_batch([9, 4], vocab=61)
    a = ours(ids, mask, types).last_hidden_state
    b = theirs(ids, attention_mask=mask, token_type_ids=types).last_hidden_state
    assert (a - b)[mask.bool()].abs().max() <= OUTPUT_ATOL


def test_defaults_positions_and_attentions(reference, tiny_config, ragged_batch):
    config = tiny_config(2)
    theirs = reference.model(config)
    ours = reference.ours(theirs, config)
    ids, _, _ = ragged_batch([9, 9], vocab=61)
    a, b = ours(ids), theirs(ids)
    assert (a.last_hidden_state - b.last_hidden_state).abs().max() <= OUTPUT_ATOL
    positions = torch.arange(9).flip(0)[None] + 3
    a = ours(ids, position_ids=positions, output_attentions=True)
    b = theirs(ids, position_ids=positions, output_attentions=True)
    assert (a.last_hidden_state - b.last_hidden_state).abs().max() <= OUTPUT_ATOL
    assert len(a.attentions) == len(b.attentions) == config.num_hidden_layers
    for mine, other in zip(a.attentions, b.attentions, strict=True):
        assert (mine - other).abs().max() <= OUTPUT_ATOL


def test_left_padding_and_holes(reference, tiny_config, ragged_batch):
    config = tiny_config(1, 2)
    theirs = reference.model(config)
    ours = reference.ours(theirs, config)
    ids, _, types = ragged_batch([10, 10, 10], vocab=61)
    mask = torch.ones(3, 10, dtype=torch.long)
    mask[0, :4] = 0
    mask[1, [0, 3, 9]] = 0
    a = ours(ids, mask, types, output_attentions=True)
    b = theirs(ids, attention_mask=mask, token_type_ids=types, output_attentions=True)
    real = mask.bool()
    assert (a.last_hidden_state - b.last_hidden_state)[real].abs().max() <= OUTPUT_ATOL
    assert not a.last_hidden_state[~real].any()
    for mine, other in zip(a.attentions, b.attentions, strict=True):
        rows = real[:, None, :, None].expand_as(mine)
        assert (mine - other)[rows].abs().max() <= OUTPUT_ATOL


def test_trained_model(reference, shared):
    import json

    from safetensors.torch import load_file

    from litebert.model.config import AlbertConfig

    folder = shared / "models" / "kokoro-albert"
    config = AlbertConfig.from_dict(json.loads((folder / "config.json").read_text()))
    model = AlbertModel(config, add_pooler=False).eval()
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({reference.name(key, 1, None): value for key, value in weights.items()})
    expected = load_file(folder / "reference.safetensors")
    mask = expected["attention_mask"].bool()
    with torch.inference_mode():
        out = model(expected["input_ids"], expected["attention_mask"], output_hidden_states=True)
    assert len(out.hidden_states) == 13
    for depth in range(13):
        worst = (out.hidden_states[depth] - expected["hidden_states"][depth])[mask].abs().max()
        assert worst <= KOKORO_ATOL, f"depth {depth}: {worst:.1e}"
    assert (out.last_hidden_state - expected["last_hidden_state"])[mask].abs().max() <= KOKORO_ATOL


def test_a_plan_counts_as_published_only_where_transformers_runs_it():
    differing = 0
    for layers in range(1, 49):
        for groups in range(1, layers + 1):
            plan = make_plan("groups", layers, groups, 1)
            theirs = [int(i / (layers / groups)) for i in range(layers)]
            same = [step.attention for step in plan] == theirs
            differing += not same
            assert (transformers_groups(plan, layers) == groups) == same
    assert differing > 0
