"""A pretraining step beside transformers: one machine, one run, taking turns.

    python -m benchmarks.pretraining_speed          # about 7 minutes on 2 quiet cores
    python -m benchmarks.pretraining_speed --tiny   # smoke test, writes no file

Both sides hold the same weights, see the same examples (masked by our objectives) and take turns,
so that a busy machine slows both. Theirs is `AlbertForPreTraining` on padded batches with its own
loss over every place; ours is what `litebert pretrain` does in a step. Reported are medians. Two
tables: lengths as they come from books (most chunks nearly full, 10 % short), and all sequences
full, where packing can save nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks.measuring import current_rss, machine, measure_turns, peak_rss
from benchmarks.pretraining_batches import Lengths, StepBatch, make_batches, make_source
from benchmarks.pretraining_costs import (
    measure_all_reduce,
    measure_costs,
    run_all_reduce,
    unshared,
)
from benchmarks.pretraining_sides import (
    SHAPES,
    TINY_SHAPES,
    OurSide,
    Shape,
    TheirSide,
    make_ours,
    make_theirs,
    step_flops,
)

RESULTS: Final = Path(__file__).parent / "results" / "pretraining-speed.json"
TABLES: Final[dict[str, Lengths]] = {"mixed": "as they come", "full": "all full"}
BASE: Final = "base-2x512"
TARGETS: Final = {
    "speedup": {name: shape.speedup for name, shape in SHAPES.items()},
    "memory_ratio": 0.5,
    "of_peak": 0.8,
    "data_share": 0.03,
    "save_share": 0.03,
    "loss_difference": 1e-4,
}
MEMORY_STEPS: Final = 2
"""The first update makes the optimizer's memory, the second step holds all at once."""
SIDES: Final = ("ours", "theirs", "ours unshared")


def measure_shape(name: str, shape: Shape, *, is_tiny: bool) -> dict[str, Any]:
    config = shape.config
    theirs = TheirSide(make_theirs(config))
    ours = OurSide(make_ours(config, theirs.model))
    found: dict[str, Any] = {"title": shape.title, "config": shape.values}

    def flops(batch: StepBatch) -> float:
        return step_flops(config, batch)

    with tempfile.TemporaryDirectory() as temporary:
        sources = {}
        for table, lengths in TABLES.items():
            folder = Path(temporary) / table
            folder.mkdir()
            sources[table] = make_source(folder, shape.sequences, shape.length, lengths)
        for table, source in sources.items():
            print(f"{name}: {table}", flush=True)
            batches = make_batches(source, shape.batches)
            is_first = "loss_difference" not in found
            if is_first:  # also warms both up
                found["loss_difference"] = abs(ours.step(batches[0]) - theirs.step(batches[0]))
            found[table] = measure_turns(
                ours.step, theirs.step, batches, shape.rounds, flops, warm_up=False
            ) | {
                "mean_length": sum(b.tokens for b in batches) / shape.batches / shape.sequences,
                "padded_per_real_token": sum(b.padded["labels"].numel() for b in batches)
                / sum(b.tokens for b in batches),
                "masked_share": sum(b.num_masked for b in batches) / sum(b.tokens for b in batches),
            }
        print(f"{name}: costs", flush=True)
        batch = make_batches(sources["mixed"], 1)[0]
        step_seconds = batch.tokens / found["mixed"]["ours_tokens_per_second"]
        found["costs"] = measure_costs(ours, sources["mixed"], batch, step_seconds)
    del ours, theirs
    print(f"{name}: memory", flush=True)
    sides = SIDES if name == BASE else SIDES[:2]
    found["memory"] = measure_memory(name, sides, is_tiny=is_tiny)
    if name == BASE:
        print(f"{name}: all-reduce", flush=True)
        found["all_reduce"] = measure_all_reduce(name, config, is_tiny=is_tiny)
    return found


def run_for_memory(side: str, shape: Shape) -> None:
    """Train in this process and print its peak memory; called in a process of its own."""
    config = shape.config
    if side == "theirs":
        import transformers.models.albert.modeling_albert  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        source = make_source(Path(folder), shape.sequences, shape.length, TABLES["full"])
        batch = make_batches(source, 1)[0]
    # The first optimizer imports much of torch, on either side.
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
    start = current_rss()
    if side == "theirs":
        trained: OurSide | TheirSide = TheirSide(make_theirs(config))
    else:
        trained = OurSide(make_ours(unshared(config) if "unshared" in side else config))
    for _ in range(MEMORY_STEPS):
        trained.step(batch)
    print(json.dumps({"peak_bytes": peak_rss(), "after_imports_bytes": start}))


def measure_memory(name: str, sides: tuple[str, ...], *, is_tiny: bool) -> dict[str, Any]:
    """Peak memory of each side in a process of its own, of full sequences."""
    found: dict[str, dict[str, int]] = {}
    for side in sides:
        command = [sys.executable, "-m", "benchmarks.pretraining_speed", "--memory", side]
        command += ["--shape", name, *(["--tiny"] if is_tiny else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        found[side] = row | {"growth_bytes": row["peak_bytes"] - row["after_imports_bytes"]}
    ours, theirs = found["ours"], found["theirs"]
    return {
        "sides": found,
        "ratio": ours["peak_bytes"] / theirs["peak_bytes"],
        "growth_ratio": ours["growth_bytes"] / theirs["growth_bytes"],
    }


def verdicts(name: str, shape: Shape, found: dict[str, Any]) -> dict[str, bool]:
    """Which targets were met; the share of the peak is asked of the base shape only."""
    costs, met = found["costs"], dict[str, bool]()
    for table in TABLES:
        met[f"speedup_{table}"] = found[table]["speedup"] >= shape.speedup
        if name == BASE:
            met[f"of_peak_{table}"] = found[table]["of_peak"] >= TARGETS["of_peak"]
    return met | {
        "memory_ratio": found["memory"]["ratio"] <= TARGETS["memory_ratio"],
        "growth_ratio": found["memory"]["growth_ratio"] <= TARGETS["memory_ratio"],
        "data_share": costs["data_share"] <= TARGETS["data_share"],
        "save_share": costs["save_share"] <= TARGETS["save_share"],
        "loss_difference": found["loss_difference"] <= TARGETS["loss_difference"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="tiny shapes; writes no file")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON goes")
    parser.add_argument("--threads", type=int, help="torch threads; default: all cores")
    parser.add_argument("--shape", choices=list(SHAPES), help="only this shape")
    parser.add_argument("--memory", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--all-reduce", choices=["shared", "unshared"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    shapes = TINY_SHAPES if options.tiny else SHAPES
    if options.memory:
        run_for_memory(options.memory, shapes[options.shape])
        return
    if options.all_reduce:
        run_all_reduce(shapes[options.shape].config, options.all_reduce)
        return
    facts, start = machine(), time.perf_counter()
    results = {
        name: measure_shape(name, shape, is_tiny=options.tiny)
        for name, shape in shapes.items()
        if options.shape in (None, name)
    }
    report = {
        "machine": facts | {"load_after": os.getloadavg()[0]},
        "seconds": time.perf_counter() - start,
        "targets": TARGETS,
        "met": {name: verdicts(name, shapes[name], found) for name, found in results.items()},
        "results": results,
    }
    text = json.dumps(report, indent=1)
    print(text)
    if not options.tiny and options.shape is None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
