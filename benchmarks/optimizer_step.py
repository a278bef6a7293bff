"""How long one optimizer update takes, beside the forward and backward pass that it follows.

    python -m benchmarks.optimizer_step            # about 3 minutes on one thread

The model is ALBERT-base with its pretraining head; a pass sees 2 x 512 tokens, 77 of each sequence
masked (15 %). The optimizers take turns, so that a busy machine slows all; reported are medians and
the least. The share is that of an update after a step of so many tokens, all passes counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing
from litebert.model.presets import preset
from litebert.train.optim import OPTIMIZERS, make_optimizer
from litebert.train.settings import TrainSettings

RESULTS = Path(__file__).parent / "results" / "optimizer-step.json"
LENGTHS = [512, 512]
STEP_TOKENS = (1024, 16_384, 2_097_152)
"""Tokens per step: this pass, 32 x 512, and the paper's 4096 x 512."""


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def make_pass(model: AlbertWithHead, vocab_size: int) -> Callable[[], None]:
    """Return a function that leaves the gradient of a masked-token loss in the model."""
    generator = torch.Generator().manual_seed(0)
    tokens = sum(LENGTHS)
    ids = torch.randint(5, vocab_size, (tokens,), generator=generator)
    masked = torch.randperm(tokens, generator=generator)[: 77 * len(LENGTHS)]
    packing = Packing.from_lengths(LENGTHS)
    mlm: Any = model.heads["mlm"]

    def run() -> None:
        model.zero_grad()
        states = model.model.forward_packed(ids, packing).last_hidden_state
        logits = mlm(states[masked], model.model.embeddings.token.weight)
        functional.cross_entropy(logits, ids[masked]).backward()

    return run


def measure(rounds: int) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config: AlbertConfig = preset("albert-base-v2")
    model = AlbertWithHead(config, "pretraining").train()
    step = make_pass(model, config.vocab_size)
    optimizers = {}
    for name in OPTIMIZERS:
        settings = TrainSettings(optimizer=name, learning_rate=1e-6)
        optimizers[name] = make_optimizer(model, settings)
    passes: list[float] = []
    updates: dict[str, list[float]] = {name: [] for name in optimizers}
    step()
    for optimizer in optimizers.values():
        optimizer.step()  # makes the memory
    for _ in range(rounds):
        passes.append(seconds(step))
        for name, optimizer in optimizers.items():
            updates[name].append(seconds(optimizer.step))
    one_pass = statistics.median(passes)
    results = {}
    for name, times in updates.items():
        median = statistics.median(times)
        results[name] = {
            "milliseconds": 1e3 * median,
            "least_milliseconds": 1e3 * min(times),
            "state_bytes": state_bytes(optimizers[name]),
            "share_of_step": {
                tokens: median / (median + one_pass * tokens / sum(LENGTHS))
                for tokens in STEP_TOKENS
            },
        }
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "pass_tokens": sum(LENGTHS),
        "pass_seconds": one_pass,
        "least_pass_seconds": min(passes),
        "optimizers": results,
        "torch_muon_seconds": torch_muon_seconds(model),
    }


def torch_muon_seconds(model: nn.Module) -> float:
    """Return the time of one update of one H x H matrix by `torch.optim.Muon`, in bfloat16."""
    weight = nn.Parameter(model.get_parameter("model.encoder.attentions.0.query.weight").detach())
    optimizer = torch.optim.Muon([weight], lr=1e-6)
    weight.grad = torch.randn_like(weight)
    return seconds(optimizer.step)


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    return sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": 1,
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "load_before": os.getloadavg()[0],
    }
    results = measure(arguments.rounds)
    machine["load_after"] = os.getloadavg()[0]
    text = json.dumps({"machine": machine, **results}, indent=1) + "\n"
    arguments.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
