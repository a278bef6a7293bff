"""Speed and memory of the model beside transformers: one machine, one run, taking turns.

    python -m benchmarks.speed            # about 8 minutes on 2 quiet cores
    python -m benchmarks.speed --quick    # smoke test

Both sides hold the same weights, see the same batches of 32 texts (lognormal(3.2, 0.6) tokens,
5..128) and take turns, so that a busy machine slows both. Reported are medians. "Real tokens" are
those of the texts, not padding. The ceiling is a 2048 x 768 x 3072 float32 product, measured
between the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measuring import current_rss, machine, measure_turns, peak_rss, seconds
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.counting import flops_per_token
from litebert.model.packing import Packing
from litebert.model.presets import preset

RESULTS = Path(__file__).parent / "results" / "speed.json"
BATCH = 32
VOCABULARY = 30_000
SHAPES: dict[str, dict[str, int]] = {
    "base": {},
    "384x6": {
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "intermediate_size": 1536,
        "num_attention_heads": 12,
    },
}
LATENCY_TOKENS = (16, 64, 128, 384)
TARGETS = {
    "train_speedup": 2.2,
    "train_of_peak": 0.8,
    "memory_ratio": 0.7,
    "predict_speedup": 2.5,
    "latency_ratio": 1.0,
}


@dataclass(frozen=True)
class Rounds:
    """How often each measurement is repeated."""

    train: int
    predict: int
    latency: int
    memory_steps: int


FULL = {"base": Rounds(7, 9, 15, 3), "384x6": Rounds(15, 15, 25, 4)}
QUICK = {"base": Rounds(1, 1, 2, 1), "384x6": Rounds(2, 2, 3, 1)}


@dataclass(frozen=True)
class TextBatch:
    """One batch of texts, packed and padded."""

    lengths: list[int]
    packed: Tensor
    padded: Tensor
    mask: Tensor
    labels: Tensor

    @property
    def tokens(self) -> int:
        """Real tokens of the batch."""
        return sum(self.lengths)


def make_batches(count: int) -> list[TextBatch]:
    rng = np.random.default_rng(12345)
    batches = []
    for _ in range(count):
        lengths = np.clip(rng.lognormal(3.2, 0.6, BATCH).round(), 5, 128).astype(int).tolist()
        packed = torch.from_numpy(rng.integers(5, VOCABULARY, sum(lengths)))
        packing = Packing.from_lengths(lengths)
        labels = torch.from_numpy(rng.integers(0, 2, BATCH))
        batches.append(
            TextBatch(lengths, packed, packing.unpack(packed), packing.mask().long(), labels)
        )
    return batches


def make_config(shape: str) -> AlbertConfig:
    return preset("albert-base-v2", **SHAPES[shape])


def make_theirs(config: AlbertConfig) -> nn.Module:
    import transformers

    values = config.to_dict()
    for key in ("litebert", "model_type", "architectures"):
        values.pop(key, None)
    torch.manual_seed(0)
    return transformers.AlbertForSequenceClassification(transformers.AlbertConfig(**values))


def make_ours(config: AlbertConfig, theirs: nn.Module | None = None) -> AlbertWithHead:
    torch.manual_seed(0)
    ours = AlbertWithHead(config, "sequence")
    if theirs is not None:
        from litebert.checkpoint.keys import to_published

        published = theirs.state_dict()
        state = {
            name: published[to_published(name.removeprefix("model."), inner=1, head="sequence")]
            for name in ours.state_dict()
        }
        ours.load_state_dict(state)
    return ours


class OurLoop:
    """Packed batches, fused AdamW: what litebert's training loop does."""

    def __init__(self, model: AlbertWithHead) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step(self, batch: TextBatch) -> None:
        """Forward, backward, clip, update."""
        packing = Packing.from_lengths(batch.lengths)
        output = self.model.forward_packed(batch.packed, packing, labels=batch.labels)
        assert output.loss is not None
        output.loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def predict(self, batch: TextBatch) -> Tensor:
        """Logits of the batch."""
        with torch.inference_mode():
            logits = self.model.forward_packed(
                batch.packed, Packing.from_lengths(batch.lengths)
            ).logits
        assert isinstance(logits, Tensor)
        return logits


class TheirLoop:
    """The usual loop: pad to the longest text of the batch, AdamW."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step(self, batch: TextBatch) -> None:
        """Forward, backward, clip, update."""
        output = self.model(input_ids=batch.padded, attention_mask=batch.mask, labels=batch.labels)
        output.loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def predict(self, batch: TextBatch) -> Tensor:
        """Logits of the batch."""
        with torch.inference_mode():
            return self.model(input_ids=batch.padded, attention_mask=batch.mask).logits


def measure_latency(ours: nn.Module, theirs: nn.Module, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of one text, through the public padded call of each side."""
    found: dict[str, dict[str, float]] = {}
    for tokens in LATENCY_TOKENS:
        ids = torch.randint(5, VOCABULARY, (1, tokens))
        mask = torch.ones_like(ids)
        times: tuple[list[float], list[float]] = ([], [])
        with torch.inference_mode():
            for turn in range(rounds + 2):
                for side, model in enumerate((ours, theirs)):
                    taken = seconds(
                        lambda model=model, ids=ids, mask=mask: model(
                            input_ids=ids, attention_mask=mask
                        )
                    )
                    if turn >= 2:  # the first turns warm up
                        times[side].append(1e3 * taken)
        found[str(tokens)] = {
            "ours_ms": statistics.median(times[0]),
            "theirs_ms": statistics.median(times[1]),
            "ratio": statistics.median(a / b for a, b in zip(*times, strict=True)),
        }
    return found


