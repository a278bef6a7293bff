"""Every option against its formula in NumPy: outputs, probabilities, gradients, packed and padded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.unit.model.numpy_encoder import NumpyEncoder
from tests.unit.model.option_cases import OPTIONS

from litebert.model import local
from litebert.model.albert import AlbertModel
from litebert.model.packing import Packing

ATOL = 1e-11
"""float64; only the order of summation differs."""
STEP = 1e-6
DIRECTION_RTOL = 1e-5
"""Central differences in float64: truncation grows with the square of the step, rounding with 1 / step."""
LENGTHS = [9, 3, 0, 13, 1]


@pytest.fixture(autouse=True)
def _narrow_blocks(monkeypatch):
    monkeypatch.setattr(local, "LEAST_BLOCK", 3)  # so that short sequences span several


def build(make_config, name, **changes):
    config = make_config(litebert=OPTIONS[name], **changes)
    model = AlbertModel(config, add_pooler=False).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    return model


def weights_of(model):
    return {name: value.numpy().copy() for name, value in model.state_dict().items()}


def ragged(lengths=LENGTHS):
    total = sum(lengths)
    ids, types = torch.randint(0, 50, (total,)), torch.randint(0, 2, (total,))
    return ids, types, Packing.from_lengths(lengths)


def by_numpy(config, weights, ids, types, positions, lengths):
    encoder, start = NumpyEncoder(config, weights), 0
    rows, shares = [], []
    for length in lengths:
        part = slice(start, start + length)
        row, share = encoder.run(*(x[part].numpy() for x in (ids, types, positions)))
        rows.append(row)
        shares.append(share)
        start += length
    return np.concatenate(rows), shares


@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_packed_outputs_and_probabilities(make_config, name, inner):
    model = build(make_config, name, inner_group_num=inner, hidden_act="gelu")
    ids, types, packing = ragged()
    expected, shares = by_numpy(
        model.config, weights_of(model), ids, types, packing.position_ids, LENGTHS
    )
    with torch.no_grad():
        out = model.forward_packed(ids, packing, types)
        traced = model.forward_packed(
            ids, packing, types, output_attentions=True, output_hidden_states=True
        )
    assert np.abs(out.last_hidden_state.numpy() - expected).max() <= ATOL
    assert torch.equal(out.last_hidden_state, traced.last_hidden_state)
    assert torch.equal(traced.hidden_states[-1], traced.last_hidden_state)
    assert len(traced.attentions) == 3 * inner
    for step, sequences in enumerate(traced.attentions):
        for found, share in zip(sequences, shares, strict=True):
            if found.numel():
                assert np.abs(found.numpy() - share[step]).max() <= ATOL


@pytest.mark.parametrize("name", OPTIONS)
def test_padding_holes_and_given_positions(make_config, name):
    """Positions are columns of the padded batch; windows count real tokens."""
    model = build(make_config, name)
    mask = torch.zeros(4, 16, dtype=torch.long)
    for row, columns in enumerate((range(16), range(3, 14), [0, 1, 4, 5, 6, 9, 10, 15], [])):
        mask[row, list(columns)] = 1
    ids, types = torch.randint(0, 50, mask.shape), torch.randint(0, 2, mask.shape)
    lengths, real = mask.sum(1).tolist(), mask.bool()
    columns = torch.arange(16).expand(4, 16)
    reversed_columns = 15 - columns
    for given in (None, reversed_columns):
        places = columns if given is None else given
        packed = [x[real] for x in (ids, types, places)]
        expected, _ = by_numpy(model.config, weights_of(model), *packed, lengths)
        with torch.no_grad():
            found = model(ids, mask, types, given).last_hidden_state
            hidden = model.embeddings(ids, types, places)
            for form in (real, torch.zeros(real.shape).double().masked_fill(~real, -1e4)):
                rows = slice(0, 3)  # exporters see no row without tokens
                plain = model.encoder(
                    hidden[rows],
                    form[rows, None, None],
                    None,
                    None if given is None else given[rows],
                )
                assert np.abs(plain[real[rows]].numpy() - expected).max() <= ATOL
        assert np.abs(found[real].numpy() - expected).max() <= ATOL
        assert not found[~real].any()


@pytest.mark.parametrize("lengths", [[7, 7], LENGTHS])
@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_along_random_directions(make_config, name, lengths):
    model = build(make_config, name)
    ids, types, packing = ragged(lengths)
    seen = torch.randn(packing.num_tokens, 16).double()
    (model.forward_packed(ids, packing, types).last_hidden_state * seen).sum().backward()
    weights, places = weights_of(model), packing.position_ids
    for seed in range(2):
        draw = np.random.default_rng(seed)
        direction = {key: draw.standard_normal(value.shape) for key, value in weights.items()}
        values = []
        for sign in (1, -1):
            moved = {key: value + sign * STEP * direction[key] for key, value in weights.items()}
            out, _ = by_numpy(model.config, moved, ids, types, places, lengths)
            values.append((out * seen.numpy()).sum())
        expected = (values[0] - values[1]) / (2 * STEP)
        found = sum(
            float((weight.grad * torch.from_numpy(direction[key])).sum())
            for key, weight in model.named_parameters()
        )
        assert abs(found - expected) <= DIRECTION_RTOL * max(1.0, abs(expected))


@pytest.mark.parametrize("recompute", [True, "ffn", 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_checkpointing_changes_nothing(make_config, name, recompute):
    probs = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
    model = build(make_config, name, **probs).train()
    ids, types, packing = ragged()
    results = []
    for choice in (False, recompute):
        model.set_checkpointing(choice)
        model.zero_grad()
        torch.manual_seed(7)
        out = model.forward_packed(ids, packing, types).last_hidden_state
        out.square().sum().backward()
        results.append((out, *(w.grad.clone() for w in model.parameters())))
    for one, two in zip(*results, strict=True):
        assert torch.allclose(one, two, atol=ATOL)
