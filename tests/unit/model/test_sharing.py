"""Plans: each pattern keeps its own rules; those of all stand in `tests/contract`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import SettingsError
from litebert.model.sharing import Step, make_plan, num_attentions, num_ffns

sizes = st.integers(1, 24).flatmap(
    lambda layers: st.tuples(st.just(layers), st.integers(1, layers), st.integers(1, 3))
)


def owners(name: str, layers: int, groups: int) -> list[int]:
    return [step.attention for step in make_plan(name, layers, groups, 1)]


@given(sizes)
def test_groups_are_contiguous_and_even(size):
    layers, groups, _ = size
    found = owners("groups", layers, groups)
    assert found == sorted(found)
    assert found == [i * groups // layers for i in range(layers)]
    counts = [found.count(group) for group in range(groups)]
    assert max(counts) - min(counts) <= 1


@given(sizes)
def test_extremes_and_mixed_patterns(size):
    layers, groups, inner = size
    assert make_plan("groups", layers, 1, inner) == make_plan("all", layers, groups, inner)
    assert make_plan("groups", layers, layers, inner) == make_plan("none", layers, groups, inner)
    attention, ffn = (make_plan(n, layers, groups, inner) for n in ("attention_only", "ffn_only"))
    assert num_attentions(attention) == num_ffns(ffn) == groups * inner
    assert num_ffns(attention) == num_attentions(ffn) == layers * inner
    assert [s.ffn for s in attention] == [s.attention for s in ffn] == list(range(layers * inner))


def test_orders_by_hand():
    assert owners("cycle", 6, 3) == [0, 1, 2, 0, 1, 2]
    assert owners("cycle_rev", 6, 3) == [0, 1, 2, 2, 1, 0]
    assert owners("cycle_rev", 3, 3) == [0, 1, 2]
    assert owners("sandwich", 6, 1) == [0, 1, 1, 1, 1, 2]
    assert owners("sandwich", 6, 2) == [0, 1, 1, 2, 2, 3]
    assert make_plan("groups", 2, 2, 2) == (Step(0, 0), Step(1, 1), Step(2, 2), Step(3, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("groups", 0, 1, 1), "at least 1 layer"),
        (("groups", 2, 1, 0), "at least 1 layer"),
        (("groups", 2, 3, 1), "num_hidden_groups is 3"),
        (("groups", 2, 0, 1), "num_hidden_groups is 0"),
        (("sandwich", 3, 2, 1), "sandwich needs num_hidden_layers >= "),
        (("groupz", 2, 1, 1), "did you mean 'groups'"),
    ],
)
def test_plans_that_cannot_be_made(arguments, message):
    with pytest.raises(SettingsError, match=message):
        make_plan(*arguments)


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("short", "return ()", "expected a tuple of 6 Step"),
        ("gap", "return tuple(Step(attention=2 * i, ffn=i) for i in range(layers * inner))", "gap"),
        ("list_of_numbers", "return [0] * (layers * inner)", "expected a tuple"),
    ],
)
def test_a_foreign_pattern_that_returns_no_plan_is_refused(
    tmp_path, monkeypatch, name, body, message
):
    lines = (
        "from litebert.model.sharing import Step",
        "def plan(layers, groups, inner):",
        f"    {body}",
    )
    (tmp_path / f"foreign_{name}.py").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SettingsError, match=message):
        make_plan(f"foreign_{name}:plan", 3, 1, 2)


def test_a_foreign_pattern_that_cannot_be_called_so_is_refused():
    with pytest.raises(SettingsError, match="cannot be called with"):
        make_plan("math:sqrt", 3, 1, 1)
