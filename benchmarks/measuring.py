"""What benchmarks measure with: turns on both sides, the speed of a large product, peak memory."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch


class Sized(Protocol):
    """A batch with a number of real tokens."""

    @property
    def tokens(self) -> int:
        """Real tokens."""
        ...


SizedBatch = TypeVar("SizedBatch", bound=Sized)


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def gemm_gflops() -> float:
    """Best of three products 2048 x 768 x 3072 in float32, in GFLOP/s."""
    a, b = torch.randn(2048, 768), torch.randn(768, 3072)
    best = min(seconds(lambda: a @ b) for _ in range(3))
    return 2 * 2048 * 768 * 3072 / best / 1e9


def measure_turns(
    ours: Callable[[SizedBatch], Any],
    theirs: Callable[[SizedBatch], Any],
    batches: Sequence[SizedBatch],
    rounds: int,
    flops: Callable[[SizedBatch], float],
    *,
    warm_up: bool = True,
) -> dict[str, float]:
    """Medians of both sides, taking turns; the first round of each is thrown away."""
    if warm_up:
        ours(batches[0])
        theirs(batches[0])
    rows: list[tuple[float, float, float, float]] = []
    for index in range(rounds):
        batch = batches[index % len(batches)]
        before = gemm_gflops()
        a = seconds(lambda batch=batch: ours(batch))
        peak = max(before, gemm_gflops())
        b = seconds(lambda batch=batch: theirs(batch))
        rows.append((batch.tokens / a, batch.tokens / b, flops(batch) / a / 1e9, peak))
    speed, other, rate, peak = (statistics.median(column) for column in zip(*rows, strict=True))
    return {
        "ours_tokens_per_second": speed,
        "theirs_tokens_per_second": other,
        "speedup": statistics.median(row[0] / row[1] for row in rows),
        "ours_gflops": rate,
        "peak_gflops": peak,
        "of_peak": statistics.median(row[2] / row[3] for row in rows),
    }


def peak_rss() -> int:
    """Most memory this process ever held, in bytes."""
    # Not ru_maxrss: on Linux a started process inherits that of the one that started it.
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) * 1024


def current_rss() -> int:
    """Memory this process holds, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def machine() -> dict[str, Any]:
    """What a reader must know of the machine to judge the numbers."""
    import transformers

    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "load_before": os.getloadavg()[0],
    }
