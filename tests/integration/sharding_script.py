"""Two ranks, forked from one process, train the same tiny models with whole and with split weights.

`sharding_script.py FOLDER SHARDS PORT` writes the folder of each run, and `found.json` with what the
ranks noticed: rank -> run -> facts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from litebert.errors import RankLostError
from litebert.recipes.pretrain import run
from litebert.recipes.pretrain.plan import make_plan
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.recipes.run_folder import RunFolder
from litebert.train import loop, optim
from litebert.train.events import Stepped
from litebert.train.ranks import ALONE, Ranks, join_ranks
from litebert.train.sharding import Shards
from litebert.train.stop import StopRequest

MODEL = {
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 96,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
TRAIN = {
    "max_steps": 10,
    "batch_size": 8,
    "batch_ramp": {"start_batch_size": 1, "fraction": 0.4},
    "micro_batch_tokens": 150,
    "learning_rate": 3e-3,
    "eval_steps": 4,
    "save_steps": 3,
    "log_steps": 1,
    "threads": 1,
    "precision": "fp32",
    "device": "cpu",
}
"""The second rank has no examples in the first steps, and the ranks need different numbers of
passes later."""
SELDOM = {"eval_steps": 10, "save_steps": 10}
RTD = {"rtd": {"share": "embeddings", "generator_hidden_size": 8, "generator_depth": 1}}
OPTIMIZERS = ("adamw", "lamb", "muon")
WAYS = ("whole", "split")
STOP_STEP = 5


def main(folder: Path, shards: Path, port: int) -> None:
    rank = 0 if os.fork() else 1
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    found: list[Any] = [None, None]
    with join_ranks(60) as ranks:
        work = Work(folder, shards, ranks)
        for way in WAYS:
            work.train(f"adamw-{way}", shard_weights=way == "split")
            for optimizer in OPTIMIZERS[1:]:
                changes = SELDOM | {"optimizer": optimizer, "shard_weights": way == "split"}
                work.train(f"{optimizer}-{way}", **changes)
        for way in WAYS:
            work.train(f"rtd-{way}", RTD, **SELDOM, shard_weights=way == "split")
            # A stopped run goes on in the other way.
            work.train(f"from-{way}", **SELDOM, shard_weights=way == "split", stops=True)
            work.train(f"from-{way}", **SELDOM, shard_weights=way != "split", resumes=True)
        work.train("from-two", **SELDOM, shard_weights=True, stops=True)
        if rank == 0:
            alone = Work(folder, shards, ALONE)
            alone.train("from-two", **SELDOM, shard_weights=True, resumes=True)
        torch.distributed.all_gather_object(found, work.found)
        found[rank]["lost"] = work.lose_one()
    if rank == 0:
        os.wait()
        (folder / "found.json").write_text(json.dumps(found), encoding="utf-8")


class Work:
    """One rank's part of all runs."""

    def __init__(self, folder: Path, shards: Path, ranks: Ranks) -> None:
        self.folder, self.shards, self.ranks = folder, shards, ranks
        self.found: dict[str, Any] = {}

    def train(
        self,
        name: str,
        objectives: dict[str, Any] | None = None,
        *,
        stops: bool = False,
        resumes: bool = False,
        **train: Any,
    ) -> None:
        """Carry out a run, and note how much of weights and optimizer memory this rank held."""
        values = {
            "data": {"shards": str(self.shards), "max_length": 96, "eval_fraction": 0.1},
            "model": {"config": MODEL},
            "objectives": objectives or {},
            "train": TRAIN | train,
        }
        stop, optimizers = StopRequest(), []

        def on_event(event: Any) -> None:
            if isinstance(event, Stepped) and stops and event.step == STOP_STEP:
                stop.request()

        def make_optimizer(*arguments: Any) -> Any:
            optimizers.append(optim.make_optimizer(*arguments))
            return optimizers[-1]

        loop.make_optimizer = make_optimizer
        path = self.folder / name
        path.mkdir(exist_ok=True)
        outcome = run.run_plan(
            make_plan(PretrainSettings.model_validate(values)),
            RunFolder(path),
            on_event=on_event,
            stop=stop,
            resume=resumes,
            ranks=self.ranks,
        )
        weights = [p for group in optimizers[0].param_groups for p in group["params"]]
        states = optimizers[0].state.values()
        memory = [tensor for state in states for tensor in state.values() if tensor.ndim]
        self.found[name] = {
            "status": outcome.result.status,
            "step": outcome.result.step,
            "weights": sum(local(tensor).numel() for tensor in weights),
            "memory": sum(local(tensor).numel() for tensor in memory),
            "bytes_held": sum(local(t).untyped_storage().nbytes() for t in (*weights, *memory)),
            "bytes": self.ranks.bytes_reduced,
        }

    def lose_one(self) -> str:
        """The second rank dies when weights are exchanged; return what the first one says."""
        if self.ranks.rank == 1:
            Shards.gather = lambda self: os._exit(0)
        try:
            self.train("lost", shard_weights=True)
        except RankLostError as error:
            return str(error)
        return "nothing"


def local(tensor: Any) -> Any:
    """Return what this rank holds."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor.detach()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
