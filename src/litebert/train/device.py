"""Which device, and which rank of how many; threads of torch."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

import torch

from litebert.errors import SettingsError
from litebert.runtime.threads import choose_threads


def choose_device(name: str = "auto") -> torch.device:
    """Return the device called `name`, or for "auto" the first of CUDA, MPS, CPU that is there.

    Raises:
        SettingsError: no such device here.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise SettingsError(
            f"device {name!r} cannot be used ({reason}); allowed: auto, cpu, cuda, cuda:N, mps"
        ) from error
    return device


@contextmanager
def torch_threads(wanted: int | None = None) -> Generator[int]:
    """Compute with `choose_threads(wanted)` threads in the block, with as many as before after."""
    before = torch.get_num_threads()
    threads = choose_threads(wanted)
    torch.set_num_threads(threads)
    try:
        yield threads
    finally:
        torch.set_num_threads(before)


def seed_dropout(seed: int, device: torch.device) -> None:
    """Seed the generators that dropout on `device` draws from.

    `torch.manual_seed` would also queue a call for every device that was never used, with a stack
    trace each: milliseconds, and memory that grows, when it is done at every step.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def rank_environment() -> tuple[int, int, int]:
    """Return (rank, world size, rank on this machine) as `torchrun` tells them; (0, 1, 0) without.

    Raises:
        SettingsError: they are set, but are no valid numbers.
    """
    texts = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]
    if not texts[0] and not texts[1]:
        return 0, 1, 0
    if not all(text.isdecimal() for text in (*texts[:2], texts[2] or "0")):
        raise SettingsError(
            f"RANK, WORLD_SIZE and LOCAL_RANK are {texts}; they must be whole numbers, as torchrun "
            "sets them"
        )
    rank, world, local = (int(text or "0") for text in texts)
    if not 0 <= rank < world:
        raise SettingsError(f"RANK is {rank} with WORLD_SIZE {world}; allowed: 0 to {world - 1}")
    return rank, world, local
