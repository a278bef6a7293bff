"""Real training processes for the fault tests.

`train_script.py` reads one command line after the other from its input and runs each in a process
of its own, forked so that torch is imported once. It answers `pid N` and, later, `exit N CODE`.
A command is `LOG_FILE RUN_FOLDER [options]`; the process trains the real model on made-up
sequences, writes a line for each step and at the end the status and the sha256 of the weights,
and exits as the command line of litebert would.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import resource
import select
import shlex
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litebert.checkpoint.faults import FaultyFS
from litebert.checkpoint.fs import active_fs, use_fs
from litebert.data.batch import EncodedExample
from litebert.errors import LitebertError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.evaluate import Evaluator
from litebert.train.events import Event, Stepped, Warned
from litebert.train.loop import fit
from litebert.train.settings import GuardSettings, TrainSettings
from litebert.train.stop import StopRequest, stop_on_signals

CONFIG = {
    "vocab_size": 40,
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}


def make_examples(count: int, seed: int) -> list[EncodedExample]:
    rng = np.random.default_rng(seed)
    examples: list[EncodedExample] = []
    for index in range(count):
        ids = rng.integers(4, 40, int(rng.integers(2, 12))).astype(np.int32)
        examples.append(EncodedExample(ids, ids * 0, int((ids < 22).mean() > 0.5), index))
    return examples


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each step")
    parser.add_argument("--slow-eval", type=float, default=0.0, help="seconds of an evaluation")
    parser.add_argument("--kill-at", type=int, help="file-system operation that kills")
    parser.add_argument("--no-space", type=int, nargs=2, help="steps between which writes fail")
    return parser.parse_args(arguments)


def train(options: argparse.Namespace) -> int:
    torch.manual_seed(0)
    model = AlbertWithHead(AlbertConfig.from_dict(CONFIG), "sequence")
    settings = TrainSettings(
        max_steps=options.steps,
        batch_size=8,
        learning_rate=3e-3,
        eval_steps=6,
        save_steps=4,
        log_steps=3,
        threads=options.threads,
        precision="fp32",
        guard=GuardSettings(on_collapse="warn"),
    )

    def on_event(event: Event) -> None:
        if isinstance(event, Warned):
            logging.warning("%s", event.message)
        if not isinstance(event, Stepped):
            return
        say(str(event.step))
        time.sleep(options.pause)
        if options.no_space and event.step in options.no_space:
            limit = 9000 if event.step == options.no_space[0] else resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def score(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        return {"accuracy": float((logits.argmax(1) == labels).mean())}

    evaluator = Evaluator(make_examples(30, 2), score, "accuracy", batch_tokens=16)

    def evaluate(model: Any, stop: StopRequest) -> Any:
        if options.slow_eval:
            say("evaluating")
            end = time.monotonic() + options.slow_eval
            while time.monotonic() < end and not stop.is_requested:
                time.sleep(0.01)
        return evaluator(model, stop)

    fs = active_fs() if options.kill_at is None else FaultyFS(options.kill_at, fault="kill")
    with use_fs(fs), stop_on_signals() as stop:
        try:
            result = fit(
                model,
                make_examples(100, 1),
                settings,
                evaluate=evaluate,
                state_dir=options.folder,
                resume=True,
                on_event=on_event,
                stop=stop,
            )
        except LitebertError as error:
            say(str(error))
            return error.exit_code
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    say(f"{result.status} {digest.hexdigest()}")
    return result.exit_code


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def run_child(arguments: list[str]) -> None:
    """Train in this process, with its output in the log file; never returns."""
    code = 99
    try:
        options = parse(arguments)
        log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        logging.basicConfig(format="log: %(message)s")
        code = train(options)
    except BaseException:
        say(traceback.format_exc())
    os._exit(code)


def serve() -> None:
    # One step here, so that no child has to import what torch imports late.
    model = AlbertWithHead(AlbertConfig.from_dict(CONFIG), "sequence")
    fit(model, make_examples(4, 1), TrainSettings(max_steps=1, threads=1, precision="fp32"))
    children: set[int] = set()
    say("ready")
    while True:
        if select.select([0], [], [], 0.02)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            pid = os.fork()
            if pid == 0:
                run_child(shlex.split(line))
            children.add(pid)
            say(f"pid {pid}")
        for pid in tuple(children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                children.discard(pid)
                say(f"exit {pid} {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    serve()
