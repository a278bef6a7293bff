"""Sharing plans: which stored attention and which stored feed-forward runs at each depth.

A plan is data. Parameter counts, initialisation, checkpoint keys and export follow from it.
One depth is `inner` steps; a plan has `num_layers * inner` steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from litebert.errors import SettingsError
from litebert.registry import Registry

__all__ = [
    "SHARING",
    "Plan",
    "Step",
    "make_plan",
    "num_attentions",
    "num_ffns",
    "transformers_groups",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One sub-layer pair: indices of the stored attention and the stored FFN to run."""

    attention: int
    ffn: int


Plan = tuple[Step, ...]
PlanMaker = Callable[[int, int, int], Plan]

SHARING: Registry[PlanMaker] = Registry("sharing pattern")


def make_plan(name: str, num_layers: int, num_groups: int, inner: int) -> Plan:
    """Return the plan of a registered pattern.

    Args:
        name: registered pattern, or a dotted path `pkg.mod:function`.
        num_layers: depths L, >= 1.
        num_groups: groups G in [1, L]; patterns that have no groups ignore it.
        inner: distinct blocks applied one after another at each depth, >= 1
            (`inner_group_num` of the official configuration).

    Raises:
        SettingsError: unknown pattern, numbers it cannot be made from, or a foreign function that
            returns no plan.
    """
    if num_layers < 1 or inner < 1:
        raise SettingsError(
            f"a plan needs at least 1 layer and 1 inner block, got {num_layers} and {inner}"
        )
    if not 1 <= num_groups <= num_layers:
        raise SettingsError(
            f"num_hidden_groups is {num_groups}, allowed is 1 to num_hidden_layers = {num_layers}: "
            "more stored blocks than depths could never all run"
        )
    maker = SHARING.get(name)
    if ":" not in name:
        return maker(num_layers, num_groups, inner)
    try:
        plan = maker(num_layers, num_groups, inner)
    except TypeError as error:
        raise SettingsError(
            f"sharing pattern {name!r} cannot be called with (layers, groups, inner): {error}"
        ) from error
    _require_plan(name, plan, num_layers * inner)
    return plan


def _require_plan(name: str, plan: object, steps: int) -> None:
    """Refuse what a foreign function returns if blocks would be missing or never run."""
    items = cast(tuple[object, ...], plan) if isinstance(plan, tuple) else ()
    found = [item for item in items if isinstance(item, Step)]
    is_whole = len(found) == len(items) == steps and all(
        set(numbers) == set(range(len(set(numbers))))
        for numbers in ([step.attention for step in found], [step.ffn for step in found])
    )
    if not is_whole:
        raise SettingsError(
            f"sharing pattern {name!r} returned {plan!r:.80}; expected a tuple of {steps} Step whose "
            "attention and ffn indices are 0, 1, ... without a gap"
        )


def num_attentions(plan: Plan) -> int:
    """Return how many distinct attentions a plan stores."""
    return 1 + max(step.attention for step in plan)


def num_ffns(plan: Plan) -> int:
    """Return how many distinct feed-forwards a plan stores."""
    return 1 + max(step.ffn for step in plan)


def transformers_groups(plan: Plan, num_layers: int) -> int | None:
    """Return the `num_hidden_groups` with which transformers runs this very plan, or None.

    Its group of depth i is `int(i / (L / G))` in floating point, which for a few (L, G) differs
    from the integer rule `i * G // L`; such plans are not the same model there.
    """
    inner = len(plan) // num_layers
    if num_attentions(plan) != num_ffns(plan) or num_attentions(plan) % inner:
        return None
    groups = num_attentions(plan) // inner
    owners = (int(i / (num_layers / groups)) for i in range(num_layers))
    return groups if plan == _blocks(owners, inner) else None


def _blocks(owners: Iterable[int], inner: int) -> Plan:
    """Whole blocks (attention with its FFN); `owners` gives the group of each depth."""
    return tuple(
        Step(attention=owner * inner + j, ffn=owner * inner + j)
        for owner in owners
        for j in range(inner)
    )


@SHARING.register("all")
def share_all(num_layers: int, num_groups: int, inner: int) -> Plan:  # noqa: ARG001
    """One block for every depth. Source: Lan et al. 2020, section 3.1, the published models."""
    return _blocks([0] * num_layers, inner)


@SHARING.register("none")
def share_none(num_layers: int, num_groups: int, inner: int) -> Plan:  # noqa: ARG001
    """A private block for every depth, as in BERT. Source: Lan et al. 2020, Table 4, not shared."""
    return _blocks(range(num_layers), inner)


@SHARING.register("groups")
def share_groups(num_layers: int, num_groups: int, inner: int) -> Plan:
    """Contiguous groups of depths, each with its block; sizes differ by at most one.

    Source: Lan et al. 2020, section 3.1 and 4.5 (N layers in groups of M); official
    `modeling.py`, `transformer_model`. Depth i belongs to group `i * G // L`.
    """
    return _blocks([i * num_groups // num_layers for i in range(num_layers)], inner)


@SHARING.register("attention_only")
def share_attention_only(num_layers: int, num_groups: int, inner: int) -> Plan:
    """One attention per group, a private FFN per depth. Source: Lan et al. 2020, Table 4."""
    return tuple(
        Step(attention=(i * num_groups // num_layers) * inner + j, ffn=i * inner + j)
        for i in range(num_layers)
        for j in range(inner)
    )


@SHARING.register("ffn_only")
def share_ffn_only(num_layers: int, num_groups: int, inner: int) -> Plan:
    """One FFN per group, a private attention per depth. Source: Lan et al. 2020, Table 4."""
    return tuple(
        Step(attention=i * inner + j, ffn=(i * num_groups // num_layers) * inner + j)
        for i in range(num_layers)
        for j in range(inner)
    )


@SHARING.register("cycle")
def share_cycle(num_layers: int, num_groups: int, inner: int) -> Plan:
    """Blocks 0..G-1 repeated in order. Source: Takase and Kiyono 2021, CYCLE."""
    return _blocks([i % num_groups for i in range(num_layers)], inner)


@SHARING.register("cycle_rev")
def share_cycle_rev(num_layers: int, num_groups: int, inner: int) -> Plan:
    """As `cycle`, the last round in reverse. Source: Takase and Kiyono 2021, CYCLE (REV).

    The last round is the final `L - G * (ceil(L / G) - 1)` depths.
    """
    last_round = num_groups * (-(-num_layers // num_groups) - 1)
    owners = [
        i % num_groups if i < last_round or last_round == 0 else num_groups - 1 - i % num_groups
        for i in range(num_layers)
    ]
    return _blocks(owners, inner)


@SHARING.register("sandwich")
def share_sandwich(num_layers: int, num_groups: int, inner: int) -> Plan:
    """Private first and last block, G contiguous groups between. Source: Reid et al. 2021, Subformer.

    Raises:
        SettingsError: fewer than G + 2 layers.
    """
    middle = num_layers - 2
    if middle < num_groups:
        raise SettingsError(
            f"sandwich needs num_hidden_layers >= num_hidden_groups + 2 = {num_groups + 2}, got {num_layers}"
        )
    owners = [0, *(1 + i * num_groups // middle for i in range(middle)), num_groups + 1]
    return _blocks(owners, inner)
