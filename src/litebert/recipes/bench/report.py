"""What was measured, as a table, as JSON and as a plot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from litebert.checkpoint.fs import write_atomic
from litebert.errors import DataError, SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.counting import flops_per_token, parameter_count
from litebert.recipes.bench.candidates import Candidate, Missing, find_candidates, shape_of
from litebert.recipes.bench.engines import GEMM_FLOPS
from litebert.recipes.bench.run import LENGTHS, BenchJob, measure, typical_lengths
from litebert.recipes.run_folder import environment
from litebert.runtime.threads import choose_threads

__all__ = ["BenchReport", "bench"]

MIX_TEXTS: Final = 256
"""Texts of the user's own file that are computed together."""


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All back-ends beside each other.

    Attributes:
        parameters: stored numbers, each shared one once.
        threads: that computed.
        mix: texts, tokens and where they are from.
        gemm_gflops: speed of a large product in float32.
        rows: one for each back-end, as `Measured.to_dict`, with size, speed and score.
        missing: back-ends that were not measured.
    """

    parameters: int
    threads: int
    mix: dict[str, Any]
    gemm_gflops: float
    rows: tuple[dict[str, Any], ...]
    missing: tuple[Missing, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {
            "format_version": 1,
            "parameters": self.parameters,
            "threads": self.threads,
            "mix": self.mix,
            "gemm_gflops": self.gemm_gflops,
            "backends": list(self.rows),
            "missing": [{"name": item.name, "reason": item.reason} for item in self.missing],
            "environment": environment(),
        }

    def lines(self) -> list[str]:
        """Return the table for a person."""
        lengths = [
            int(n) for n in next((r["latency_ms"] for r in self.rows if r["latency_ms"]), {})
        ]
        head = ["", "MB", "start s", "RSS MB", "peak", *(f"1 x {n} ms" for n in lengths)]
        head += ["texts/s", "of GEMM", "score"]
        table = [head, *(_cells(row, lengths) for row in self.rows)]
        widths = [max(len(row[i]) for row in table) for i in range(len(head))]
        lines = [
            f"{self.parameters:,} parameters, {self.threads} threads; the mix is {self.mix['texts']} "
            f"texts of {self.mix['tokens'] / self.mix['texts']:.0f} tokens ({self.mix['source']}); "
            f"GEMM {self.gemm_gflops:.0f} GFLOP/s",
        ]
        for row in table:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join(cells).rstrip())
        lines += [f"{row['name']}: {row['fault']}" for row in self.rows if row["fault"]]
        return lines + [f"without   {item.name}: {item.reason}" for item in self.missing]

    def save_plot(self, path: Path) -> None:
        """Draw the latencies over the length into a .png or .svg file.

        Raises:
            SettingsError: another kind of file.
            MissingDependencyError: matplotlib is not installed.
        """
        from litebert.recipes.figures import figure_style, new_figure, render

        if path.suffix not in (".png", ".svg"):
            raise SettingsError(f"the plot {path} must end in .png or .svg")
        with figure_style("bench"):
            figure = new_figure(6.4, 4.0)
            axes = figure.add_subplot()
            for row in self.rows:
                points = sorted((int(n), v["p50"]) for n, v in row["latency_ms"].items())
                if points:
                    axes.plot(*zip(*points, strict=True), marker="o", label=row["name"])
            axes.set(
                xlabel="tokens of one sequence", ylabel="milliseconds", xscale="log", yscale="log"
            )
            axes.legend()
            plot = render(figure)
        if plot is not None:
            write_atomic(path, plot.png if path.suffix == ".png" else plot.svg.encode())


def bench(
    sources: Sequence[Path],
    *,
    data: Path | None = None,
    lengths: Sequence[int] = LENGTHS,
    rounds: int = 7,
    threads: int | None = None,
    text_column: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> BenchReport:
    """Measure every back-end that can run these folders.

    Args:
        sources: model folders, run folders or exports of one model.
        data: own texts for the mix; where they have labels, the score as well.
        lengths: tokens of single sequences; those the model has no positions for are left out.
        rounds: repeats, 1 and more.
        threads: that compute; None: as many CPUs as this process may use.
        text_column: column of `data` with the text.
        say: told what happens.

    Raises:
        CheckpointError: no model.
        DataError: data that cannot be used.
        SettingsError: nothing to measure, or a number out of range.
    """
    if rounds < 1 or any(n < 3 for n in lengths) or not lengths:
        raise SettingsError("give at least one round, and lengths of 3 tokens and more")
    found: list[Candidate] = []
    missing: list[Missing] = []
    for source in sources:
        more, without = find_candidates(source)
        found += more
        missing += without
    names = {candidate.name for candidate in found}
    missing = [
        m for m in missing if m.name not in names and not (m.name == "onnx" and len(sources) > 1)
    ]
    if not found:
        reasons = "; ".join(f"{item.name}: {item.reason}" for item in missing)
        raise SettingsError(f"no back-end can run {sources[0]} here: {reasons}")
    config = AlbertConfig.from_dict(shape_of(sources[0]))
    positions = config.max_position_embeddings
    chosen = tuple(n for n in lengths if n <= positions)
    mix, origin = typical_lengths(most=min(128, positions)), "lognormal(3.2, 0.6), 5 to 128"
    if data is not None:
        mix, origin = _own_lengths(sources[0], data, text_column, positions), data.name
    job = BenchJob(chosen, mix, rounds, choose_threads(threads), config.vocab_size)
    measured, gemm = measure(found, job, say)
    peak = GEMM_FLOPS / median(gemm) / 1e9
    rows: list[dict[str, Any]] = []
    for candidate, result in zip(found, measured, strict=True):
        row = result.to_dict() | {"file_mb": candidate.file_bytes / 1e6}
        row |= _speed(row, config, mix, peak)
        row["score"] = None
        if data is not None and candidate.data is not None and result.fault is None:
            say(f"scoring   {candidate.name}")
            row["score"] = _score(candidate.data, data, text_column)
        rows.append(row)
    parameters = parameter_count(config)
    facts = {"texts": len(mix), "tokens": sum(mix), "source": origin}
    return BenchReport(parameters, job.threads, facts, peak, tuple(rows), tuple(missing))


def _speed(
    row: dict[str, Any], config: AlbertConfig, mix: Sequence[int], peak: float
) -> dict[str, Any]:
    seconds = row["mix_seconds"]
    if not seconds:
        return {"texts_per_second": None, "gflops": None, "of_gemm": None}
    flops = sum(length * flops_per_token(config, length) for length in mix)
    rate = flops / seconds / 1e9
    return {"texts_per_second": len(mix) / seconds, "gflops": rate, "of_gemm": rate / peak}


def _own_lengths(source: Path, data: Path, column: str | None, positions: int) -> tuple[int, ...]:
    """Tokens of the first texts of a file."""
    from litebert.data.lines import read_lines
    from litebert.recipes.embed import table_texts
    from litebert.recipes.run_folder import model_folder
    from litebert.runtime.exported import ExportedFolder, is_exported
    from litebert.text.tokenizer import Tokenizer

    texts = read_lines(data)[0] if ".txt" in data.suffixes else table_texts(data, column)[0]
    texts = [text for text in texts if text.strip()][:MIX_TEXTS]
    if not texts:
        raise DataError("there is no text to measure with", path=data)
    folder = ExportedFolder.open(source).path if is_exported(source) else model_folder(source)
    encodings = Tokenizer.from_pretrained(folder).encode_batch(texts, max_length=positions)
    return tuple(len(encoding.ids) for encoding in encodings)


def _score(model: Path, data: Path, column: str | None) -> dict[str, float] | None:
    """Return the main score by `litebert evaluate`, in a process of its own; None without labels."""
    command = [sys.executable, "-m", "litebert", "evaluate", str(model), str(data), "--json"]
    command += ["--text-column", column] if column else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    values = json.loads(done.stdout)
    return {values["metric"]: values["scores"][values["metric"]]}


def _cells(row: dict[str, Any], lengths: Sequence[int]) -> list[str]:
    def number(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:,.{digits}f}"

    latency = row["latency_ms"]
    cells = [row["name"], number(row["file_mb"], 1), number(row["cold_start_seconds"], 2)]
    cells += [number(row["rss_mb"], 0), number(row["peak_rss_mb"], 0)]
    for length in lengths:
        value = latency.get(str(length))
        cells.append(f"{value['p50']:,.1f}/{value['p99']:,.1f}" if value else "-")
    cells += [number(row["texts_per_second"], 1)]
    share = row["of_gemm"]
    cells += ["-" if share is None else f"{share:.0%}"]
    score = row["score"]
    return [*cells, "-" if not score else f"{next(iter(score.values())):.4f}"]
