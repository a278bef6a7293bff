"""The results of GLUE as a table for a person, and as `scores.json`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from litebert import __version__
from litebert.recipes.glue.entries import ENTRIES
from litebert.tasks.baselines import MAJORITY, TFIDF

if TYPE_CHECKING:
    from litebert.recipes.glue.job import GlueJob, TaskResult
    from litebert.recipes.glue.submission import Submission

__all__ = ["means", "report_lines", "scores_json"]

_WITHOUT: Final = "wnli"
_TITLES: Final = {entry.key: entry.title for entry in ENTRIES}
_SHORT: Final = {
    "accuracy": "acc", "accuracy_mismatched": "acc-mm", "f1": "f1", "matthews": "mcc",
    "pearson": "pearson", "spearman": "spearman",
}  # fmt: skip


def means(results: Sequence[TaskResult], *, without: str = "") -> dict[str, float | None]:
    """Return the mean over the finished tasks of each column: median, majority, tfidf.

    A task counts once, by the mean of its metrics. Source: Wang et al. 2019 (GLUE), section 3.
    """
    chosen = [r for r in results if r.status == "finished" and r.key != without]
    columns: dict[str, Callable[[TaskResult], float | None]] = {
        "median": lambda r: r.median,
        MAJORITY: lambda r: r.baseline(MAJORITY),
        TFIDF: lambda r: r.baseline(TFIDF),
    }
    found: dict[str, float | None] = {}
    for name, value in columns.items():
        values = [v for r in chosen if (v := value(r)) is not None]
        found[name] = statistics.fmean(values) if values and len(values) == len(chosen) else None
    return found


def report_lines(results: Sequence[TaskResult], submission: Submission | None) -> list[str]:
    """Return the table, 0 to 100, and what has to be known about it."""
    head = (
        f"{'task':<7} {'kept model':<34} {'median':>7} {'spread':>7} {'constant':>9} {'tf-idf':>7}"
    )
    lines = ["", "GLUE dev, times 100", head]
    for result in results:
        if result.status != "finished":
            lines.append(f"{_TITLES[result.key]:<7} {result.status}: {result.note}")
            continue
        metrics = ", ".join(f"{_SHORT[k]} {100 * v:.1f}" for k, v in result.scores.items())
        lines.append(
            f"{_TITLES[result.key]:<7} {metrics:<34} {_cell(result.median):>7} "
            f"{_cell(result.spread):>7} {_cell(result.baseline(MAJORITY)):>9} "
            f"{_cell(result.baseline(TFIDF)):>7}"
        )
    lines += [_mean_line("mean", means(results))]
    if any(r.key == _WITHOUT and r.status == "finished" for r in results) and len(results) > 1:
        lines += [_mean_line("without WNLI, as papers report", means(results, without=_WITHOUT))]
    lines += [
        "",
        "median and spread are over the seeds; the kept model is the best seed on these rows",
    ]
    for result in results:
        if result.status == "finished" and result.note:
            lines.append(f"{_TITLES[result.key]}: {result.note}")
        constant = result.baseline(MAJORITY)
        if result.key == _WITHOUT or result.median is None or constant is None:
            continue
        if result.median <= constant:
            lines.append(
                f"{_TITLES[result.key]}: no better than the constant answer; more epochs, another "
                "learning rate (--set train.learning_rate=...) or a pretrained model"
            )
    if submission is not None:
        if submission.ax is not None:
            lines.append(f"AX: Matthews {100 * submission.ax:.1f}, by the model of MNLI")
        lines += [f"{name}.tsv: {why}" for name, why in submission.filled.items()]
        lines += ["", f"archive   {submission.path}"]
    return lines


def scores_json(
    job: GlueJob, results: Sequence[TaskResult], submission: Submission | None
) -> dict[str, Any]:
    """Return the content of `scores.json`: scores in [0, 1] (correlations in [-1, 1])."""
    return {
        "format_version": 1,
        "litebert": __version__,
        "told": job.to_json(),
        "tasks": {
            r.key: asdict(r) | {"score": r.score, "median": r.median, "spread": r.spread}
            for r in results
        },
        "mean": means(results),
        "mean_without_wnli": means(results, without=_WITHOUT),
        "ax_matthews": submission.ax if submission else None,
        "filled": submission.filled if submission else None,
    }


def _mean_line(name: str, values: dict[str, float | None]) -> str:
    return (
        f"{name:<42} {_cell(values['median']):>7} {'':>7} {_cell(values[MAJORITY]):>9} "
        f"{_cell(values[TFIDF]):>7}"
    )


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
