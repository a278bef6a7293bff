"""The end of a distillation: summary, curves, model card, and what it cost and gained."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint.files import CARD_FILE
from litebert.checkpoint.fs import write_atomic
from litebert.compress.teacher import Teacher
from litebert.errors import MissingDependencyError
from litebert.recipes.compress_step import StepResult, finish_folder
from litebert.recipes.distill.curves import draw_curves, render_card
from litebert.recipes.plain_folder import plain_folder
from litebert.settings import dump_toml

if TYPE_CHECKING:
    from litebert.recipes.compress_measure import MeasureOptions
    from litebert.recipes.compress_report import StepReport
    from litebert.recipes.distill.plan import DistillPlan
    from litebert.recipes.distill.run import DistillOutcome
    from litebert.recipes.run_folder import RunFolder

__all__ = ["SUMMARY", "finish_run"]

SUMMARY: Final = "summary.json"
log = logging.getLogger(__name__)


def finish_run(
    outcome: DistillOutcome, folder: RunFolder, options: MeasureOptions
) -> tuple[dict[str, Any], list[str]]:
    """Write summary, curves, card and report; return the summary and what a person reads.

    Args:
        outcome: a run that ended.
        folder: its folder.
        options: data to score teacher and student on, and how much worse the student may be.

    Raises:
        DegradedError: it is worse; the student stays in the run folder, without a report.
        LitebertError: as `finish_folder`.
    """
    summary = _summary(outcome, folder)
    folder.write_json(SUMMARY, summary)
    try:
        plots = draw_curves(summary)
    except MissingDependencyError as error:
        log.warning("the plots are left out: %s", error)
        plots = {}
    card = render_card(summary, folder.path.name)
    folder.write_text(CARD_FILE, card)
    write_atomic(folder.last / CARD_FILE, card.encode("utf-8", "replace"))
    notes = tuple(
        f"{name}: {values[0]} before, {values[1]} after"
        + (f", teacher {values[2]}" if values[2] != "-" else "")
        for name, *values in _rows(summary)
    )
    facts = {key: summary[key] for key in ("steps", "tokens_seen", "seconds", "learnt", "before",
                                           "after", "teacher")}  # fmt: skip
    result = StepResult(facts=facts, notes=notes, plots=plots)
    report = _report(outcome.plan, folder, result, options)
    lines = [
        f"{name:<28} {'  '.join(f'{v:>9}' for v in values)}" for name, *values in _rows(summary)
    ]
    lines = [f"{'':<28} {'   before      after    teacher':>9}", *lines, ""]
    if report is not None:
        lines += [*report.lines(), ""]
        summary["report"] = report.to_dict()
    return summary, [*lines, f"model     {folder.last}", f"plots     {folder.last / 'plots'}"]


def _report(
    plan: DistillPlan, folder: RunFolder, result: StepResult, options: MeasureOptions
) -> StepReport | None:
    """Compare the student with its teacher; with its own start where nothing of ours runs the teacher."""
    with TemporaryDirectory(prefix="litebert-teacher-") as scratch:
        if isinstance(plan.teacher, Teacher):
            task = None if plan.task is None else plan.task.to_json()
            before = plain_folder(plan.teacher_folder, Path(scratch), task=task)
        elif plan.student.folder is not None:
            before = plan.student.folder
        else:
            return None
        return finish_folder("distill", before, folder.last, result, options, name=folder.path.name)


def _summary(outcome: DistillOutcome, folder: RunFolder) -> dict[str, Any]:
    plan, result = outcome.plan, outcome.result
    lines = [
        json.loads(line)
        for line in (folder.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    train = [line for line in lines if line["kind"] == "train"]
    evals = [line for line in lines if line["kind"] == "eval"]
    names = sorted({name for line in evals for name in line["metrics"]})
    command = folder.path / "command.txt"
    return {
        "format_version": 1,
        "kind": "distillation",
        "command": command.read_text(encoding="utf-8").strip() if command.exists() else "",
        "settings": dump_toml(plan.settings),
        "described": plan.describe(),
        "learnt": dict(plan.settings.distill.weights),
        "status": result.status,
        "steps": result.step,
        "epochs": result.epoch,
        "tokens_seen": result.tokens_seen,
        "seconds": result.seconds,
        "before": outcome.start,
        "after": result.last_metrics,
        "teacher": outcome.teacher,
        "curves": {
            "train": {
                "tokens": [line["tokens_seen"] for line in train],
                "loss": [line["loss"] for line in train],
                "learning_rate": [line["learning_rate"] for line in train],
            },
            "eval": {
                "tokens": [line.get("tokens_seen") for line in evals],
                "step": [line["step"] for line in evals],
                **{name: [line["metrics"].get(name) for line in evals] for name in names},
            },
        },
    }


def _rows(summary: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(name, before, after, teacher) of everything that was compared."""
    rows: list[tuple[str, str, str, str]] = []
    for name, value in summary["after"].items():
        if name == "score":
            continue
        before, teacher = summary["before"].get(name), summary["teacher"].get(name)
        shown = ["-" if v is None else f"{v:.4f}" for v in (before, value, teacher)]
        rows.append((name, shown[0], shown[1], shown[2]))
    return rows
