"""Weights that are split over the ranks between the passes of a step (FSDP2).

A shared block is used at every depth, so its weights must be whole from the first depth of the
forward pass to the first depth of the backward pass, and its gradient is complete only then. To
free and fetch the block between depths would move its bytes twice per depth for the memory of one
copy. So there is one exchange of the unique weights before the passes of a step and one of their
gradients after them, however many passes a rank needs; weights, gradients and optimizer memory are
split for the rest of the time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import torch
from torch import Tensor, distributed, nn

from litebert.errors import SettingsError
from litebert.train.precision import Precision
from litebert.train.ranks import Ranks, naming_lost_ranks
from litebert.train.settings import TrainSettings

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

__all__ = [
    "Replicas",
    "Shards",
    "clip_gradients",
    "load_whole",
    "place_weights",
    "saved_tensor",
    "split_like",
    "whole_tensor",
]

_BACKENDS: Final = {"cuda": "nccl", "cpu": "gloo"}
"""What must connect the ranks so that weights on such a device can be split."""


class Replicas:
    """Every rank holds all weights, gradients and optimizer memory.

    Attributes:
        model: whose weights they are.
        ranks: the processes that train together.
    """

    def __init__(self, model: nn.Module, ranks: Ranks) -> None:
        self.model, self.ranks = model, ranks

    def gather(self) -> None:
        """Make the weights whole until `sum_gradients`. All ranks must call it."""

    def sum_gradients(self, extra: Sequence[float]) -> list[float]:
        """Replace every gradient by its sum over all ranks, and return `extra` summed.

        Raises:
            RankLostError: another process died or hangs.
        """
        return self.ranks.sum_gradients(self.model, extra)

    def whole(self) -> AbstractContextManager[None]:
        """Make the weights whole in the block, which computes no gradients."""
        return nullcontext()

    def exchanging(self) -> AbstractContextManager[None]:
        """Name lost ranks in the block, which may exchange parts of weights."""
        return nullcontext()

    def join(self) -> None:
        """Leave a model that has its weights whole, and no trace of the others."""


class Shards(Replicas):
    """Every rank holds its part of the first dimension of every weight.

    Parameters are `DTensor`s with the names and shapes of the whole weights; while they are
    gathered they are ordinary parameters, and passes may use any part of the model any number of
    times.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, device: torch.device) -> None:
        # Over a second to import, and for runs with several processes only.
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        super().__init__(model, ranks)
        # Only this holder is known to FSDP: the model keeps its class and its forward passes start
        # no exchange, so that ranks may have different numbers of them.
        self._holder: Any = _Holder(model)
        mesh = DeviceMesh.from_group(ranks.group, device.type)
        fully_shard(self._holder, mesh=mesh, reshard_after_forward=False)
        # The loss is divided by the targets of all ranks before the backward pass.
        self._holder.set_gradient_divide_factor(1.0)
        self._holder.set_force_sum_reduction_for_comms(True)

    @property
    def local_numel(self) -> int:
        """Weights that this rank holds between the passes."""
        parameters = self.model.parameters()
        return sum(p.to_local().numel() for p in parameters if _is_part(p))

    def gather(self) -> None:
        """Make the weights whole until `sum_gradients`. All ranks must call it.

        Raises:
            RankLostError: another process died or hangs.
        """
        with self.exchanging():
            self._holder.unshard()

    def sum_gradients(self, extra: Sequence[float]) -> list[float]:
        """Leave this rank's part of the summed gradients and of the weights; return `extra` summed.

        A parameter without a gradient on this rank counts as zero.

        Raises:
            RankLostError: another process died or hangs.
        """
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        size = sum(p.numel() * p.element_size() for p in parameters)
        with self.exchanging():
            self._holder().backward()
        self.ranks.bytes_reduced = size
        summed = self.ranks.sum_numbers({str(place): value for place, value in enumerate(extra)})
        return list(summed.values())

    @contextmanager
    def whole(self) -> Generator[None]:
        """Make the weights whole in the block, which computes no gradients.

        Raises:
            RankLostError: another process died or hangs.
        """
        self.gather()
        try:
            yield
        finally:
            self._holder.reshard()

    def exchanging(self) -> AbstractContextManager[None]:
        """Name lost ranks in the block, which may exchange parts of weights."""
        return naming_lost_ranks(self.ranks.rank, self.ranks.world)

    def join(self) -> None:
        """Leave a model that has its weights whole, and no trace of FSDP.

        Raises:
            RankLostError: another process died or hangs.
        """
        found: dict[int, nn.Parameter] = {}
        for module in self.model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if id(parameter) not in found:  # a weight may have two places
                    whole = whole_tensor(parameter.detach())
                    found[id(parameter)] = nn.Parameter(whole, parameter.requires_grad)
                module.register_parameter(name, found[id(parameter)])
            # FSDP's hooks would put its parts back; the models have no such hooks of their own.
            module._state_dict_pre_hooks.clear()  # pyright: ignore[reportPrivateUsage]
            module._load_state_dict_pre_hooks.clear()  # pyright: ignore[reportPrivateUsage]


