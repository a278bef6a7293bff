"""How much memory the system can still give, as far as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["available_memory_bytes"]

_MEMINFO: Final = Path("/proc/meminfo")
_CGROUP: Final = Path("/sys/fs/cgroup")


def available_memory_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Return the memory that can be had without swapping, in bytes; None where that is unknown.

    The smaller of the system's free memory and what the container's limit leaves (control groups
    version 2). Known on Linux only.
    """
    free = [value for value in (_system(meminfo), _container(cgroup)) if value is not None]
    return min(free, default=None)


def _system(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")
        )
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _container(cgroup: Path) -> int | None:
    try:
        limit, used = (
            int((cgroup / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
        cached = next(
            int(line.split()[1])
            for line in (cgroup / "memory.stat").read_text(encoding="ascii").splitlines()
            if line.startswith("inactive_file ")
        )
    except (OSError, ValueError, IndexError, StopIteration):
        return None  # no limit reads "max"
    return max(0, limit - used + cached)
