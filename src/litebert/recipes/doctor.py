"""What this machine offers and what is wrong with it, as checks a person can act on."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from litebert.checkpoint.memory import available_memory_bytes
from litebert.runtime.threads import cgroup_quota, usable_cpus

__all__ = ["Check", "Diagnosis", "diagnose"]

Verdict = Literal["ok", "note", "problem"]

PACKAGES: Final = {
    "base": (
        "numpy", "pyarrow", "pydantic", "platformdirs", "rich", "safetensors", "sentencepiece",
        "tokenizers", "typer",
    ),
    "train": ("torch", "jaxtyping", "scikit-learn", "matplotlib", "psutil"),
    "hf": ("transformers",),
}  # fmt: skip
"""Extra -> packages it brings."""

MIN_DISK_BYTES: Final = 1_000_000_000
MIN_RAM_BYTES: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, what was found, and what to do about it."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, in the order they were made."""

    format_version: int
    checks: tuple[Check, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether no check found a problem."""
        return all(check.verdict != "problem" for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {
            "format_version": self.format_version,
            "healthy": self.is_healthy,
            "checks": [asdict(check) for check in self.checks],
        }


def diagnose(*, quick: bool = False) -> Diagnosis:
    """Look at versions, processor, memory, disk, clock and packages.

    Args:
        quick: leave out what imports torch and takes seconds (the number format benchmark).
    """
    checks = [_system(), _processor(), _memory(), _disk(), _clock(), _network(), *_packages()]
    if not quick and importlib.util.find_spec("torch") is not None:
        checks.append(_number_formats())
    return Diagnosis(format_version=1, checks=tuple(checks))


def _system() -> Check:
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Check("python", "ok", found)


def _processor() -> Check:
    cpus, quota = usable_cpus(), cgroup_quota()
    flags = sorted(
        _cpu_flags() & {"avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "amx_bf16", "neon"}
    )
    found = f"{cpus} usable CPUs of {os.cpu_count() or cpus}"
    found += f" (quota {quota:.1f})" if quota else ""
    found += f"; {', '.join(flags)}" if flags else ""
    if platform.machine() in ("x86_64", "AMD64") and flags and "avx2" not in flags:
        return Check("processor", "note", found, "without AVX2 training is several times slower")
    return Check("processor", "ok", found)


def _cpu_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()  # not Linux: the flags are unknown, which the line then leaves out
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return set(line.partition(":")[2].split())
    return set()


def _memory() -> Check:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return Check("memory", "note", "size unknown on this system")
    available = available_memory_bytes()
    found = f"{total / 1e9:.1f} GB"
    found += "" if available is None else f", {available / 1e9:.1f} GB available to this process"
    if min(total, total if available is None else available) < MIN_RAM_BYTES:
        remedy = "train with a small preset and --set train.micro_batch_tokens=1024"
        return Check("memory", "note", found, remedy)
    return Check("memory", "ok", found)


def _disk() -> Check:
    try:
        folder = Path.cwd()
        free = shutil.disk_usage(folder).free
        start = time.monotonic()
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".litebert-doctor-") as file:
            file.write(b"x" * 65_536)
            file.flush()
            os.fsync(file.fileno())
        seconds = time.monotonic() - start
    except OSError as error:
        return Check(
            "disk",
            "problem",
            f"cannot write here: {error.strerror}",
            "choose a folder you may write to",
        )
    found = f"{free / 1e9:.1f} GB free; write and fsync took {1000 * seconds:.1f} ms"
    if free < MIN_DISK_BYTES:
        return Check("disk", "problem", found, "free at least 1 GB or choose another --out")
    return Check("disk", "ok", found)


def _clock() -> Check:
    year = time.gmtime().tm_year
    if not 2024 <= year <= 2100:
        return Check(
            "clock",
            "problem",
            f"the year is {year}",
            "set the clock: run names and certificates use it",
        )
    return Check("clock", "ok", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()))


def _network() -> Check:
    return Check("network", "ok", "not used: nothing is downloaded unless you name a URL or hub id")


def _packages() -> list[Check]:
    checks: list[Check] = []
    for extra, names in PACKAGES.items():
        versions = {name: _version(name) for name in names}
        missing = [name for name, version in versions.items() if version is None]
        found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        if not missing:
            checks.append(Check(f"packages: {extra}", "ok", found))
        elif extra == "base":
            remedy = "reinstall: pip install --force-reinstall litebert"
            checks.append(
                Check("packages: base", "problem", f"missing: {', '.join(missing)}", remedy)
            )
        else:
            remedy = f"if you need it, install the extra {extra!r} of litebert"
            text = f"missing: {', '.join(missing)}" + (f"; found: {found}" if found else "")
            checks.append(Check(f"packages: {extra}", "note", text, remedy))
    checks.extend(_known_bad_combinations())
    return checks


def _known_bad_combinations() -> list[Check]:
    torch = _version("torch")
    if torch is None:
        return []
    number = tuple(int(part) for part in torch.partition("+")[0].split(".")[:2] if part.isdigit())
    if number == (2, 14):
        return [
            Check(
                "torch", "note", f"torch {torch}",
                "this release has very slow fp16 matmul on CPU (pytorch/pytorch#193951); fp32 is chosen",
            )
        ]  # fmt: skip
    if number < (2, 10):
        return [
            Check(
                "torch", "problem", f"torch {torch}",
                "releases before 2.10 can run code from a checkpoint (CVE-2026-24747); upgrade",
            )
        ]  # fmt: skip
    return []


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _number_formats() -> Check:
    try:
        from litebert.train.precision import choose_precision

        choice = choose_precision()
    except (ImportError, OSError, RuntimeError) as error:  # a torch that does not fit the system
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = "reinstall torch: see the installation section of the README"
        return Check("number formats", "problem", f"torch cannot be used: {reason}", remedy)
    speeds = ", ".join(f"{name} {speed:.1f}" for name, speed in choice.gflops.items())
    return Check("number formats", "ok", f"matmul GFLOP/s: {speeds}; training uses {choice.name}")
