"""What `/metrics` tells: counters, gauges and histograms in the text format of Prometheus.

Labels take few values: routes, models, statuses and reasons, never anything a client sent.
Source: prometheus.io, "Exposition formats", text format 0.0.4.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from litebert.serve.engine.process import StepNote

__all__ = ["CONTENT_TYPE", "Counter", "Histogram", "Metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
TOKENS: Final = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SEQUENCES: Final = (1, 2, 4, 8, 16, 32, 64, 128)


class Counter:
    """A number for each combination of labels; as a gauge it may fall."""

    def __init__(self, name: str, text: str, labels: Sequence[str], kind: str = "counter") -> None:
        self.name, self.help, self.labels, self.kind = name, text, tuple(labels), kind
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, amount: float, *labels: str) -> None:
        """Add to the number of these labels."""
        self._values[labels] = self._values.get(labels, 0.0) + amount

    def set(self, value: float, *labels: str) -> None:
        """Set the number of these labels."""
        self._values[labels] = value

    def get(self, *labels: str) -> float:
        """Return the number of these labels."""
        return self._values.get(labels, 0.0)

    def lines(self) -> Iterator[str]:
        """Yield the text of the metric."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self._values.items():
            yield f"{self.name}{_braces(self.labels, labels)} {_number(value)}"


class Histogram:
    """Counts of values by upper bound, for each combination of labels."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> None:
        self.name, self.help, self.labels, self._bounds = name, text, tuple(labels), bounds
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count a value."""
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterator[str]:
        """Yield the text of the metric."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} histogram"
        names = (*self.labels, "le")
        for labels, counts in self._counts.items():
            total = 0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                total += count
                braces = _braces(names, (*labels, _number(bound)))
                yield f"{self.name}_bucket{braces} {total}"
            braces = _braces(self.labels, labels)
            yield f"{self.name}_sum{braces} {_number(self._sums[labels])}"
            yield f"{self.name}_count{braces} {total}"


class Metrics:
    """All metrics of a server."""

    def __init__(self) -> None:
        self.requests = Counter(
            "litebert_requests_total", "Requests by route and status.", ("route", "status")
        )
        self.request_seconds = Histogram(
            "litebert_request_seconds", "From the first byte to the last.", ("route",), SECONDS
        )
        self.queue_seconds = Histogram(
            "litebert_queue_seconds", "Time of a request in the queue.", ("model",), SECONDS
        )
        self.compute_seconds = Histogram(
            "litebert_compute_seconds", "Its share of the steps.", ("model",), SECONDS
        )
        self.rejected = Counter(
            "litebert_rejected_total", "Requests that were not taken, by reason.", ("reason",)
        )
        self.tokens = Counter("litebert_tokens_total", "Tokens that were computed.", ("model",))
        self.step_tokens = Histogram(
            "litebert_step_tokens", "Tokens of a step.", ("model",), TOKENS
        )
        self.step_sequences = Histogram(
            "litebert_step_sequences", "Sequences of a step.", ("model",), SEQUENCES
        )
        self.step_seconds = Histogram(
            "litebert_step_seconds", "Time of a step.", ("model",), SECONDS
        )
        self.waiting = Counter(
            "litebert_waiting_tokens", "Tokens in the queue.", ("model",), "gauge"
        )
        self.in_flight = Counter(
            "litebert_requests_in_flight", "Requests that are not answered yet.", (), "gauge"
        )
        self.restarts = Counter("litebert_engine_restarts_total", "Engines that died.", ("model",))
        self.reloads = Counter("litebert_reloads_total", "Reloads by result.", ("model", "result"))
        self.not_finite = Counter(
            "litebert_backend_errors_total", "Requests that the model could not answer.", ("model",)
        )
        self.ready = Counter("litebert_model_ready", "1 when it answers.", ("model",), "gauge")
        self._started = time()

    def step(self, model: str, note: StepNote) -> None:
        """Count a step of an engine."""
        self.tokens.add(note.tokens, model)
        self.step_tokens.observe(note.tokens, model)
        self.step_sequences.observe(note.sequences, model)
        self.step_seconds.observe(note.seconds, model)
        self.waiting.set(note.waiting, model)

    def text(self) -> str:
        """Return the page."""
        lines: list[str] = []
        for metric in vars(self).values():
            if isinstance(metric, Counter | Histogram):
                lines += metric.lines()
        lines += [
            "# HELP process_start_time_seconds Start of the server, seconds since 1970.",
            "# TYPE process_start_time_seconds gauge",
            f"process_start_time_seconds {_number(self._started)}",
        ]
        memory = _resident_bytes()
        if memory is not None:
            lines += [
                "# HELP process_resident_memory_bytes Memory of the server, without its engines.",
                "# TYPE process_resident_memory_bytes gauge",
                f"process_resident_memory_bytes {memory}",
            ]
        return "\n".join(lines) + "\n"


def _braces(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _resident_bytes() -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
