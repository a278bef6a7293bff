"""The end of a distillation: summary, and the lines that a person reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from litebert.recipes.distill.run import DistillOutcome
    from litebert.recipes.run_folder import RunFolder

__all__ = ["SUMMARY", "finish_run"]

SUMMARY: Final = "summary.json"


def finish_run(outcome: DistillOutcome, folder: RunFolder) -> list[str]:
    """Write the summary of a finished run; return what a person reads."""
    result = outcome.result
    table = {
        "format_version": 1,
        "kind": "distillation",
        "steps": result.step,
        "tokens_seen": result.tokens_seen,
        "seconds": result.seconds,
        "before": outcome.start,
        "after": result.last_metrics,
        "teacher": outcome.teacher,
    }
    folder.write_text(SUMMARY, json.dumps(table, indent=2) + "\n")
    lines = [f"{'':<28} {'before':>9} {'after':>9} {'teacher':>9}"]
    for name, value in result.last_metrics.items():
        before, teacher = outcome.start.get(name), outcome.teacher.get(name)
        shown = [f"{v:9.4f}" if v is not None else f"{'-':>9}" for v in (before, value, teacher)]
        lines.append(f"{name:<28} {' '.join(shown)}")
    return [*lines, "", f"model     {folder.last}"]
