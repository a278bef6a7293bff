"""Measure back-ends in turns: memory, start, latency by length, texts a second, operations."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from litebert.errors import SettingsError
from litebert.recipes.bench.candidates import Candidate

__all__ = ["BenchJob", "Measured", "Worker", "measure", "typical_lengths"]

LENGTHS: Final = (16, 64, 128, 384)
MIX_TEXTS: Final = 64
SETTLE_SECONDS: Final = 0.25
"""Pause before a turn: threads of the back-end before wait in a loop for a while, on our processors."""


@dataclass(frozen=True, slots=True)
class BenchJob:
    """What is measured.

    Attributes:
        lengths: tokens of single sequences.
        mix: tokens of the texts that are computed together.
        rounds: repeats of each; medians count.
        threads: that compute.
        vocabulary: token ids lie below.
        starts: cold starts of each.
    """

    lengths: tuple[int, ...]
    mix: tuple[int, ...]
    rounds: int
    threads: int
    vocabulary: int
    starts: int = 3


@dataclass(slots=True)
class Measured:
    """What one back-end gave.

    Attributes:
        name: of the back-end.
        cold_start_seconds: from the start of a process to its first answer; median.
        rss_mb: held after the first answer.
        peak_rss_mb: held at most, everything done.
        latency_ms: length -> milliseconds of each repeat.
        mix_seconds: of each repeat of the mix.
        fault: why it stopped; None when all went well.
    """

    name: str
    cold_start_seconds: list[float] = field(default_factory=list[float])
    rss_mb: float | None = None
    peak_rss_mb: float | None = None
    latency_ms: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    mix_seconds: list[float] = field(default_factory=list[float])
    fault: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return medians and 99th percentiles."""
        return {
            "name": self.name,
            "cold_start_seconds": median(self.cold_start_seconds)
            if self.cold_start_seconds
            else None,
            "rss_mb": self.rss_mb,
            "peak_rss_mb": self.peak_rss_mb,
            "latency_ms": {
                str(length): {
                    "p50": float(np.percentile(values, 50)),
                    "p99": float(np.percentile(values, 99)),
                    "best": min(values),
                }
                for length, values in self.latency_ms.items()
            },
            "mix_seconds": median(self.mix_seconds) if self.mix_seconds else None,
            "fault": self.fault,
        }


class Worker:
    """A process that holds one back-end."""

    def __init__(self, engine: str, path: Path, threads: int) -> None:
        """Start it and wait for its first answer.

        Raises:
            SettingsError: it does not get that far.
        """
        limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        # A file: a pipe that nobody reads would fill up and stop a talkative library.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "litebert.recipes.bench.worker",
                engine,
                str(path),
                str(threads),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=os.environ | dict.fromkeys(limits, str(threads)),
        )
        self.ready = self._read()
        self.start_seconds = time.perf_counter() - begin

    def run(
        self, lengths: Sequence[int], vocabulary: int, seed: int, *, is_sorted: bool = True
    ) -> dict[str, Any]:
        """Compute random sequences of these lengths; return `seconds` and memory.

        Args:
            lengths: tokens of each.
            vocabulary: token ids lie below.
            seed: of the token ids.
            is_sorted: whether back-ends that pad sort by length first.

        Raises:
            SettingsError: the back-end stopped.
        """
        stream = self._process.stdin
        assert stream is not None  # noqa: S101 - it was asked for
        command = {
            "lengths": list(lengths),
            "vocabulary": vocabulary,
            "seed": seed,
            "is_sorted": is_sorted,
        }
        with contextlib.suppress(BrokenPipeError):  # what it died of is read below
            stream.write(json.dumps(command) + "\n")
            stream.flush()
        return self._read()

    def turn(
        self,
        lengths: Sequence[int],
        vocabulary: int,
        seed: int,
        repeats: int,
        *,
        is_sorted: bool = True,
    ) -> list[dict[str, Any]]:
        """Compute the same several times in a row, undisturbed by who came before; see `run`.

        A first time, which finds its weights in no cache, is thrown away.
        """
        time.sleep(SETTLE_SECONDS)
        self.run(lengths, vocabulary, seed, is_sorted=is_sorted)
        return [self.run(lengths, vocabulary, seed, is_sorted=is_sorted) for _ in range(repeats)]

    def close(self) -> None:
        """End the process; it has nothing to put in order."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _read(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - it was asked for
        line = stream.readline()
        if not line:
            self._process.communicate()
            self._errors.seek(0)
            errors = self._errors.read().decode("utf-8", errors="replace").strip()
            self._errors.close()
            last = (errors.splitlines() or ["it ended without a word"])[-1]
            raise SettingsError(f"the back-end stopped: {last[:300]}")
        return json.loads(line)


def typical_lengths(count: int = MIX_TEXTS, most: int = 128) -> tuple[int, ...]:
    """Return tokens of texts as they come: lognormal(3.2, 0.6), cut to 5 and `most`."""
    drawn = np.random.default_rng(0).lognormal(3.2, 0.6, count)
    return tuple(int(value) for value in np.clip(drawn, 5, most))


def measure(
    candidates: Sequence[Candidate], job: BenchJob, say: Callable[[str], None] = lambda _: None
) -> tuple[list[Measured], list[float]]:
    """Measure all candidates, each in its own process, taking turns round by round.

    Returns:
        What each gave, in their order, and the seconds of a large product in float32.
    """
    found = [Measured(candidate.name) for candidate in candidates]
    workers: dict[int, Worker] = {}
    gemm: list[float] = []
    with contextlib.ExitStack() as stack:
        for place, candidate in enumerate(candidates):
            say(f"starting  {candidate.name}")
            with _noting(found[place]):
                workers[place] = _started(candidate, job, found[place])
                stack.callback(workers[place].close)
        product = Worker("gemm", Path(), job.threads)
        stack.callback(product.close)
        tasks: list[tuple[int | None, tuple[int, ...]]] = [(n, (n,)) for n in job.lengths]
        tasks.append((None, job.mix))
        for number in range(job.rounds):
            say(f"round     {number + 1} of {job.rounds}")
            for single, lengths in tasks:
                for place, worker in list(workers.items()):
                    with _noting(found[place]):
                        for answer in worker.turn(
                            lengths, job.vocabulary, number, _repeats(lengths)
                        ):
                            _keep(found[place], single, answer)
                    if found[place].fault is not None:
                        workers.pop(place)
            gemm.append(product.run((), 8, 0)["seconds"])
    return found, gemm


def _started(candidate: Candidate, job: BenchJob, found: Measured) -> Worker:
    for left in range(job.starts, 0, -1):
        worker = Worker(candidate.engine, candidate.path, job.threads)
        found.cold_start_seconds.append(worker.start_seconds)
        found.rss_mb = worker.ready["rss_mb"]
        if left == 1:
            return worker
        worker.close()
    raise SettingsError(f"starts is {job.starts}; allowed: 1 and above")


def _repeats(lengths: Sequence[int]) -> int:
    """Short ones are repeated: a single one of 20 ms says little."""
    return max(1, 64 // sum(lengths))


def _keep(found: Measured, single: int | None, answer: dict[str, Any]) -> None:
    found.peak_rss_mb = answer["peak_rss_mb"]
    if single is not None:
        found.latency_ms.setdefault(single, []).append(1e3 * answer["seconds"])
    else:
        found.mix_seconds.append(answer["seconds"])


@contextlib.contextmanager
def _noting(found: Measured) -> Generator[None]:
    """Note why a back-end cannot go on; the others do."""
    try:
        yield
    except SettingsError as error:
        found.fault = str(error)
