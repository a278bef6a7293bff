"""Local attention on long texts: no table of n x n, and the same numbers as a masked full one."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from litebert.model.albert import AlbertModel
from litebert.model.local import LEAST_BLOCK, make_band, window_mask
from litebert.model.packing import Packing

LONG = 8192


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation returned."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.numel = max(self.numel, leaf.numel())
        return result


@pytest.mark.parametrize("positions", ["rotary", "disentangled"])
def test_memory_grows_with_tokens_times_window(make_config, positions):
    options = {"positions": positions, "local_window": 32, "global_every": 0}
    if positions == "disentangled":
        options["relative_distance"] = 16
    model = AlbertModel(make_config(num_hidden_layers=2, litebert=options), add_pooler=False)
    largest = []
    for length in (LONG // 4, LONG):
        packing = Packing.from_lengths([length, 40])
        ids = torch.randint(0, 50, (packing.num_tokens,))
        with Largest() as seen:
            model.forward_packed(ids, packing).last_hidden_state.square().sum().backward()
        largest.append(seen.numel)
    # Three blocks of keys, each with its own row of relative positions at most: 3 * (16 or 2 * 16).
    heads, keys = 4, 3 * (32 if positions == "disentangled" else 16)
    assert largest[1] <= 1.1 * heads * keys * LONG < LONG * LONG / 16
    assert largest[1] <= 4.1 * largest[0]


@pytest.mark.parametrize("half", [1, LEAST_BLOCK, LEAST_BLOCK + 5])
@pytest.mark.parametrize("lengths", [[50], [3, 40, 0, 21], [16, 16]])
def test_the_band_is_the_window_within_each_sequence(half, lengths):
    packing = Packing.from_lengths(lengths)
    band = make_band(packing, half)
    tokens = packing.num_tokens
    seen = torch.zeros(tokens, tokens, dtype=torch.bool)
    for block in range(band.blocks):
        for i, j in band.mask[block, 0].nonzero().tolist():
            query, key = block * band.width + i, (block - 1) * band.width + j
            if query < tokens:
                seen[query, key] = True  # never a key before the first or after the last token
    place, owner = torch.arange(tokens), packing.sequence_ids
    near = (place[:, None] - place).abs() <= half
    assert torch.equal(seen, near & (owner[:, None] == owner))
    assert band.mask.any(-1).all()


def test_places_of_a_padded_window_count_real_tokens():
    mask = torch.tensor([[1, 0, 0, 1, 1, 1]]).bool()[:, None, None]
    near = window_mask(mask, 1, 6, mask.device)
    assert near[0, 0, 3].tolist() == [True, True, True, True, True, False]
    additive = torch.zeros(mask.shape).masked_fill(~mask, -1e4)
    assert torch.equal(window_mask(additive, 1, 6, mask.device), near)
    assert window_mask(None, 1, 3, mask.device)[0, 0].tolist() == [
        [True, True, False],
        [True, True, True],
        [False, True, True],
    ]
