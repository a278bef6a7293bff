"""Optimizers over the official parameter groups, and their state by parameter name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import torch
from torch import Tensor, nn

from litebert.errors import CheckpointError, SettingsError
from litebert.registry import Registry
from litebert.train.adam import UNCORRECTED_START, has_fused
from litebert.train.depth_rates import split_by_rate
from litebert.train.lamb import Lamb
from litebert.train.muon import Muon
from litebert.train.settings import TrainSettings
from litebert.train.sharding import split_like


class OptimizerFactory(Protocol):
    """Makes an optimizer, or is an optimizer class that takes groups and `lr`."""

    def __call__(self, groups: list[dict[str, Any]], settings: TrainSettings) -> Any:
        """Return a `torch.optim.Optimizer` over the parameter groups."""
        ...


OPTIMIZERS: Final[Registry[OptimizerFactory]] = Registry("optimizer")


def parameter_groups(
    model: nn.Module, weight_decay: float, depth_decay: float | None = None
) -> list[dict[str, Any]]:
    """Return three groups, by their key `part`; parameters that need no gradient are left out.

    "block": weights of the linear maps within the encoder; "matrix": all others of two dimensions
    and more (embeddings, heads); "vector": biases and LayerNorm, the parameters of fewer
    dimensions, which do not decay. With `depth_decay` each is cut by rate, its `lr_ratio`.

    Source: `AdamWeightDecayOptimizer` of google-research/albert, which excludes the names
        "LayerNorm", "layer_norm" and "bias".
    """
    linear = {
        id(module.weight)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and "encoder" in name.split(".")
    }
    parts: dict[str, list[nn.Parameter]] = {"block": [], "matrix": [], "vector": []}
    for parameter in model.parameters():
        if parameter.requires_grad:
            kind = "block" if id(parameter) in linear else "matrix"
            parts[kind if parameter.ndim >= 2 else "vector"].append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": found, "weight_decay": 0.0 if part == "vector" else weight_decay, "part": part}
        for part, found in parts.items()
    ]
    return groups if depth_decay is None else split_by_rate(model, groups, depth_decay)


def make_optimizer(model: nn.Module, settings: TrainSettings) -> torch.optim.Optimizer:
    """Return the optimizer that the settings name, over the parameters of `model`.

    A dotted path may lead to a factory `(groups, settings)` or to an optimizer class, which is
    called with the groups and `lr`.

    Raises:
        SettingsError: unknown name, nothing to train, or what the path leads to is no optimizer.
    """
    found = parameter_groups(model, settings.weight_decay, settings.depth_decay)
    groups = [group for group in found if group["params"]]
    if not groups:
        raise SettingsError("no parameter of the model needs a gradient; unfreeze some")
    factory: Any = OPTIMIZERS.get(settings.optimizer)
    try:
        if isinstance(factory, type) and issubclass(factory, torch.optim.Optimizer):
            optimizer: Any = factory(groups, lr=settings.learning_rate)  # pyright: ignore[reportCallIssue]
        else:
            optimizer = factory(groups, settings)
    except TypeError as error:
        if ":" not in settings.optimizer:
            raise
        raise SettingsError(
            f"optimizer {settings.optimizer!r} cannot be called: {error}; it must be a "
            "torch.optim.Optimizer class or a function (groups, settings) that returns one"
        ) from error
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise SettingsError(
            f"optimizer {settings.optimizer!r} made a {type(optimizer).__name__}; it must be a "
            "torch.optim.Optimizer class or a function (groups, settings) that returns one"
        )
    return optimizer


@OPTIMIZERS.register("adamw")
def adamw(groups: list[dict[str, Any]], settings: TrainSettings) -> torch.optim.Optimizer:
    """Return AdamW with decoupled decay, as one fused kernel where the device has it.

    With `bias_correction=False` this is the optimizer of the official fine-tuning code: the
    update is m / (sqrt(v) + eps) from the first step on.

    Source: Loshchilov and Hutter 2019, algorithm 2; google-research/albert `optimization.py`.
    """
    optimizer = torch.optim.AdamW(
        groups,
        lr=settings.learning_rate,
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_epsilon,
        fused=has_fused(p for group in groups for p in group["params"]),
    )
    if not settings.bias_correction:
        for parameter in (p for group in optimizer.param_groups for p in group["params"]):
            optimizer.state[parameter] = {
                "step": torch.tensor(UNCORRECTED_START, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
    return optimizer


@OPTIMIZERS.register("lamb")
def lamb(groups: list[dict[str, Any]], settings: TrainSettings) -> torch.optim.Optimizer:
    """Return LAMB of the official pretraining code; `bias_correction` does not concern it."""
    return Lamb(
        groups,
        lr=settings.learning_rate,
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_epsilon,
    )


@OPTIMIZERS.register("muon")
def muon(groups: list[dict[str, Any]], settings: TrainSettings) -> torch.optim.Optimizer:
    """Return Muon for the matrices of the encoder's blocks and AdamW for all other weights.

    Raises:
        SettingsError: no matrix of a block is trained.
    """
    blocks = [group for group in groups if group["part"] == "block"]
    if not blocks:
        raise SettingsError(
            "optimizer 'muon' found no trained matrix in a block of the encoder, which it is for; "
            "unfreeze the encoder, or choose adamw"
        )
    for group in blocks:
        group["lr_ratio"] = settings.muon_lr_ratio * group.get("lr_ratio", 1.0)
    optimizer = Muon(
        groups,
        lr=settings.learning_rate,
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_epsilon,
        momentum=settings.muon_momentum,
        bias_correction=settings.bias_correction,
    )
    set_learning_rate(optimizer, settings.learning_rate)
    return optimizer


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the rate of the next update for all groups, times the `lr_ratio` of those that have one."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get("lr_ratio", 1.0)


def optimizer_state(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the optimizer's memory as (tensors, JSON scalars), both keyed by parameter name.

    Raises:
        CheckpointError: the optimizer keeps something that is neither tensor nor JSON scalar.
    """
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                tensors[f"{name}/{key}"] = value
            elif value is None or isinstance(value, bool | int | float | str):
                scalars[f"{name}/{key}"] = value
            else:
                raise CheckpointError(
                    f"optimizer {type(optimizer).__name__} keeps a {type(value).__name__} as "
                    f"{key!r}; only tensors and plain numbers can be saved: choose another"
                )
    return tensors, scalars


def load_optimizer_state(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    tensors: Mapping[str, Tensor],
    scalars: Mapping[str, Any],
) -> None:
    """Put back what `optimizer_state` returned.

    Raises:
        CheckpointError: it belongs to a parameter that the model does not have.
    """
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    for path, value in (*tensors.items(), *scalars.items()):
        name, _, key = path.rpartition("/")
        if name not in parameters:
            raise CheckpointError(f"the saved optimizer knows parameter {name!r}, the model not")
        parameter = parameters[name]
        if isinstance(value, Tensor):
            value = split_like(value.clone().to(parameter.device), parameter)
        optimizer.state[parameter][key] = value
