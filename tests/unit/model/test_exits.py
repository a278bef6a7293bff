"""Exit heads, and passes that sequences leave: equal to each sequence alone, with fewer operations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.counting import parameter_count
from litebert.model.packing import Packing
from litebert.model.resharing import set_depth
from litebert.model.stepwise import Stepwise

ATOL = 1e-5
"""Float32 sums in another order."""
DEPTHS = 4
LABELS = {0: "a", 1: "b", 2: "c"}
OPTIONS = [
    {},
    {"positions": "rotary"},
    {"positions": "absolute+disentangled", "relative_distance": 4},
    {"norm_position": "pre", "depth_embeddings": True},
    {"local_window": 4, "global_every": 2, "lora_rank": 2},
]


def build(make_config, head="sequence", options=None, **changes) -> AlbertWithHead:
    config = make_config(
        num_hidden_layers=DEPTHS,
        id2label=LABELS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        litebert={"exit_heads": True, **(options or {})},
        **changes,
    )
    model = AlbertWithHead(config, head).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "exits" in name or "depths" in name or "adapters" in name:
                weight.normal_(std=0.5)
    return model


def inputs_of(lengths, seed=0):
    ids = torch.randint(0, 50, (sum(lengths),), generator=torch.Generator().manual_seed(seed))
    return ids, Packing.from_lengths(lengths)


@pytest.mark.parametrize("head", ["sequence", "token"])
@pytest.mark.parametrize("options", OPTIONS)
def test_each_depth_answers_as_a_model_that_ends_there(make_config, head, options):
    model = build(make_config, head, options)
    ids, packing = inputs_of([5, 9, 1])
    with torch.no_grad():
        run = Stepwise(model, ids, packing)
        for depth in range(1, DEPTHS + 1):
            run.advance()
            model.set_active_depth(depth, allow_idle=True)
            whole = model.forward_packed(ids, packing).logits
            torch.testing.assert_close(run.logits(), whole, atol=ATOL, rtol=0)
            shallow = set_depth(model, depth)
            assert shallow.config.num_hidden_layers == depth
            again = shallow.forward_packed(ids, packing).logits
            torch.testing.assert_close(again, whole, atol=ATOL, rtol=0)
    model.set_active_depth(None)


@pytest.mark.parametrize("options", OPTIONS)
def test_who_stays_is_answered_as_if_alone(make_config, options):
    model = build(make_config, options=options)

    @hypothesis_settings(max_examples=8)
    @given(data=st.data())
    def check(data):
        lengths = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
        ids, packing = inputs_of(lengths, data.draw(st.integers(0, 99)))
        alone = [
            Stepwise(model, ids[start : start + n], Packing.from_lengths([n]))
            for start, n in zip(packing.starts, lengths, strict=True)
        ]
        run = Stepwise(model, ids, packing)
        while run.depth < DEPTHS:
            run.advance()
            for number in run.sequences:
                alone[number].advance()
            expected = torch.cat([alone[number].logits() for number in run.sequences])
            torch.testing.assert_close(run.logits(), expected, atol=ATOL, rtol=0)
            assert run.tokens[-1] == sum(lengths[number] for number in run.sequences)
            present = range(len(run.sequences))
            kept = data.draw(st.sets(st.sampled_from(present), min_size=1))
            run.keep(sorted(kept))

    with torch.inference_mode():
        check()


def test_padded_batches_keep_their_positions(make_config):
    model = build(make_config)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
    packing = Packing.from_mask(mask)
    ids = torch.randint(0, 50, (int(mask.sum()),))
    with torch.no_grad():
        whole = model.forward_packed(ids, packing).logits
        run = Stepwise(model, ids, packing)
        run.advance()
        run.keep([0, 2])
        while run.depth < DEPTHS:
            run.advance()
        torch.testing.assert_close(run.logits(), whole[[0, 2]], atol=ATOL, rtol=0)


def test_operations_fall_with_the_tokens(make_config):
    model = build(make_config)
    ids, packing = inputs_of([8] * 16)

    def operations(stay: int) -> int:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            run = Stepwise(model, ids, packing)
            run.advance()
            if stay < 16:
                run.keep(range(stay))
            while run.depth < DEPTHS:
                run.advance()
        return counter.get_total_flops()

    def once(depths: int) -> int:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            run = Stepwise(model, ids, packing)
            while run.depth < depths:
                run.advance()
        return counter.get_total_flops()

    one_depth = once(2) - once(1)
    saved = operations(16) - operations(4)
    assert saved == pytest.approx(0.75 * (DEPTHS - 1) * one_depth, rel=1e-9)


@pytest.mark.parametrize("wrong", [[], [3], [-1, 0]])
def test_sequences_that_are_not_there(wrong):
    with pytest.raises(DataError, match=r"choose at least one, from 0 to 2"):
        Packing.from_lengths([1, 2, 3]).select(wrong)


def test_heads_that_answer_at_the_end_only(make_config):
    model = AlbertWithHead(make_config(litebert={"exit_heads": True}), "mlm")
    assert model.exits is None
    assert not model.config.litebert.exit_heads
    with pytest.raises(SettingsError, match=r"'mlm' answers after the last depth only"):
        Stepwise(model, *inputs_of([3]))


@pytest.mark.parametrize("head", ["sequence", "token"])
@pytest.mark.parametrize("depths", [1, 2, 5])
def test_parameters_are_counted(make_config, head, depths):
    model = AlbertWithHead(
        make_config(num_hidden_layers=depths, litebert={"exit_heads": True}), head
    )
    actual = sum(weight.numel() for weight in model.parameters())
    assert actual == parameter_count(model.config, head=head)
    assert model.config.model_type == "albert"


def test_more_depths_start_with_the_last_answer(make_config):
    model = build(make_config)
    deeper = set_depth(model, DEPTHS + 2)
    own = model.heads["sequence"].classifier
    assert torch.equal(deeper.exits.weight[: DEPTHS - 1], model.exits.weight)
    assert torch.equal(deeper.exits.bias[-1], own.bias)
    assert torch.equal(deeper.heads["sequence"].classifier.weight, own.weight)
