"""Which device and how many threads: the one module that reads environment variables."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from math import ceil
from pathlib import Path

import torch

from litebert.errors import SettingsError

_CGROUP = Path("/sys/fs/cgroup")


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
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise SettingsError(
            f"device {name!r} cannot be used ({reason}); allowed: auto, cpu, cuda, cuda:N, mps"
        ) from error
    return device


def usable_cpus(cgroup: Path = _CGROUP) -> int:
    """Return the CPUs this process may use: its affinity, cut by the container's quota."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cpus = os.cpu_count() or 1
    quota = cgroup_quota(cgroup)
    return max(1, min(cpus, ceil(quota))) if quota else max(1, cpus)


def cgroup_quota(cgroup: Path = _CGROUP) -> float | None:
    """Return the CPU quota of the control group in CPUs, or None where there is none."""
    try:  # version 2: "max 100000" or "150000 100000"
        quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:  # version 1
            quota = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        except OSError:
            return None
    try:
        cpus = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max": no limit
        return None
    return cpus if cpus > 0 else None


def choose_threads(wanted: int | None = None) -> int:
    """Return the threads to compute with.

    `wanted` if given; else `OMP_NUM_THREADS` if that is set; never more than the usable CPUs,
    since more threads than CPUs only wait for each other.
    """
    if wanted is None:
        text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        wanted = int(text) if text.isdecimal() and int(text) > 0 else None
    cpus = usable_cpus()
    return cpus if wanted is None else max(1, min(wanted, cpus))


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
