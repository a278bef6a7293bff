"""Disentangled attention against that of transformers' DeBERTa v2, which holds the released models."""

from __future__ import annotations

import pytest
import torch

from litebert.model.config import AlbertConfig
from litebert.model.disentangled import RelativeEmbeddings
from litebert.model.layers import Attention
from litebert.model.packing import Packing
from litebert.model.sight import Sight, look

ATOL = 1e-5
"""float32, sums in another order."""


@pytest.mark.parity
@pytest.mark.parametrize("buckets", [None, 8])
@pytest.mark.parametrize("terms", ["c2p+p2c", "c2p", "p2c"])
def test_attention_equals_deberta_v2(terms, buckets):
    transformers = pytest.importorskip("transformers")
    from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

    torch.manual_seed(0)
    distance = 24
    theirs = DisentangledSelfAttention(
        transformers.DebertaV2Config(
            hidden_size=24,
            num_attention_heads=3,
            relative_attention=True,
            share_att_key=True,
            pos_att_type=terms.split("+"),
            position_buckets=buckets or -1,
            max_relative_positions=distance,
        )
    ).eval()
    options = {"positions": "disentangled", "relative_distance": distance, "relative_terms": terms}
    config = AlbertConfig.from_dict(
        {
            "vocab_size": 9,
            "hidden_size": 24,
            "num_hidden_layers": 1,
            "num_attention_heads": 3,
            "intermediate_size": 8,
            "litebert": options | ({"relative_buckets": buckets} if buckets else {}),
        }
    )
    ours, relative = Attention(config).eval(), RelativeEmbeddings(config)
    pairs = ((ours.query, "query_proj"), (ours.key, "key_proj"), (ours.value, "value_proj"))
    for mine, name in pairs:
        mine.load_state_dict(getattr(theirs, name).state_dict())
    rows = torch.randn(2 * (buckets or distance), 24)
    lengths = [30, 11]
    packing = Packing.from_lengths(lengths)
    hidden = torch.randn(packing.num_tokens, 24)
    sight = Sight(packing.position_ids, counted=True, relative=relative)
    with torch.no_grad():
        found = look(
            ours.project(hidden), ours.heads, packing, sight, ours.relate(rows), is_local=False
        )
        for part, mine in zip(hidden.split(lengths), found.split(lengths), strict=True):
            mask = torch.ones(1, 1, len(part), len(part))
            expected, _ = theirs(part[None], mask, rel_embeddings=rows)
            assert torch.allclose(mine, expected[0], atol=ATOL)
