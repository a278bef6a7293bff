"""A run from its first file to its last: the folder, the report, and the lines that sum it up."""

from __future__ import annotations

import json
import logging
import shlex
import statistics
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebert.checkpoint.fs import write_atomic
from litebert.errors import MissingDependencyError
from litebert.recipes.card import render_card
from litebert.recipes.figures import save_plots
from litebert.recipes.finetune.hazards import advice
from litebert.recipes.finetune.same_run import require_same_settings, settings_facts
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.summary import summarize
from litebert.recipes.plots import draw_plots
from litebert.recipes.report import render_report
from litebert.recipes.run_folder import RunFolder
from litebert.recipes.summary import RunSummary
from litebert.recipes.verdict import judge
from litebert.settings import load_settings

if TYPE_CHECKING:
    from litebert.recipes.finetune.outcome import Outcome
    from litebert.recipes.finetune.work import AnyPlan

__all__ = ["finish_run", "joined_metrics", "located", "open_run", "result_lines", "start_run"]

SUMMARY = "summary.json"
log = logging.getLogger(__name__)


def start_run(plan: AnyPlan, out: Path | None, command: str) -> RunFolder:
    """Create the run folder with everything that is known before training.

    Raises:
        SettingsError: `out` is not empty.
        CheckpointError: it cannot be written.
    """
    settings = located(plan.settings)
    facts = data_facts(plan) | {"settings": settings_facts(settings)}
    name = Path(plan.settings.data.train).stem
    return RunFolder.start(out, name=name, command=command, settings=settings, facts=facts)


def located(settings: FinetuneSettings) -> FinetuneSettings:
    """Return the settings with absolute paths, so that a run can be resumed from anywhere."""
    data, model = settings.data, settings.model
    source = Path(model.source)
    return settings.model_copy(
        update={
            "data": data.model_copy(
                update={
                    "train": str(Path(data.train).absolute()),
                    "eval": str(Path(data.eval).absolute()) if data.eval else None,
                }
            ),
            "model": model.model_copy(
                update={"source": str(source.absolute()) if source.is_dir() else model.source}
            ),
        }
    )


def open_run(path: Path) -> tuple[RunFolder, FinetuneSettings]:
    """Return the folder and the resolved settings of a run that was started before.

    Raises:
        CheckpointError: no run folder, or its settings were changed since it was started.
        SettingsError: its settings cannot be read.
    """
    folder = RunFolder.open(path)
    settings = load_settings(FinetuneSettings, folder.config)
    require_same_settings(folder, settings)
    return folder, settings


def data_facts(plan: AnyPlan) -> dict[str, object]:
    """Return the content of `data.json`: files with hashes, splits, counts, and what was skipped."""
    return {
        "format_version": 1,
        "parts": [
            {
                "role": role,
                "file": str(table.path) if table else None,
                "sha256": table.sha256 if table else None,
                "examples": len(split.examples),
                "tokens": split.num_tokens,
            }
            for role, split, table in plan.parts()
        ],
        **plan.facts(),
        "notes": list(plan.notes),
        "skipped": [
            {"file": str(row.path), "line": row.line, "reason": row.reason} for row in plan.skipped
        ],
    }


def finish_run(outcome: Outcome, folder: RunFolder) -> RunSummary:
    """Write summary, plots, report and model card of a finished run."""
    command = (folder.path / "command.txt").read_text(encoding="utf-8").strip()
    summary = summarize(outcome, folder, command)
    folder.write_text(SUMMARY, summary.to_json())
    _write_parts(summary, folder)
    try:
        plots = draw_plots(summary)
    except MissingDependencyError as error:
        log.warning("the plots are left out: %s", error)
        plots = {}
    save_plots(plots, folder.plots)
    folder.write_text("report.html", render_report(summary, plots))
    card = render_card(summary)
    folder.write_text("README.md", card)
    for model in (folder.best, folder.last):
        write_atomic(model / "README.md", card.encode("utf-8"))
    folder.write_text(
        "metrics.jsonl", joined_metrics(folder, [seed.seed for seed in outcome.seeds])
    )
    return summary


def _write_parts(summary: RunSummary, folder: RunFolder) -> None:
    """Add slices and thresholds to `scores.json`; write the worst mistakes, one a line."""
    path = folder.path / "scores.json"
    scores: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    scores["slices"] = [asdict(item) for item in summary.slices]
    scores["abstention"] = [asdict(item) for item in summary.abstention]
    folder.write_json(path.name, scores)
    lines = [json.dumps(asdict(item), ensure_ascii=False) + "\n" for item in summary.mistakes]
    folder.write_text("mistakes.jsonl", "".join(lines))


def joined_metrics(folder: RunFolder, seeds: Iterable[int]) -> str:
    """Return the metric lines of all seeds, each with its seed."""
    lines: list[str] = []
    for seed in seeds:
        path = folder.checkpoints(seed) / "metrics.jsonl"
        known = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        lines += [json.dumps({"seed": seed} | json.loads(line)) + "\n" for line in known]
    return "".join(lines)


def result_lines(outcome: Outcome, folder: RunFolder) -> list[str]:
    """Return what a person reads at the end: scores side by side, the verdict, what to do next."""
    summary = RunSummary.from_json((folder.path / SUMMARY).read_text(encoding="utf-8"))
    metric = summary.metric
    lines = ["", f"{metric} on {summary.evaluated:,} held-out examples"]
    others = [name for name, *_ in getattr(outcome.plan, "others", ())]
    width = max(map(len, ["this model", *others, *(item.name for item in summary.baselines)]))
    lines += [f"  {item.name:<{width}} {item.scores[metric]:.4f}" for item in summary.baselines]
    values = [seed.score for seed in summary.seeds]
    lines.append(f"  {'this model':<{width}} {summary.scores[metric]:.4f}")
    if len(values) > 1:
        lines.append(
            f"  {'seeds':<{width}} median {statistics.median(values):.4f}, "
            f"from {min(values):.4f} to {max(values):.4f} in {len(values)} runs"
        )
    for name in others:
        found = [seed.scores[f"{metric}_{name}"] for seed in outcome.seeds if seed.scores]
        seeds = f" (median of the seeds {statistics.median(found):.4f})" if len(found) > 1 else ""
        lines.append(f"  {name:<{width}} {summary.scores[f'{metric}_{name}']:.4f}{seeds}")
    if metric in outcome.test_scores:
        lines.append(f"  {'test set':<{width}} {outcome.test_scores[metric]:.4f}")
    lines += ["", judge(summary).sentence, *(f"warning   {fault}" for fault in outcome.faults)]
    lines += [f"          {advice(outcome.plan.warnings)}"] if outcome.faults else []
    lines.append("")
    lines += [
        f"report    {folder.path / 'report.html'}",
        f"plots     {folder.plots}",
        f"model     {folder.best}",
        f"try       {summary.predict_command}",
        f"          litebert evaluate {shlex.quote(str(folder.path))} FILE",
    ]
    return lines
