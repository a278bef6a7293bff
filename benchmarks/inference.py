"""litebert beside its peers on one machine: latency, sentences a second, memory, start.

    python -m benchmarks.inference            # about 12 minutes, nothing else must run
    python -m benchmarks.inference --rounds 1 --length 16 --mix 4 --out /tmp/try   # a trial

Each back-end has a process of its own with the same threads, and they take turns. Writes
benchmarks/results/inference.json and docs/results/inference.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.inference_page import page
from benchmarks.measuring import machine
from litebert.errors import LitebertError
from litebert.recipes.bench.engines import GEMM_FLOPS
from litebert.recipes.bench.run import Worker, typical_lengths

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "inference.json"
PAGE = ROOT / "docs" / "results" / "inference.md"
VOCABULARY = ROOT.parent / "shared" / "models" / "albert-english-vocab" / "30k-clean.model"
LENGTHS = (16, 64, 128, 384)
STARTS = 5


def make_model(folder: Path) -> None:
    """albert-base with random weights and a head of three classes."""
    import torch

    from litebert.checkpoint.folder import save_model
    from litebert.model.albert import AlbertWithHead
    from litebert.model.presets import preset
    from litebert.tasks.classification import SequenceClassification
    from litebert.text.tokenizer import Tokenizer

    task = SequenceClassification(
        kind="multiclass", labels=("bad", "good", "so-so"), metric="accuracy", max_length=512
    )
    config = preset("albert-base-v2").replace(
        id2label=task.config_labels(),
        problem_type=task.problem_type,
        litebert={"head": task.head},
    )
    torch.manual_seed(0)
    tokenizer = Tokenizer.from_pretrained(VOCABULARY)
    save_model(AlbertWithHead(config, task.head), folder, tokenizer, task.to_json())


def prepare(out: Path) -> tuple[dict[str, tuple[str, Path]], dict[str, str]]:
    """Make the model and its exports; return name -> (engine, path), and what is left out."""
    from benchmarks.inference_peers import usual_exports

    folder, export = out / "model", out / "export"
    make_model(folder)
    command = ["export", "onnx", str(folder), "--out", str(export), "--precision", "fp32,int8"]
    subprocess.run([sys.executable, "-m", "litebert", *command, "--no-plain"], check=True, cwd=ROOT)
    usual = usual_exports(folder, out)
    peers = "benchmarks.inference_peers"
    engines: dict[str, tuple[str, Path]] = {
        "litebert int8": ("litebert", export / "onnx" / "litebert_int8.onnx"),
        "litebert fp32": ("litebert", export / "onnx" / "litebert.onnx"),
        "litebert torch": ("torch", folder),
        "transformers eager": ("transformers", folder),
        "torch.compile": (f"{peers}:Compiled", folder),
        "torch dynamic int8": (f"{peers}:DynamicInt8", folder),
    }
    left_out: dict[str, str] = {}
    for name, engine, key in (
        ("ONNX Runtime fp32", "onnxruntime", "fp32"),
        ("ONNX Runtime int8, usual", "onnxruntime", "int8"),
        ("OpenVINO fp32", "openvino", "fp32"),
    ):
        path = usual[key]
        if isinstance(path, Path):
            engines[name] = (engine, path)
        else:
            left_out[name] = path
    left_out["ExecuTorch"] = "the package executorch is not installed here"
    return engines, left_out


def start(
    engines: dict[str, tuple[str, Path]], threads: int, left_out: dict[str, str]
) -> tuple[dict[str, Worker], dict[str, dict[str, Any]]]:
    """Start all; those of litebert several times, since their start is measured."""
    workers: dict[str, Worker] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name, (engine, path) in engines.items():
        print("starting", name, flush=True)
        seconds: list[float] = []
        try:
            for left in reversed(range(STARTS if engine == "litebert" else 1)):
                worker = Worker(engine, path, threads)
                seconds.append(worker.start_seconds)
                if left:
                    worker.close()
        except LitebertError as error:
            left_out[name] = str(error)
            continue
        workers[name] = worker
        rows[name] = {
            "start_seconds": statistics.median(seconds),
            "rss_mb_first": worker.ready["rss_mb"],
            "file_mb": path.stat().st_size / 1e6 if path.is_file() else None,
        }
    return workers, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--length", type=int, action="append")
    parser.add_argument("--mix", type=int, default=64)
    parser.add_argument("--only", default="", help="names of back-ends, with commas between")
    parser.add_argument("--out", type=Path, help="write inference.json and inference.md here")
    given = parser.parse_args()
    lengths, mix = tuple(given.length or LENGTHS), typical_lengths(given.mix)
    facts = machine()
    folder = Path(tempfile.mkdtemp(prefix="inference-"))
    try:
        engines, left_out = prepare(folder)
        if given.only:
            engines = {name: engines[name] for name in given.only.split(",")}
        workers, rows = start(engines, given.threads, left_out)
        product = Worker("gemm", Path(), given.threads)
        times: dict[str, dict[str, list[float]]] = {name: {} for name in workers}
        gemm: list[float] = []
        tasks: list[tuple[str, tuple[int, ...], bool]] = [(str(n), (n,), True) for n in lengths]
        tasks += [("mix_sorted", mix, True), ("mix_padded", mix, False)]
        for number in range(given.rounds):
            print("round", number + 1, "of", given.rounds, flush=True)
            for key, sizes, is_sorted in tasks:
                # Short ones are repeated: a single one of 20 ms says little.
                repeats = 1 if key.startswith("mix") else max(1, 256 // sizes[0])
                for name, worker in workers.items():
                    for answer in worker.turn(sizes, 30_000, number, repeats, is_sorted=is_sorted):
                        rows[name] |= {k: answer[k] for k in ("rss_mb", "peak_rss_mb")}
                        times[name].setdefault(key, []).append(answer["seconds"])
                if key == str(128):
                    for name in workers:
                        rows[name].setdefault("rss_mb_128", rows[name]["rss_mb"])
            gemm.append(product.run((), 8, 0)["seconds"])
        for worker in (*workers.values(), product):
            worker.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, values in times.items():
        for key, seconds in values.items():
            middle = statistics.median(seconds)
            if key.startswith("mix"):
                rows[name][f"{key}_per_second"] = len(mix) / middle
            else:
                rows[name][f"ms_{key}"] = 1e3 * middle
    result = {
        "machine": facts,
        "threads": given.threads,
        "rounds": given.rounds,
        "lengths": lengths,
        "mix": {"sentences": len(mix), "tokens": sum(mix)},
        "gemm_gflops": GEMM_FLOPS / statistics.median(gemm) / 1e9,
        "rows": rows,
        "left_out": left_out,
    }
    target, text = (
        (given.out / "inference.json", given.out / "inference.md") if given.out else (RESULT, PAGE)
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n")
    text.write_text(page(result))
    print(page(result))


if __name__ == "__main__":
    main()
