"""What the pooler reads of two texts, against the same written out, sequence by sequence."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.model.albert import AlbertWithHead
from litebert.model.backbone import AlbertModel
from litebert.model.config import AlbertConfig
from litebert.model.counting import count_parameters
from litebert.model.packing import Packing
from litebert.model.pooling import pooler_rows
from litebert.model.stepwise import Stepwise

LENGTHS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5)


def written_out(hidden: torch.Tensor, lengths: list[tuple[int, int]]) -> torch.Tensor:
    rows, start = [], 0
    zero = torch.zeros(hidden.shape[1])
    for a, b in lengths:
        own = hidden[start : start + a + b]
        u = own[:a].mean(0) if a else zero
        v = own[a:].mean(0) if b else zero
        rows.append(torch.cat([(u - v).abs(), u * v, own.mean(0) if a + b else zero]))
        start += a + b
    return torch.stack(rows)


@settings(max_examples=50)
@given(LENGTHS, st.integers(0, 99))
def test_two_texts_are_compared_by_their_means(lengths: list[tuple[int, int]], seed: int) -> None:
    torch.manual_seed(seed)
    hidden = torch.randn(sum(a + b for a, b in lengths), 3)
    types = torch.tensor([t for a, b in lengths for t in [0] * a + [1] * b], dtype=torch.int64)
    packing = Packing.from_lengths([a + b for a, b in lengths])
    found = pooler_rows(hidden, packing, types, "segments")
    torch.testing.assert_close(found, written_out(hidden, lengths))
    alone = pooler_rows(hidden, packing, None, "segments")
    torch.testing.assert_close(alone, written_out(hidden, [(a + b, 0) for a, b in lengths]))


def test_long_texts_are_counted_in_full_in_half_precision() -> None:
    hidden = torch.ones(1000, 2, dtype=torch.bfloat16)
    types = (torch.arange(1000) >= 400).long()
    found = pooler_rows(hidden, Packing.from_lengths([1000]), types, "segments")
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), torch.tensor([[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]]))


def config_of(**options: object) -> AlbertConfig:
    return AlbertConfig.from_dict(
        {
            "vocab_size": 30, "embedding_size": 4, "hidden_size": 8, "num_hidden_layers": 3,
            "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 20,
            "litebert": {"pooler_reads": "segments"} | options,
        }
    )  # fmt: skip


def test_the_pooler_is_three_times_as_wide_and_counted_so() -> None:
    config = config_of()
    model = AlbertModel(config)
    assert model.get_parameter("pooler.weight").shape == (8, 24)
    total = sum(weight.numel() for weight in model.parameters())
    assert count_parameters(config).total == total
    assert config.model_type == "litebert"  # transformers would read the first token


IDS = torch.tensor([[2, 7, 9, 3, 5, 6, 3], [2, 8, 3, 4, 3, 0, 0]])
TYPES = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]])


@pytest.mark.parametrize("exit_heads", [False, True])
def test_every_way_to_run_it_gives_the_same_logits(exit_heads: bool) -> None:
    torch.manual_seed(0)
    model = AlbertWithHead(config_of(exit_heads=exit_heads), "sequence").eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.4)
        padded = model(IDS, IDS != 0, TYPES).logits
        flat = IDS != 0
        packing = Packing.from_lengths([7, 5])
        packed = model.forward_packed(IDS[flat], packing, TYPES[flat]).logits
        run = Stepwise(model, IDS[flat], packing, TYPES[flat])
        for _ in range(3):
            run.advance()
        left = Stepwise(model, IDS[flat], packing, TYPES[flat])
        left.advance()
        left.keep([1])
        left.advance()
        left.advance()
        swapped = model(IDS, IDS != 0, 1 - TYPES).logits
    torch.testing.assert_close(packed, padded)
    torch.testing.assert_close(run.logits(), padded)
    torch.testing.assert_close(left.logits(), padded[1:])
    assert not torch.allclose(swapped, padded)  # the types are read
