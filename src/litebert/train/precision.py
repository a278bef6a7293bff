"""The number type of matrix products, chosen by measuring and never by name.

On CPUs without the instructions, bfloat16 and float16 products are over 100 times slower than
float32 although every call succeeds.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import torch

from litebert.errors import SettingsError

DTYPES: Final = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MIN_GAIN: Final = 1.25
"""A shorter type must be this many times faster to be worth its rounding."""
_BUDGET_SECONDS: Final = 0.25
_SIZE: Final = {"cpu": 256, "cuda": 4096, "mps": 1024}


@dataclass(frozen=True, slots=True)
class Precision:
    """A chosen number type, and why."""

    name: str
    """One of "fp32", "bf16", "fp16"."""
    device_type: str
    gflops: dict[str, float] = field(default_factory=dict)
    """Measured speed of matrix products by type, in 1e9 floating-point operations a second."""
    reason: str = "set by the user"

    @property
    def dtype(self) -> torch.dtype:
        """The type of autocast matrix products."""
        return DTYPES[self.name]

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context for a forward pass; weights stay float32 in any case."""
        if self.name == "fp32":
            return nullcontext()
        return torch.autocast(self.device_type, dtype=self.dtype)

    def make_scaler(self) -> torch.amp.GradScaler | None:
        """Return the loss scaler that float16 needs, None for the others."""
        return torch.amp.GradScaler(self.device_type) if self.name == "fp16" else None


def choose_precision(name: str = "auto", device: torch.device | str = "cpu") -> Precision:
    """Return the precision called `name`; for "auto" the one that measures fastest.

    bfloat16 is preferred to float16 unless that is clearly faster, because it needs no loss
    scaling; either must beat float32 by `MIN_GAIN`. Measuring takes at most one second and is
    done once per process and device.

    Raises:
        SettingsError: unknown name.
    """
    kind = torch.device(device).type
    if name != "auto":
        if name not in DTYPES:
            raise SettingsError(
                f"precision {name!r} is unknown; allowed: auto, {', '.join(DTYPES)}"
            )
        return Precision(name, kind)
    speeds = measure_matmul(str(device))
    chosen, reason = pick(speeds)
    return Precision(chosen, kind, dict(speeds), reason)


def pick(gflops: dict[str, float]) -> tuple[str, str]:
    """Return (name, reason) for measured speeds by name; a missing type is not supported."""
    plain = gflops["fp32"]
    for name, needed in (("bf16", MIN_GAIN * plain), ("fp16", MIN_GAIN * plain)):
        rival = gflops.get("fp16", 0.0) if name == "bf16" else 0.0
        speed = gflops.get(name, 0.0)
        if speed >= needed and speed * MIN_GAIN >= rival:
            return name, f"{name} is {speed / plain:.1f} times as fast as fp32 here"
    best = max((n for n in gflops if n != "fp32"), key=lambda n: gflops[n], default=None)
    if best is None:
        return "fp32", "no shorter type is supported here"
    return "fp32", f"{best} reaches {gflops[best] / plain:.2g} times the speed of fp32 here"


@cache
def measure_matmul(device: str = "cpu") -> dict[str, float]:
    """Return GFLOP/s of square matrix products by type; types that fail are left out.

    Each type gets a quarter of a second, after one product to warm up.
    """
    kind = torch.device(device).type
    size = _SIZE.get(kind, 256)
    speeds: dict[str, float] = {}
    for name, dtype in DTYPES.items():
        try:
            speeds[name] = _time_matmul(torch.device(device), dtype, size)
        except (RuntimeError, TypeError):
            continue
    return speeds


def _time_matmul(device: torch.device, dtype: torch.dtype, size: int) -> float:
    a = torch.ones(size, size, device=device, dtype=dtype)
    out = torch.empty_like(a)
    start = time.perf_counter()
    torch.matmul(a, a, out=out)
    _wait(device)
    best = first = time.perf_counter() - start
    if first < _BUDGET_SECONDS:
        end = start + _BUDGET_SECONDS
        while time.perf_counter() < end:
            begin = time.perf_counter()
            torch.matmul(a, a, out=out)
            _wait(device)
            best = min(best, time.perf_counter() - begin)
    return 2 * size**3 / best / 1e9


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