def run_for_memory(side: str, shape: str, steps: int) -> None:
    """Train a few steps in this process and print its peak memory; called in a process of its own."""
    config, batches = make_config(shape), make_batches(4)
    loop = OurLoop(make_ours(config)) if side == "ours" else TheirLoop(make_theirs(config))
    loop.model.train()
    start = current_rss()
    longest = max(batches, key=lambda batch: batch.tokens)
    for _ in range(steps):
        loop.step(longest)
    print(json.dumps({"peak_bytes": peak_rss(), "before_training_bytes": start}))


def measure_memory(shape: str, steps: int) -> dict[str, float]:
    found: dict[str, dict[str, int]] = {}
    for side in ("ours", "theirs"):
        command = [sys.executable, "-m", "benchmarks.speed", "--memory", side]
        command += ["--shape", shape, "--steps", str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[side] = json.loads(done.stdout.splitlines()[-1])
    ours, theirs = found["ours"], found["theirs"]
    growth = {
        side: values["peak_bytes"] - values["before_training_bytes"]
        for side, values in found.items()
    }
    return {
        "ours_peak_bytes": ours["peak_bytes"],
        "theirs_peak_bytes": theirs["peak_bytes"],
        "ratio": ours["peak_bytes"] / theirs["peak_bytes"],
        "ours_growth_bytes": growth["ours"],
        "theirs_growth_bytes": growth["theirs"],
        "growth_ratio": growth["ours"] / growth["theirs"],
    }


def measure_shape(shape: str, rounds: Rounds) -> dict[str, Any]:
    config, batches = make_config(shape), make_batches(4)
    theirs = TheirLoop(make_theirs(config))
    ours = OurLoop(make_ours(config, theirs.model))
    for loop in (ours, theirs):
        loop.model.eval()
    difference = (ours.predict(batches[0]) - theirs.predict(batches[0])).abs().max().item()
    assert difference < 1e-4, f"the two sides compute different things: {difference:.1e}"

    def flops(batch: TextBatch) -> float:
        return float(sum(length * flops_per_token(config, length) for length in batch.lengths))

    print(f"{shape}: predict", flush=True)
    predict = measure_turns(ours.predict, theirs.predict, batches, rounds.predict, flops)
    print(f"{shape}: latency", flush=True)
    latency = measure_latency(ours.model, theirs.model, rounds.latency)
    for loop in (ours, theirs):
        loop.model.train()
    print(f"{shape}: train", flush=True)
    train = measure_turns(
        ours.step, theirs.step, batches, rounds.train, lambda batch: 3 * flops(batch)
    )
    print(f"{shape}: memory", flush=True)
    memory = measure_memory(shape, rounds.memory_steps)
    padded = sum(batch.padded.numel() for batch in batches)
    return {
        "config": {"preset": "albert-base-v2", **SHAPES[shape]},
        "padded_per_real_token": padded / sum(batch.tokens for batch in batches),
        "largest_logit_difference": difference,
        "train": train,
        "predict": predict,
        "latency_batch_1": latency,
        "memory": memory,
        "rounds": asdict(rounds),
    }


def verdicts(shape: str, found: dict[str, Any]) -> dict[str, bool]:
    """Which targets were met; the share of the peak is asked of the base shape only."""
    met = {
        "train_speedup": found["train"]["speedup"] >= TARGETS["train_speedup"],
        "predict_speedup": found["predict"]["speedup"] >= TARGETS["predict_speedup"],
        "memory_ratio": found["memory"]["ratio"] <= TARGETS["memory_ratio"],
        "latency_ratio": all(
            row["ratio"] <= TARGETS["latency_ratio"] for row in found["latency_batch_1"].values()
        ),
    }
    if shape == "base":
        met["train_of_peak"] = found["train"]["of_peak"] >= TARGETS["train_of_peak"]
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round each; writes no file")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON goes")
    parser.add_argument("--threads", type=int, help="torch threads; default: all cores")
    parser.add_argument("--shape", choices=list(SHAPES), help="only this shape")
    parser.add_argument("--memory", choices=["ours", "theirs"], help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.memory:
        run_for_memory(options.memory, options.shape, options.steps)
        return
    facts = machine()
    start = time.perf_counter()
    rounds = QUICK if options.quick else FULL
    shapes = [options.shape] if options.shape else list(SHAPES)
    results = {shape: measure_shape(shape, rounds[shape]) for shape in shapes}
    report = {
        "machine": facts | {"load_after": os.getloadavg()[0]},
        "seconds": time.perf_counter() - start,
        "targets": TARGETS,
        "met": {shape: verdicts(shape, found) for shape, found in results.items()},
        "results": results,
    }
    text = json.dumps(report, indent=1)
    print(text)
    if not options.quick:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
