"""How many CPUs this process may use; without torch, so that reading and serving can ask too."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path

__all__ = ["cgroup_quota", "usable_cpus"]

_CGROUP = Path("/sys/fs/cgroup")


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