class _Holder(nn.Module):
    """Holds the model for FSDP; its backward pass, which changes no gradient, has them summed."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self) -> Tensor:
        """Return 0, with a gradient of 0 for one weight."""
        weight = next(p for p in self.parameters() if p.requires_grad)
        return weight.flatten()[0] * 0.0


def place_weights(
    model: nn.Module,
    settings: TrainSettings,
    ranks: Ranks,
    device: torch.device,
    precision: Precision,
) -> Replicas:
    """Split the weights over the ranks if the settings say so; one process has nothing to split.

    All ranks must have equal weights. Optimizers are made afterwards.

    Raises:
        SettingsError: they cannot be split on this device, in this precision or in this model.
    """
    if not settings.shard_weights or ranks.world == 1:
        return Replicas(model, ranks)
    backend = distributed.get_backend(ranks.group)
    if _BACKENDS.get(device.type) != backend:
        raise SettingsError(
            f"train.shard_weights with device {device.type!r} and processes connected by {backend}: "
            "weights can be split on cuda over nccl and on cpu over gloo; choose that device, or "
            "leave train.shard_weights false"
        )
    if precision.name == "fp16":
        raise SettingsError(
            "train.shard_weights with precision 'fp16': each rank would scale its losses by "
            "itself; allowed are 'bf16' and 'fp32': set train.precision, or leave "
            "train.shard_weights false"
        )
    single = [name for name, parameter in model.named_parameters() if not parameter.ndim]
    if single:
        raise SettingsError(
            f"train.shard_weights with {', '.join(single)}: a weight of no dimension cannot be "
            "split; give it the shape [1], or leave train.shard_weights false"
        )
    return Shards(model, ranks, device)


def clip_gradients(model: nn.Module, max_norm: float) -> float:
    """Scale the gradient of all weights together down to an L2 norm; return its norm before.

    Raises:
        RankLostError: another process died or hangs.
    """
    norm = whole_tensor(nn.utils.clip_grad_norm_(model.parameters(), max_norm))
    return float(norm)


def whole_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor that is split over the ranks as a whole; any other as it is.

    Raises:
        RankLostError: another process died or hangs.
    """
    if not _is_part(tensor):
        return tensor
    mesh = tensor.device_mesh
    with naming_lost_ranks(mesh.get_rank(), mesh.size()):
        return tensor.full_tensor()


def saved_tensor(tensor: Tensor) -> Tensor:
    """Return a split tensor whole on the CPU, so that no device holds all; any other as it is.

    Raises:
        RankLostError: another process died or hangs.
    """
    return whole_tensor(tensor).cpu() if _is_part(tensor) else tensor


def split_like(tensor: Tensor, model: Tensor | None) -> Tensor:
    """Return this rank's part of a whole `tensor` if `model` is such a part; else the tensor.

    Needs no exchange: every rank has the whole.
    """
    if model is None or not _is_part(model) or tensor.shape != model.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    there = tensor.to(model.device)
    return distribute_tensor(there, model.device_mesh, model.placements, src_data_rank=None)


def load_whole(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load whole weights into a model, whether its own are split or not.

    Raises:
        RuntimeError: names or shapes differ.
    """
    own = model.state_dict()
    model.load_state_dict({k: split_like(tensor, own.get(k)) for k, tensor in weights.items()})


def _is_part(tensor: Tensor) -> TypeGuard[DTensor]:
    return hasattr(tensor, "device_mesh")
