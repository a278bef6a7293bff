"""Data-parallel training: ranks that share one all-reduce of the unique weights a step.

The gradient of a shared block is complete only when the backward pass has reached the first
depth, so there is nothing to overlap: one flat buffer holds every unique weight once, and with
them the numbers that all ranks must agree on. A model of depth 12 with one shared block so moves
the bytes of one block, not of twelve.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, distributed, nn

from litebert.errors import RankLostError, SettingsError
from litebert.train.device import rank_environment
from litebert.train.source import Part

__all__ = ["ALONE", "Ranks", "join_ranks", "naming_lost_ranks"]

_START_SECONDS: Final = 600
"""Longest wait for the other processes to start."""


class Ranks:
    """This process among all that train together.

    Attributes:
        rank: number of this process, from 0; rank 0 writes files and talks.
        world: number of processes.
        bytes_reduced: bytes of gradients that the last step summed over the ranks.
        group: the process group; None alone.
    """

    def __init__(self, rank: int = 0, world: int = 1, group: Any = None) -> None:
        self.rank, self.world = rank, world
        self.bytes_reduced = 0
        self.group = group
        self._buffer: Tensor | None = None

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    @property
    def part(self) -> Part:
        """The share of every batch that this process computes."""
        return Part(self.rank, self.world)

    def sum_numbers(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return each number summed over all ranks; every rank must give the same names.

        Raises:
            RankLostError: another process died or hangs.
        """
        if self.world == 1:
            return dict(numbers)
        names = sorted(numbers)
        values = torch.tensor([numbers[name] for name in names], dtype=torch.float64)
        self._all_reduce(values)
        summed = dict(zip(names, values.tolist(), strict=True))
        return {name: summed[name] for name in numbers}

    def sum_gradients(self, model: nn.Module, extra: Sequence[float]) -> list[float]:
        """Replace every gradient by its sum over all ranks, and return `extra` summed.

        One all-reduce of float32. A parameter without a gradient on this rank counts as zero.

        Raises:
            RankLostError: another process died or hangs.
        """
        if self.world == 1:
            return list(extra)
        parameters = [p for p in model.parameters() if p.requires_grad]
        size = sum(p.numel() for p in parameters) + len(extra)
        buffer = self._buffer
        if buffer is None or buffer.numel() != size:
            buffer = self._buffer = torch.empty(size, device=parameters[0].device)
        parts = buffer.split([p.numel() for p in parameters] + [len(extra)])
        for parameter, part in zip(parameters, parts[:-1], strict=True):
            if parameter.grad is None:
                part.zero_()
            else:
                part.copy_(parameter.grad.view(-1))
        parts[-1].copy_(torch.tensor(list(extra)))
        self._all_reduce(buffer)
        self.bytes_reduced = buffer.numel() * buffer.element_size()
        for parameter, part in zip(parameters, parts[:-1], strict=True):
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(part.view_as(parameter))
        return parts[-1].tolist()

    def share_state(
        self,
        state: tuple[dict[str, Tensor], dict[str, Any]] | None,
        *,
        is_patient: bool = False,
    ) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return what rank 0 gave: tensors and JSON scalars, or None.

        Args:
            state: on rank 0 what to give; elsewhere ignored.
            is_patient: wait as long as a start may take, while rank 0 prepares.

        Raises:
            RankLostError: another process died or hangs.
        """
        if self.world == 1:
            return state
        content = b""
        if self.is_first and state is not None:
            header = json.dumps(state[1]).encode()
            tensors = {name: t.detach().cpu().contiguous() for name, t in state[0].items()}
            content = len(header).to_bytes(8, "little") + header + save_tensors(tensors)
        size = torch.tensor([len(content)], dtype=torch.int64)
        self._broadcast(size, None if is_patient else self.group)
        if not int(size):
            return None
        data = torch.empty(int(size), dtype=torch.uint8)
        if self.is_first:
            data.copy_(torch.from_numpy(np.frombuffer(content, np.uint8).copy()))
        self._broadcast(data, self.group)
        if self.is_first:
            return state
        raw = data.numpy().tobytes()
        end = 8 + int.from_bytes(raw[:8], "little")
        return load_tensors(raw[end:]), json.loads(raw[8:end])

    def _all_reduce(self, values: Tensor) -> None:
        self._talk(distributed.all_reduce, values, self.group)

    def _broadcast(self, values: Tensor, group: Any) -> None:
        self._talk(distributed.broadcast, values, group, src=0)

    def _talk(self, operation: Any, values: Tensor, group: Any, **options: Any) -> None:
        moved = values.to(_device_of(group))
        with naming_lost_ranks(self.rank, self.world):
            operation(moved, group=group, **options)
        if moved is not values:
            values.copy_(moved)


ALONE: Final = Ranks()


@contextmanager
def naming_lost_ranks(rank: int, world: int) -> Generator[None]:
    """Say what a failed exchange in the block means.

    Raises:
        RankLostError: another process died or hangs.
    """
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # gloo and NCCL report peers that died or hang like this
        reason = str(error).partition("\n")[0]
        raise RankLostError(
            f"rank {rank} of {world} cannot reach the others ({reason}); one of them "
            "died or hangs: see its log. The states saved so far are good: start again with "
            "--resume, with as many processes as you like"
        ) from error


@contextmanager
def join_ranks(timeout_seconds: float) -> Generator[Ranks]:
    """Join the processes that `torchrun` started, for the block; alone without `torchrun`.

    Gradients travel over NCCL between CUDA devices and over gloo otherwise.

    Args:
        timeout_seconds: longest that one exchange may take before the others count as lost.

    Raises:
        SettingsError: the environment names no valid rank.
        RankLostError: the other processes do not start.
    """
    rank, world, local = rank_environment()
    if world == 1:
        yield Ranks()
        return
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        if local >= torch.cuda.device_count():
            raise SettingsError(
                f"rank {rank} is process {local} of this machine, which has "
                f"{torch.cuda.device_count()} CUDA devices; start one process for each device"
            )
        torch.cuda.set_device(local)
    try:
        distributed.init_process_group(
            backend, rank=rank, world_size=world, timeout=timedelta(seconds=_START_SECONDS)
        )
    except (RuntimeError, ValueError) as error:
        raise RankLostError(
            f"rank {rank} of {world} cannot meet the others: {str(error).partition(chr(10))[0]}; "
            "start all with `torchrun --no-python ... litebert pretrain ...`"
        ) from error
    try:
        yield Ranks(rank, world, distributed.new_group(timeout=timedelta(seconds=timeout_seconds)))
    finally:
        distributed.destroy_process_group()


def _device_of(group: Any) -> torch.device:
    return torch.device("cuda" if distributed.get_backend(group) == "nccl" else "cpu")
