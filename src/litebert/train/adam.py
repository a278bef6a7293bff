"""One AdamW update of a parameter group: what LAMB and Muon do with the weights they treat no other way."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any, Final

import torch
from torch import Tensor
from torch.optim.adamw import adamw

UNCORRECTED_START: Final = 1e6
"""Step count at which Adam's bias corrections, 1 - beta^step, have become exactly 1 in float32."""

OptimizerMemory = MutableMapping[Tensor, dict[str, Any]]


def has_fused(parameters: Iterable[Tensor]) -> bool:
    """Whether torch has a fused Adam kernel for all these tensors."""
    return all(
        p.device.type in ("cpu", "cuda", "mps") and p.is_floating_point() for p in parameters
    )


def with_gradient(group: dict[str, Any]) -> list[tuple[Tensor, Tensor]]:
    """Return (parameter, gradient) of those of a group that the backward pass reached."""
    return [(p, p.grad) for p in group["params"] if p.grad is not None]


def moments(memory: OptimizerMemory, parameter: Tensor) -> dict[str, Any]:
    """Return the memory of a parameter, with means of gradient and squared gradient, at first 0."""
    state = memory[parameter]
    if not state:
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)
    return state


def update_by_adam(memory: OptimizerMemory, group: dict[str, Any], start: float) -> None:
    """Apply one AdamW update to a group.

    Args:
        memory: state of the optimizer by parameter.
        group: has `params`, `lr`, `betas`, `eps` and `weight_decay`.
        start: updates that count as done before the first: 0, or `UNCORRECTED_START` for an
            update without bias correction.
    """
    pairs = with_gradient(group)
    if not pairs:
        return
    states = [moments(memory, parameter) for parameter, _ in pairs]
    for (parameter, _), state in zip(pairs, states, strict=True):
        if "step" not in state:
            state["step"] = torch.full((), start, device=parameter.device)
    _move(
        [parameter for parameter, _ in pairs],
        [gradient for _, gradient in pairs],
        states,
        [state["step"] for state in states],
        group,
        lr=group["lr"],
        weight_decay=group["weight_decay"],
    )


def uncorrected_direction(
    memory: OptimizerMemory, parameter: Tensor, gradient: Tensor, group: dict[str, Any]
) -> Tensor:
    """Update the two means of a parameter and return m / (sqrt(v) + eps) in its shape."""
    direction = torch.zeros_like(parameter)
    state = moments(memory, parameter)
    step = torch.full((), UNCORRECTED_START, device=parameter.device)
    # A fused kernel that walks from zero at rate -1 leaves the direction behind, in one pass.
    _move([direction], [gradient], [state], [step], group, lr=-1.0, weight_decay=0.0)
    return direction


def _move(
    parameters: list[Tensor],
    gradients: list[Tensor],
    states: list[dict[str, Any]],
    steps: list[Tensor],
    group: dict[str, Any],
    *,
    lr: float,
    weight_decay: float,
) -> None:
    beta1, beta2 = group["betas"]
    adamw(
        parameters,
        gradients,
        [state["exp_avg"] for state in states],
        [state["exp_avg_sq"] for state in states],
        [],
        steps,
        fused=has_fused(parameters),
        amsgrad=False,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=group["eps"],
        maximize=False,
    )
