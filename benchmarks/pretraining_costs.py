"""What a pretraining run pays beside the forward and backward pass, each measured alone."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks.measuring import seconds
from benchmarks.pretraining_batches import StepBatch
from benchmarks.pretraining_sides import OurSide, make_ours
from litebert.checkpoint.state import StateStore
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.counting import FLOAT32_BYTES, parameter_count, unshared_parameter_count
from litebert.recipes.pretrain.run import SAVE_SECONDS
from litebert.recipes.pretrain.source import ShardSource
from litebert.train.guard import Guard
from litebert.train.keeper import Keeper
from litebert.train.plan import StepPlan
from litebert.train.ranks import ALONE, join_ranks
from litebert.train.shared_store import SharedStore
from litebert.train.state import Snapshot, TrainState

OPTIMIZERS: Final = ("adamw", "lamb", "muon")
ROUNDS: Final = 5
STEP_TOKENS: Final = 16_384
"""Tokens of the step that an update is compared with: half of `litebert pretrain`'s default."""
REDUCE_TIMEOUT: Final = 50.0
PROCESSES: Final = 2


def measure_costs(
    side: OurSide, source: ShardSource, batch: StepBatch, gradient_seconds: float
) -> dict[str, Any]:
    """Return what batches, saving and updates take, as parts of a step or of the run.

    Args:
        side: ours, with AdamW.
        source: makes batches.
        batch: one of them.
        gradient_seconds: of a step on such a batch, as measured beside transformers.
    """
    making = [seconds(lambda step=step: source.batch(step, 0.0)) for step in range(4 * ROUNDS)]
    made = statistics.median(making)
    with tempfile.TemporaryDirectory() as folder:
        saving = _save_seconds(side, source, Path(folder))
    updates = _update_seconds(side, batch)
    per_token = gradient_seconds / batch.tokens
    return {
        "data_seconds": made,
        "data_share": made / (made + gradient_seconds),
        "save_seconds": saving,
        "save_share": saving / SAVE_SECONDS,
        "save_interval_seconds": SAVE_SECONDS,
        "update_seconds": updates,
        "update_share": {
            name: {
                str(tokens): taken / (taken + per_token * tokens)
                for tokens in (batch.tokens, STEP_TOKENS)
            }
            for name, taken in updates.items()
        },
    }


def _save_seconds(side: OurSide, source: ShardSource, folder: Path) -> float:
    """Median time of a saved state: weights and optimizer, hashed, on disk to stay."""
    store = SharedStore(StateStore(folder / "checkpoints"), ALONE)
    snapshot = Snapshot(
        side.model, side.optimizer, None, Guard(side.settings.guard, chance=None, warmup_steps=0)
    )
    keeper = Keeper(
        store, snapshot, StepPlan(source, side.settings), side.settings, source.fingerprint
    )
    return statistics.median(
        seconds(lambda step=step: keeper.save(TrainState(step=step))) for step in range(1, 4)
    )


def _update_seconds(side: OurSide, batch: StepBatch) -> dict[str, float]:
    """Median time of one update by each optimizer, taking turns on the same gradient."""
    side.gradient(batch)
    optimizers = {name: OurSide(side.model, name).optimizer for name in OPTIMIZERS}
    times: dict[str, list[float]] = {name: [] for name in OPTIMIZERS}
    for turn in range(ROUNDS + 1):
        for name, optimizer in optimizers.items():
            taken = seconds(optimizer.step)
            if turn:  # the first makes the optimizer's memory
                times[name].append(taken)
    side.model.zero_grad(set_to_none=True)
    return {name: statistics.median(values) for name, values in times.items()}


def unshared(config: AlbertConfig) -> AlbertConfig:
    """Return the same depth and width with weights of its own at every depth."""
    return config.replace(num_hidden_groups=config.num_hidden_layers, litebert={"sharing": "none"})


def measure_all_reduce(shape: str, config: AlbertConfig, *, is_tiny: bool) -> dict[str, Any]:
    """Bytes of the gradients by arithmetic, and one exchange of them between two processes."""
    counts = {
        "shared": parameter_count(config, head="pretraining"),
        "unshared": unshared_parameter_count(config, head="pretraining"),
    }
    found: dict[str, Any] = {name: FLOAT32_BYTES * count for name, count in counts.items()}
    measured = {name: _reduce(shape, name, is_tiny=is_tiny) for name in counts}
    return {
        "gradient_bytes": found,
        "ratio": found["unshared"] / found["shared"],
        "measured": measured,
        "processes": PROCESSES,
    }


def _reduce(shape: str, sharing: str, *, is_tiny: bool) -> dict[str, float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "benchmarks.pretraining_speed", "--shape", shape]
    command += ["--all-reduce", sharing, *(["--tiny"] if is_tiny else [])]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            command,
            env=os.environ
            | where
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(PROCESSES)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(PROCESSES)
    ]
    outputs = [process.communicate()[0] for process in started]
    assert not any(process.returncode for process in started), outputs
    return json.loads(outputs[0].splitlines()[-1])


def run_all_reduce(config: AlbertConfig, sharing: str) -> None:
    """Exchange gradients with the other process and print what it took."""
    model: AlbertWithHead = make_ours(unshared(config) if sharing == "unshared" else config)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    with join_ranks(REDUCE_TIMEOUT) as ranks:
        times = [seconds(lambda: ranks.sum_gradients(model, [0.0])) for _ in range(ROUNDS)]
        found = {"seconds": statistics.median(times[1:]), "bytes": ranks.bytes_reduced}
    print(json.dumps(found))
