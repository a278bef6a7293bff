"""ExecuTorch files of a model folder: size, difference from torch, and time of one text.

    OMP_NUM_THREADS=1 python -m benchmarks.mobile ../shared/models/kokoro-albert --work runs/mobile

Needs executorch and torchao (`litebert[mobile]`). Files stay in the work folder; times are processor
time, the least of five, one text of random pieces.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from litebert.export.base import Options, verify
from litebert.export.executorch.exporter import ExecuTorchExporter
from litebert.export.executorch.lowering import program
from litebert.export.onnx.source import load_source
from litebert.export.verify import Referee
from litebert.recipes.run_folder import environment

RESULTS = Path(__file__).parent / "results" / "mobile.json"
LENGTHS = (16, 64, 128)


def milliseconds(run: Any, length: int, words: int) -> float:
    """Processor time of one text, the least of five."""
    ids = torch.randint(0, words, (1, length), generator=torch.Generator().manual_seed(0))
    times: list[float] = []
    for _ in range(5):
        start = time.process_time()
        run(ids, torch.ones_like(ids), torch.zeros_like(ids))
        times.append(time.process_time() - start)
    return round(1000 * min(times), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--precision", default="fp32,int8")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    source, exporter = load_source(args.folder), ExecuTorchExporter()
    options = Options(tuple(args.precision.split(",")))
    results: dict[str, Any] = {"models": {}}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    results |= {
        "format_version": 1,
        "command": "OMP_NUM_THREADS=1 python -m benchmarks.mobile FOLDER --work runs/mobile",
        "environment": environment(),
    }
    rows = results["models"].setdefault(args.folder.name, {})
    started = time.process_time()
    for artifact in exporter.artifacts(source, options):
        seconds = time.process_time() - started
        (data,) = artifact.files.values()
        (args.work / f"{args.folder.name}-{artifact.precision}.pte").write_bytes(data)
        passed = verify(artifact, exporter, Referee(source.model), options)
        facts = artifact.facts
        run = program(data, tuple(facts["methods"][1:-1]), tuple(facts["outputs"]))
        words = source.parts.config.vocab_size
        rows[artifact.precision] = {
            **passed.to_json(),
            "agreement": float(passed.difference.agreement),
            "lowering_seconds": round(seconds, 1),
            "processor_ms": {str(n): milliseconds(run, n, words) for n in LENGTHS},
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(artifact.precision, rows[artifact.precision], flush=True)
        started = time.process_time()


if __name__ == "__main__":
    main()
