"""The report of a compression step: what it cost and gained, as a table, JSON and part of the model card.

`report.json` of a folder keeps the steps before, so the last folder of a chain shows them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from litebert.checkpoint.files import CARD_FILE
from litebert.errors import DegradedError, LitebertError, SettingsError
from litebert.files import check_file, read_json
from litebert.recipes.compress_measure import (
    LATENCY_LENGTH,
    SPEED_LENGTH,
    SPEED_SEQUENCES,
    OutputDifference,
    Side,
)
from litebert.recipes.markup import inline
from litebert.recipes.verdict import format_score, readable
from litebert.tasks.scores import SCORES

__all__ = ["REPORT_FILE", "StepReport", "earlier_steps", "score_drop", "with_section"]

REPORT_FILE: Final = "report.json"
FORMAT_VERSION: Final = 1
MAX_REPORT_BYTES: Final = 4_000_000
MAX_STEPS: Final = 100
"""Steps of a chain that a report keeps; the oldest go first."""
_HEADING: Final = "## Compression"
_SECTION: Final = re.compile(r"^## Compression[ \t]*\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class StepReport:
    """One compression step.

    Attributes:
        step: the command, for example "quantize".
        before: the model it started from.
        after: the model it made.
        outputs: how alike their vectors are; None where the widths differ.
        threads: threads of the timed runs.
        data: name of the labelled file; empty without.
        max_drop: how much worse the score was allowed to become; None: any.
        facts: what the step itself has to say, JSON values only.
        notes: the same in sentences, for a person.
        figures: names of plots in `plots/` (NAME.svg and NAME.png).
        earlier: `report.json` entries of the steps before.
    """

    step: str
    before: Side
    after: Side
    outputs: OutputDifference | None
    threads: int
    data: str = ""
    max_drop: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    earlier: tuple[dict[str, Any], ...] = ()

    @property
    def drop(self) -> float | None:
        """How much worse the task's score is, in its unit; None without data."""
        return score_drop(self.before, self.after)

    def entry(self) -> dict[str, Any]:
        """Return this step as plain values."""
        return {
            "step": self.step,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "outputs": None if self.outputs is None else asdict(self.outputs),
            "threads": self.threads,
            "data": self.data,
            "drop": self.drop,
            "max_drop": self.max_drop,
            "facts": dict(self.facts),
            "notes": list(self.notes),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `report.json`, also for `--json`."""
        return {"format_version": FORMAT_VERSION, "steps": [*self.earlier, self.entry()]}

    def check(self) -> None:
        """Refuse a result that is worse than allowed.

        Raises:
            DegradedError: it is.
        """
        drop = self.drop
        if self.max_drop is None or drop is None:
            return
        if drop != drop or drop > self.max_drop + 1e-9:
            old, new = self.before.scores[self.before.metric], self.after.scores[self.before.metric]
            raise DegradedError(
                f"{readable(self.before.metric)} falls from {old:.4f} to {new:.4f} on "
                f"{self.after.examples:,} examples, by {drop:.4f}; --max-drop allows "
                f"{self.max_drop:g}. Nothing was written; change less, heal longer, or allow more",
                metric=self.before.metric,
                drop=drop,
                allowed=self.max_drop,
            )

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return what was measured: name, before, after, change."""
        a, b = self.before, self.after
        rows: list[tuple[str, str, str, str]] = []
        if a.metric and a.metric in a.scores and a.metric in b.scores:
            old, new = a.scores[a.metric], b.scores[a.metric]
            words = (format_score(a.metric, old), format_score(a.metric, new))
            rows.append((readable(a.metric), *words, f"{new - old:+.4f}"))
        rows += [
            ("weights file, MB", *_pair(a.weight_bytes / 1e6, b.weight_bytes / 1e6, 2)),
            ("parameters, M", *_pair(a.parameters / 1e6, b.parameters / 1e6, 3)),
        ]
        if a.depth != b.depth:
            rows.append(("depths", *_pair(a.depth, b.depth, 0)))
        if a.tokens_per_second and b.tokens_per_second:
            rows += [
                ("tokens/s", *_pair(a.tokens_per_second, b.tokens_per_second, 0)),
                ("ms for one text", *_pair(a.latency_ms, b.latency_ms, 1)),
            ]
        return rows

    def lines(self) -> list[str]:
        """Return the table and the notes for a person."""
        rows = [("", "before", "after", "change"), *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return [*lines, "", *self._explained(), *self.notes]

    def section(self) -> str:
        """Return the section of the model card: one table a step, the oldest first."""
        parts = [_HEADING, *(_earlier_part(entry) for entry in self.earlier)]
        name = f"`{inline(self.step)}`" if self.step.isidentifier() else inline(self.step)
        parts += [f"{name} of {inline(self.before.name)}:", _table(self.rows())]
        parts += ["\n".join(f"- {inline(line)}" for line in (*self._explained(), *self.notes))]
        parts += [f"![{name}](plots/{name}.svg)" for name in self.figures]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _explained(self) -> list[str]:
        """Under which conditions the numbers hold."""
        lines: list[str] = []
        if self.before.tokens_per_second:
            plural = "" if self.threads == 1 else "s"
            lines.append(
                f"Speed: PyTorch, {self.threads} thread{plural}, {SPEED_SEQUENCES} sequences of "
                f"{SPEED_LENGTH} tokens; one text has {LATENCY_LENGTH} tokens; medians of "
                "alternating runs."
            )
        if self.outputs is not None:
            lines.append(
                f"Vectors of {self.outputs.texts} texts: cosine {self.outputs.cosine_mean:.4f} on "
                f"average, {self.outputs.cosine_min:.4f} at least."
            )
        if self.data:
            limit = "" if self.max_drop is None else f"; a drop of {self.max_drop:g} was allowed"
            lines.append(f"Scored on {self.after.examples:,} examples of {self.data}{limit}.")
        else:
            lines.append("Not scored: no labelled data were given (--data).")
        return lines


def score_drop(before: Side, after: Side) -> float | None:
    """Return how much worse the main score of `after` is; negative if better, None without scores.

    Raises:
        SettingsError: the models have other scores, so they solve other tasks.
    """
    metric = before.metric
    if not metric:
        return None
    if metric not in after.scores or metric not in before.scores:
        raise SettingsError(
            f"the models have no common score: {metric!r} before, {after.metric!r} after"
        )
    sign = 1.0 if metric not in SCORES or SCORES[metric].higher_is_better else -1.0
    return sign * (before.scores[metric] - after.scores[metric])


def earlier_steps(folder: Path) -> tuple[dict[str, Any], ...]:
    """Return the steps that a folder's `report.json` tells; none where it has none or it is damaged.

    A report is information only: a damaged one never stands in the way of the next step.
    """
    path = folder / REPORT_FILE
    try:
        if check_file(path, max_bytes=MAX_REPORT_BYTES) is None:
            return ()
        steps = read_json(path, max_bytes=MAX_REPORT_BYTES).get("steps")
    except LitebertError:
        return ()
    if not isinstance(steps, list):
        return ()
    entries = [cast("dict[str, Any]", step) for step in steps if isinstance(step, dict)]
    return tuple(entries[-MAX_STEPS:])


def with_section(card: str, report: StepReport) -> str:
    """Return a model card with the section of the report, in place of an older one."""
    section = report.section()
    if _SECTION.search(card):
        return _SECTION.sub(lambda _: section + "\n", card, count=1).rstrip("\n") + "\n"
    return (card.rstrip("\n") + "\n\n" if card.strip() else "") + section


def read_card(folder: Path) -> str:
    """Return the model card of a folder; empty without."""
    path = folder / CARD_FILE
    try:
        if check_file(path, max_bytes=MAX_REPORT_BYTES) is None:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except (LitebertError, OSError):
        return ""


def dump_report(report: StepReport) -> str:
    """Return the text of `report.json`."""
    return json.dumps(report.to_dict(), indent=2, ensure_ascii=False) + "\n"


def _pair(old: float, new: float, digits: int) -> tuple[str, str, str]:
    change = f"x {new / old:.2f}" if old else ""
    return f"{old:,.{digits}f}", f"{new:,.{digits}f}", change


def _table(rows: list[tuple[str, str, str, str]]) -> str:
    lines = ["| | before | after | change |", "|---|---:|---:|---:|"]
    lines += ["| " + " | ".join(inline(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _earlier_part(entry: dict[str, Any]) -> str:
    """One line of a step before; whatever its file says is text only."""
    try:
        before, after = entry["before"], entry["after"]
        words = [
            f"{float(before['weight_bytes']) / 1e6:,.2f} to "
            f"{float(after['weight_bytes']) / 1e6:,.2f} MB",
            f"{float(before['parameters']) / 1e6:,.3f} to "
            f"{float(after['parameters']) / 1e6:,.3f} M parameters",
        ]
        metric = before["metric"]
        if metric and metric in before["scores"] and metric in after["scores"]:
            old, new = float(before["scores"][metric]), float(after["scores"][metric])
            words.insert(0, f"{metric} {old:.4f} to {new:.4f}")
        return f"Before that, {inline(str(entry['step'])[:40])}: {inline(', '.join(words))}."
    except (KeyError, TypeError, ValueError):
        return ""
