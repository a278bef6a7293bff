"""torch.compile of the block: as often for two depths as for twelve, same numbers, same gradients."""

from __future__ import annotations

import copy
import shutil

import pytest
import torch
from tests.unit.model.option_cases import OPTIONS

from litebert.model.albert import AlbertModel, AlbertWithHead

# The compiler looks at gradients of tensors that have none, and warns of itself.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ATOL = 1e-5
"""float32; fused operations round elsewhere."""


class Counter:
    """A backend that compiles nothing and counts how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graph, inputs):
        self.calls += 1
        return graph.forward


def run(model, lengths=(7, 5, 9)):
    out = [model(torch.arange(2 * n).view(2, n)).last_hidden_state for n in lengths]
    sum(one.square().sum() for one in out).backward()
    return [*out, *(weight.grad for weight in model.parameters() if weight.grad is not None)]


@pytest.fixture(autouse=True)
def _forget():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_compiling_does_not_depend_on_depth(make_config, sharing):
    counts = []
    for depths in (2, 12):
        torch._dynamo.reset()
        counter = Counter()
        config = make_config(num_hidden_layers=depths, litebert={"sharing": sharing})
        model = AlbertModel(config)
        expected = run(copy.deepcopy(model))
        model.compile_block(backend=counter)
        for one, two in zip(run(model), expected, strict=True):
            assert torch.allclose(one, two, atol=ATOL)
        counts.append(counter.calls)
    assert counts == [2, 2]  # what follows attention, and the feed-forward


@pytest.mark.parametrize(
    ("name", "recompute"), [("all with rotary", True), ("all with disentangled", "ffn")]
)
def test_options_and_checkpointing_go_with_it(make_config, name, recompute):
    model = AlbertModel(make_config(litebert=OPTIONS[name])).train()
    expected = run(copy.deepcopy(model))
    model.compile_block(backend=Counter())
    model.set_checkpointing(recompute)
    for one, two in zip(run(model), expected, strict=True):
        assert torch.allclose(one, two, atol=ATOL)


def test_a_compiled_model_is_copied_and_its_state_is_unchanged(make_config):
    model = AlbertWithHead(make_config(), "sequence").eval()
    before = model.state_dict()
    model.compile_block(backend="eager")
    assert model.state_dict().keys() == before.keys()
    ids = torch.arange(6).view(1, 6)
    assert torch.equal(copy.deepcopy(model)(ids).logits, model(ids).logits)


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler on the CPU")
def test_real_compiler_gives_the_same_numbers(make_config):
    model = AlbertModel(make_config(num_hidden_layers=4), add_pooler=False).eval()
    ids = torch.arange(14).view(2, 7)
    with torch.no_grad():
        expected = model(ids).last_hidden_state
        model.compile_block()
        assert torch.allclose(model(ids).last_hidden_state, expected, atol=ATOL)
