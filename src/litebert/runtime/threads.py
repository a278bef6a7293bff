"""How many CPUs this process may use, and how many threads compute: affinity, quota, environment."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path, PurePosixPath

__all__ = ["cgroup_quota", "choose_threads", "usable_cpus"]

_CGROUP = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


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


def usable_cpus(cgroup: Path = _CGROUP) -> int:
    """Return the CPUs this process may use: its affinity, cut by the container's quota."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cpus = os.cpu_count() or 1
    quota = cgroup_quota(cgroup)
    return max(1, min(cpus, ceil(quota))) if quota else max(1, cpus)


def cgroup_quota(cgroup: Path = _CGROUP, membership: Path = _MEMBERSHIP) -> float | None:
    """Return the CPU quota of the control group in CPUs, or None where there is none.

    Args:
        cgroup: where the control groups are mounted.
        membership: file that names the group of this process, version 2; the quotas of the groups
            around it hold as well, so that the smallest counts.
    """
    quotas = [_quota(folder) for folder in _groups(cgroup, membership)]
    return min((quota for quota in quotas if quota), default=None)


def _groups(cgroup: Path, membership: Path) -> list[Path]:
    """The group of this process and those around it, up to the mount."""
    try:
        lines = membership.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line[3:].strip("/") for line in lines if line.startswith("0::/")]
    inner = [PurePosixPath(name) for name in names if name and ".." not in name.split("/")]
    within = [cgroup / path for name in inner for path in (name, *name.parents)]
    return [*within, cgroup]


def _quota(group: Path) -> float | None:
    """Quota of one group, in CPUs."""
    try:  # version 2: "max 100000" or "150000 100000"
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:  # version 1
            quota = (group / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (group / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        except OSError:
            return None
    try:
        cpus = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max": no limit
        return None
    return cpus if cpus > 0 else None
