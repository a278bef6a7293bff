"""Speed and memory of `litebert prepare` on an input of a gigabyte or more.

Run: `python -m benchmarks.prepare [--megabytes 1024] [--workers 2]`. Books and articles of
`../shared` are written again and again, each copy with its own words swapped, as plain text and
JSON lines. The resident memory of all processes is added up five times a second, shared pages
counted in each of them, and the largest sum is kept.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import random
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LITEBERT_SHARED", ROOT.parent / "shared"))
RESULT = ROOT / "benchmarks" / "results" / "prepare.json"
SAMPLE_SECONDS = 0.2
SMALL_MEGABYTES = 10


def documents() -> list[str]:
    """Return books in stretches of forty paragraphs, and reading-test articles."""
    found: list[str] = []
    for path in sorted((SHARED / "data/corpora/classic_books").rglob("*.xz")):
        text = lzma.decompress(path.read_bytes()).decode("utf-8", "replace").replace("\r", "")
        blocks = [block.strip() for block in text.split("\n\n") if block.strip()]
        found += ["\n".join(blocks[at : at + 40]) for at in range(0, len(blocks), 40)]
    with tarfile.open(SHARED / "data/race/race-train-middle.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                found.append(str(json.load(file)["article"]).replace("\n\n", "\n"))
    return [text for text in found if len(text) > 200]


def variations(texts: list[str]) -> Iterator[str]:
    """Yield the documents over and over, in other orders, some of their words exchanged."""
    rng = random.Random(0)
    while True:
        for text in rng.sample(texts, len(texts)):
            words = text.split(" ")
            for _ in range(max(1, len(words) // 20)):
                a, b = rng.randrange(len(words)), rng.randrange(len(words))
                words[a], words[b] = words[b], words[a]
            yield " ".join(words)


def write_corpus(folder: Path, megabytes: int) -> int:
    """Write half as text, half as JSON lines; return the bytes on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = variations(documents())
    half = megabytes * 1_000_000 // 2
    with (folder / "corpus.txt").open("w", encoding="utf-8") as file:
        size = 0
        while size < half:
            size += file.write(next(stream) + "\n\n")
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        size = 0
        while size < half:
            size += file.write(json.dumps({"text": next(stream)}, ensure_ascii=False) + "\n")
    return sum(path.stat().st_size for path in folder.iterdir())


def measure(corpus: Path, tokenizer: Path, out: Path, workers: int, dedup: str) -> dict[str, Any]:
    """Run the command and watch its processes."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "litebert", "prepare", str(corpus), "-t", str(tokenizer)]
    command += ["-o", str(out), "--workers", str(workers), "--dedup", dedup, "--json"]
    load_before = os.getloadavg()
    started = time.monotonic()
    with (out.parent / "output.json").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        watched = psutil.Process(process.pid)
        peak, samples, count = 0, 0, 0
        cpu: dict[int, float] = {}
        while process.poll() is None:
            rss = 0
            try:
                tree = [watched, *watched.children(recursive=True)]
            except psutil.NoSuchProcess:
                break
            for item in tree:
                try:
                    rss += item.memory_info().rss
                    times = item.cpu_times()
                    cpu[item.pid] = times.user + times.system
                except psutil.NoSuchProcess:
                    continue
            peak, samples, count = max(peak, rss), samples + 1, max(count, len(tree))
            time.sleep(SAMPLE_SECONDS)
    if process.wait():
        raise SystemExit(f"{command} ended with {process.returncode}")
    seconds = time.monotonic() - started
    result = json.loads((out.parent / "output.json").read_text())
    counts = result["counts"]
    parent = cpu.pop(process.pid, 0.0)
    in_workers = sum(cpu.values())
    megabytes = counts["num_bytes"] / 1e6
    return {
        "dedup": dedup,
        "workers": workers,
        "text_megabytes": megabytes,
        "documents": counts["documents"],
        "dropped": counts["dropped"],
        "tokens": result["tokens"],
        "shards": result["shards"],
        "seconds": seconds,
        "megabytes_per_second": megabytes / seconds,
        "megabytes_per_cpu_second_of_workers": megabytes / in_workers,
        "megabytes_per_cpu_second_of_all": megabytes / (in_workers + parent),
        "peak_rss_megabytes_all_processes": peak / 1e6,
        "processes": count,
        "rss_samples": samples,
        "load_before": load_before,
        "load_after": os.getloadavg(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1100)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=Path, default=Path("/tmp/litebert-prepare"))  # noqa: S108
    parser.add_argument("--dedup", nargs="*", default=["none", "exact", "near"])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    work: Path = options.work
    shutil.rmtree(work, ignore_errors=True)
    small, large = work / "small", work / "large"
    write_corpus(small, SMALL_MEGABYTES)
    print(f"input: {write_corpus(large, options.megabytes) / 1e6:,.0f} MB", flush=True)
    from litebert.text.vocabulary import train_vocabulary

    train_vocabulary(documents()[:2000], 30_000, work / "vocabulary")
    runs: list[dict[str, Any]] = []
    for corpus, dedup in [(small, "none"), *((large, dedup) for dedup in options.dedup)]:
        run = measure(corpus, work / "vocabulary", work / "out", options.workers, dedup)
        runs.append({"input": corpus.name} | run)
        print(json.dumps(runs[-1], indent=1), flush=True)
        options.out.write_text(
            json.dumps(
                {
                    "how": "python -m benchmarks.prepare",
                    "python": platform.python_version(),
                    "cores": os.cpu_count(),
                    "note": "the machine was shared: see the load averages; the CPU-second "
                    "figures do not count waiting, but cores shared by threads are slower",
                    "runs": runs,
                },
                indent=1,
            )
            + "\n"
        )
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
