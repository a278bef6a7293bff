"""Real `litebert pretrain` processes for the fault tests.

The server reads one JSON object a line and runs each in a process of its own, forked so that torch
is imported once. It answers `pid N` and, later, `exit N CODE`. An order has `log` (file that the
process writes to), `argv` (of litebert), `env`, `cwd` and `hooks`:

    pause: seconds after each step              slow_eval: seconds that an evaluation takes longer
    signals: step -> signal sent to itself      no_space: two steps between which writes fail
    slow_save: seconds that saving a state takes longer   kill_at: file operation that kills
    batch_signals: as signals, when the batch of the next step is made; only this reaches all ranks

The process writes `step N`, `batch N [samples]`, `evaluating`, `resident N bytes B files F`,
`weights SHA256`, `reduced BYTES`, `made N` (calls of `ExampleMaker.make`) and `operations N` (on
files).
Nothing heavy is imported at the top: workers import this file too.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE_LIMIT = 20_000
"""Bytes that a file may have while the disk is "full"; a state is larger, logs are not."""


class WatchedSource:
    """A batch source that tells which samples each step is made of."""

    def __init__(self, source: Any, signals: dict[str, int]) -> None:
        self._source, self._signals = source, signals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batch(self, step: int, progress: float, part: Any) -> Any:
        batch = self._source.batch(step, progress, part)
        say(f"batch {step} {[] if batch is None else batch.example_index.tolist()}")
        if str(step) in self._signals:
            os.kill(os.getpid(), self._signals[str(step)])
        return batch


def watch(hooks: dict[str, Any]) -> Callable[[], None]:
    """Put the hooks in; return what tells the count of examples at the end."""
    from litebert.checkpoint.state import StateStore
    from litebert.objectives.examples import ExampleMaker
    from litebert.recipes.pretrain import job, run
    from litebert.train.log import resident_bytes

    fit, make, save = run.fit, ExampleMaker.make, StateStore.save
    made = [0]

    def count(self: ExampleMaker, *arguments: Any) -> Any:
        made[0] += 1
        return make(self, *arguments)

    def save_slowly(self: StateStore, *arguments: Any, **options: Any) -> Path:
        say("saving")
        time.sleep(hooks.get("slow_save", 0))
        return save(self, *arguments, **options)

    def watched(model: Any, source: Any, settings: Any, **options: Any) -> Any:
        on_event, evaluate, ranks = (options.pop(k) for k in ("on_event", "evaluate", "ranks"))
        made[0] = 0  # what the estimate and the held-out batch made does not count

        def told(event: Any) -> None:
            on_event(event)
            if type(event).__name__ != "Stepped":
                return
            say(f"step {event.step}")
            if event.step % 10 == 0:
                files = len(list(Path("/proc/self/fd").iterdir()))
                say(f"resident {event.step} bytes {resident_bytes()} files {files}")
            time.sleep(hooks.get("pause", 0))
            first, last = hooks.get("no_space", (0, 0))
            if event.step in (first, last):
                limit = FILE_LIMIT if event.step == first else resource.RLIM_INFINITY
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            if str(event.step) in hooks.get("signals", {}):
                os.kill(os.getpid(), hooks["signals"][str(event.step)])

        def slow(model: Any, stop: Any) -> Any:
            say("evaluating")
            end = time.monotonic() + hooks.get("slow_eval", 0)
            while time.monotonic() < end and not stop.is_requested:
                time.sleep(0.01)
            return evaluate(model, stop)

        result = fit(
            model,
            WatchedSource(source, hooks.get("batch_signals", {})),
            settings,
            on_event=told,
            evaluate=slow,
            ranks=ranks,
            **options,
        )
        digest = hashlib.sha256()
        for name, tensor in sorted(model.state_dict().items()):
            digest.update(name.encode() + tensor.numpy().tobytes())
        say(f"reduced {ranks.bytes_reduced}")
        say(f"weights {digest.hexdigest()}")
        return result

    if "kill_at" not in hooks:
        job.draw_curves = lambda summary: {}  # drawing takes as long as a run
    run.fit, ExampleMaker.make, StateStore.save = watched, count, save_slowly
    return lambda: say(f"made {made[0]}")


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def command(argv: list[str]) -> int:
    """Run litebert in this process; return its exit code."""
    from litebert.cli import app

    sys.argv = ["litebert", *argv]
    try:
        app(args=argv, prog_name="litebert")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0


def run_child(order: dict[str, Any]) -> None:
    """Do one order in this process; never returns."""
    from litebert.checkpoint.faults import FaultyFS
    from litebert.checkpoint.fs import use_fs

    code = 99
    try:
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        sys.stdin.close()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored under a shell's `&`
        os.environ.update(order["env"])
        os.chdir(order["cwd"])
        tell_count = watch(order["hooks"])
        fs = FaultyFS(order["hooks"].get("kill_at"), fault="kill")
        with use_fs(fs):
            code = command(order["argv"])
        tell_count()
        say(f"operations {len(fs.operations)}")
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        say(traceback.format_exc())
    os._exit(code)


def serve(warm_up: list[str]) -> None:
    """Run the first command here, so that no child has to import anything; then take orders."""
    quiet, kept = os.open(os.devnull, os.O_WRONLY), os.dup(1)
    os.dup2(quiet, 1)
    code = command(warm_up)
    sys.stdout.flush()
    os.dup2(kept, 1)
    say("ready" if code == 0 else f"the first run ended with {code}")
    children: set[int] = set()
    while True:
        if select.select([0], [], [], 0.02)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            pid = os.fork()
            if pid == 0:
                run_child(json.loads(line))
            children.add(pid)
            say(f"pid {pid}")
        for pid in tuple(children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                children.discard(pid)
                say(f"exit {pid} {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    serve(sys.argv[1:])
