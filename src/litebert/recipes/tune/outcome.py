"""What a search came to: its table, `tune.json`, and what is to be said about the best trial."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from litebert.recipes.tune.store import best_of
from litebert.recipes.verdict import format_score

if TYPE_CHECKING:
    from litebert.recipes.tune.space import Choice, Dimension
    from litebert.recipes.tune.store import TrialRecord
    from litebert.tasks.baselines import Baseline

__all__ = ["SearchOutcome"]

FORMAT_VERSION: Final = 1
MAX_SHOWN: Final = 30
"""Trials that the table shows; `tune.json` has all."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """A search that ended, or was asked to stop.

    Attributes:
        metric: main score.
        sign: 1.0 where a higher score is better, else -1.0.
        evaluated: examples that each trial was scored on.
        space: what varied.
        records: ended trials in the order of the starts.
        wanted: trials that were asked for.
        baselines: simple answers on the same split.
        importances: share of each dimension in the spread of scores, largest first.
        signal: number of the signal that stopped it, 0 for the time limit, None if it finished.
    """

    metric: str
    sign: float
    evaluated: int
    space: tuple[Dimension, ...]
    records: tuple[TrialRecord, ...]
    wanted: int
    baselines: tuple[Baseline, ...] = ()
    importances: dict[str, float] = field(default_factory=dict[str, float])
    signal: int | None = None

    @property
    def best(self) -> TrialRecord | None:
        """The best finished trial."""
        return best_of(self.records, self.sign)

    def to_json(self) -> dict[str, Any]:
        """Return the content of `tune.json`."""
        best = self.best
        return {
            "format_version": FORMAT_VERSION,
            "metric": self.metric,
            "higher_is_better": self.sign > 0,
            "evaluated": self.evaluated,
            "space": [dimension.to_json() for dimension in self.space],
            "best": None if best is None else best.number,
            "best_values": None if best is None else best.values,
            "trials": [asdict(record) for record in self.records],
            "baselines": {baseline.name: baseline.scores for baseline in self.baselines},
            "importances": self.importances,
        }

    def lines(self) -> list[str]:
        """Return the table of trials, best first, and what to think of the best score."""
        names = [dimension.name for dimension in self.space]
        rows = [["trial", "state", self.metric, *names, "seconds"]]
        rows += [
            [
                str(record.number),
                record.state,
                "-" if record.score is None else f"{record.score:.4f}",
                *(_value(record.values.get(name)) for name in names),
                f"{record.seconds:.0f}",
            ]
            for record in self._ranked()[:MAX_SHOWN]
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        if len(self.records) > MAX_SHOWN:
            lines.append(f"... and {len(self.records) - MAX_SHOWN:,} more in tune.json")
        notes = {record.note for record in self.records if record.note}
        lines += [f"failed    {note:.300}" for note in sorted(notes)[:3]]
        return [*lines, "", *self._judgement()]

    def _judgement(self) -> list[str]:
        best = self.best
        if best is None or best.score is None:
            return ["no trial has finished, so nothing is known yet"]
        shown = format_score(self.metric, best.score)
        done = sum(record.state == "done" for record in self.records)
        lines = [f"best      trial {best.number}: {self.metric} {shown}"]
        lines += [
            f"baseline  {b.name}: {self.metric} {format_score(self.metric, b.scores[self.metric])}"
            for b in self.baselines
            if self.metric in b.scores
        ]
        lost = [
            b.name
            for b in self.baselines
            if self.metric in b.scores
            and self.sign * b.scores[self.metric] >= self.sign * best.score
        ]
        if lost:
            lines.append(
                f"warning   no trial beats {' and '.join(lost)}: bring more data or pretrained weights "
                "before searching further"
            )
        if done > 1:
            lines.append(
                f"note      the best of {done} scores on the same {self.evaluated:,} examples is too good: "
                "train with best.toml on several seeds, and score once on a file that took no part"
            )
        return lines

    def _ranked(self) -> list[TrialRecord]:
        order = {"done": 0, "pruned": 1, "failed": 2}
        return sorted(
            self.records,
            key=lambda r: (order[r.state], -self.sign * _finite(r.score, self.sign), r.number),
        )


def _finite(score: float | None, sign: float) -> float:
    return score if score is not None and math.isfinite(score) else -sign * math.inf


def _value(value: Choice | None) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
