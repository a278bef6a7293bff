"""Every sharing pattern: a plan without gaps, a model that runs, counts, trains and is stored."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.checkpoint.pretrained import AlbertModel
from litebert.errors import SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.counting import parameter_count
from litebert.model.sharing import SHARING, make_plan, num_attentions, num_ffns

SIZES = st.integers(1, 24).flatmap(
    lambda layers: st.tuples(st.just(layers), st.integers(1, layers), st.integers(1, 3))
)


def config_of(sharing: str, groups: int = 1, inner: int = 2) -> AlbertConfig:
    return AlbertConfig.from_dict(
        {
            "vocab_size": 30,
            "embedding_size": 6,
            "hidden_size": 8,
            "num_hidden_layers": 4,
            "num_hidden_groups": groups,
            "inner_group_num": inner,
            "num_attention_heads": 2,
            "intermediate_size": 12,
            "max_position_embeddings": 16,
            "litebert": {"sharing": sharing},
        }
    )


@pytest.mark.parametrize("name", list(SHARING))
@given(SIZES)
def test_a_plan_names_each_stored_block_and_no_other(name: str, size: tuple[int, int, int]) -> None:
    layers, groups, inner = size
    try:
        plan = make_plan(name, layers, groups, inner)
    except SettingsError as error:
        assert "needs num_hidden_layers" in str(error)
        return
    assert plan == make_plan(name, layers, groups, inner)
    assert len(plan) == layers * inner
    assert {step.attention for step in plan} == set(range(num_attentions(plan)))
    assert {step.ffn for step in plan} == set(range(num_ffns(plan)))


@pytest.mark.parametrize("name", list(SHARING))
def test_a_pattern_says_where_it_comes_from(name: str) -> None:
    assert "Source:" in (SHARING.get(name).__doc__ or "")


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", list(SHARING))
def test_a_model_runs_counts_trains_and_is_stored(name: str, groups: int, tmp_path: Path) -> None:
    config = config_of(name, 1 if name in ("all", "none") else groups)
    assert AlbertConfig.from_dict(config.to_dict()) == config
    torch.manual_seed(0)
    model = AlbertModel(config)
    assert sum(weight.numel() for weight in model.parameters()) == parameter_count(config)
    ids = torch.arange(10).view(2, 5)
    output = model(ids, output_hidden_states=True)
    assert len(output.hidden_states or ()) == config.num_hidden_layers + 1
    (output.last_hidden_state.square().sum() + output.pooler_output.square().sum()).backward()
    for key, weight in model.encoder.named_parameters():
        assert (weight.grad is not None and weight.grad.any()) or key.endswith("key.bias"), key
    model.eval().save_pretrained(tmp_path / "m")
    again = AlbertModel.from_pretrained(tmp_path / "m")
    assert again.config == config
    assert torch.equal(again(ids).last_hidden_state, model(ids).last_hidden_state)


def test_a_pattern_outside_the_project_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside_pattern.py").write_text(
        "from litebert.model.sharing import share_cycle as mine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(SHARING, "_items", dict(SHARING._items))
    config = config_of("cycle", 2).replace(litebert={"sharing": "outside_pattern:mine"})
    assert config.plan == config_of("cycle", 2).plan
    assert config.model_type == "litebert"
    assert AlbertModel(config)(torch.ones(1, 3, dtype=torch.long)).last_hidden_state.shape == (
        1,
        3,
        8,
    )
