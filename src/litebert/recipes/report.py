"""`report.html`: one run on one page that needs no network, no script and no other file."""

from __future__ import annotations

from importlib import resources
from statistics import median
from typing import TYPE_CHECKING, Final

from litebert.recipes.markup import Html, code_block, element, table, text
from litebert.recipes.report_tables import (
    class_counts_table,
    class_scores_table,
    confusions_table,
    data_table,
    facts_table,
    mistakes_table,
    model_table,
    scores_table,
)
from litebert.recipes.slice_tables import abstention_table, slice_tables
from litebert.recipes.verdict import BASELINE_NAMES, format_score, judge, readable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litebert.recipes.figures import Plot
    from litebert.recipes.summary import RunSummary

__all__ = ["CONTENT_POLICY", "render_report"]

CONTENT_POLICY: Final = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
"""Nothing is fetched and nothing runs, whatever the data holds."""


def render_report(summary: RunSummary, plots: Mapping[str, Plot] | None = None) -> str:
    """Return the page.

    Args:
        summary: all facts of the run; none of its text is trusted.
        plots: what `draw_plots` gave; without them the page has tables only.
    """
    figures = plots or {}
    sections = [
        ("warnings", "Warnings", _warnings(summary)),
        ("score", "Score", _score(summary, figures)),
        ("inferred", "What was inferred", _inferred(summary)),
        ("data", "Data", _data(summary, figures)),
        ("classes", "Classes", _classes(summary)),
        ("confusion", "Confusion", _confusion(summary, figures)),
        ("answers", "Answers and targets", _points(figures)),
        ("slices", "Scores by part", slice_tables(summary)),
        ("abstention", "Answering only when sure", abstention_table(summary)),
        ("calibration", "Calibration", _calibration(summary, figures)),
        ("training", "Training", _training(summary, figures)),
        ("mistakes", "Worst mistakes", _mistakes(summary)),
        ("use", "Use the model", _use(summary)),
        ("settings", "Model, settings, machine", _settings(summary)),
    ]
    filled = [(anchor, title, parts) for anchor, title, parts in sections if parts]
    links = [element("li", element("a", title, href=f"#{anchor}")) for anchor, title, _ in filled]
    style = resources.files("litebert.recipes").joinpath("report.css").read_text(encoding="utf-8")
    head = element(
        "head",
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{text(CONTENT_POLICY)}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="referrer" content="no-referrer">'),
        element("title", f"{summary.name} - litebert report"),
        element("style", Html(style)),
    )
    body = element(
        "body",
        _header(summary),
        element(
            "main",
            _tiles(summary),
            element("nav", element("ul", *links), aria_label="Sections"),
            *(
                element(
                    "section",
                    element("h2", title, id=f"{anchor}-title"),
                    *parts,
                    id=anchor,
                    class_="warnings" if anchor == "warnings" else None,
                    aria_labelledby=f"{anchor}-title",
                )
                for anchor, title, parts in filled
            ),
        ),
        element("footer", f"Written by litebert {summary.litebert_version}. Nothing on this page "
                "loads from elsewhere."),
    )  # fmt: skip
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def _header(summary: RunSummary) -> Html:
    verdict = judge(summary)
    sign = {"good": "✓", "bad": "✗"}.get(verdict.level, "?")
    return element(
        "header",
        element("h1", summary.name, dir="auto"),
        element("p", f"{_kind_words(summary)} · {summary.created}", class_="meta"),
        element(
            "div",
            element("strong", f"{sign} {verdict.headline}"),
            element("p", verdict.sentence),
            class_=f"verdict {verdict.level}",
            role="note",
            aria_label="Verdict",
        ),
    )


def _kind_words(summary: RunSummary) -> str:
    texts = " + ".join(summary.text_columns)
    words = {
        "binary": f"2 classes of {texts}",
        "multiclass": f"{len(summary.labels):,} classes of {texts}",
        "multilabel": f"any of {len(summary.labels):,} labels of {texts}",
        "regression": f"a number for {texts}",
    }.get(summary.kind, f"task {summary.kind}")
    return f"{words} · {summary.model.name}"


def _tiles(summary: RunSummary) -> Html:
    metric = summary.metric
    tiles: list[tuple[str, str]] = []
    if metric in summary.scores:
        tiles.append((readable(metric), format_score(metric, summary.scores[metric])))
    tiles += [
        (BASELINE_NAMES.get(item.name, item.name), format_score(metric, item.scores[metric]))
        for item in reversed(summary.baselines)
        if metric in item.scores
    ]
    tiles.append(("stored parameters", f"{summary.model.parameters:,}"))
    if summary.model.size_bytes:
        tiles.append(("weights file", f"{summary.model.size_bytes / 1e6:,.1f} MB"))
    if summary.seconds:
        tiles.append(("training time", _duration(summary.seconds)))
    return element(
        "dl", *(element("div", element("dt", k), element("dd", v)) for k, v in tiles),
        class_="tiles",
    )  # fmt: skip


def _warnings(summary: RunSummary) -> list[Html]:
    return [_list(summary.warnings)] if summary.warnings else []


def _score(summary: RunSummary, plots: Mapping[str, Plot]) -> list[Html]:
    parts = [
        *_figure(plots, "baselines", "Main score of the model and of the simple models", "medium"),
        scores_table(summary),
    ]
    if len(summary.seeds) > 1:
        values = [item.score for item in summary.seeds]
        shown = [
            format_score(summary.metric, x) for x in (median(values), min(values), max(values))
        ]
        parts += [
            element("h3", "Seeds"),
            element("p", f"Median {shown[0]}, from {shown[1]} to {shown[2]}."),
            table(
                f"{readable(summary.metric)} by seed",
                ("seed", "score", ""),
                [
                    (s.seed, format_score(summary.metric, s.score), "kept" if s.is_chosen else "")
                    for s in summary.seeds
                ],
                numbers=(1,),
                short=True,
            ),
        ]
    return parts


def _inferred(summary: RunSummary) -> list[Html]:
    return [_list(summary.inferred)] if summary.inferred else []


def _data(summary: RunSummary, plots: Mapping[str, Plot]) -> list[Html]:
    parts = [data_table(summary)] if summary.data else []
    parts += _figure(plots, "lengths", "Histogram of text lengths in tokens, and the cut", "medium")
    if summary.label_counts:
        parts.append(class_counts_table(summary))
    return parts


def _classes(summary: RunSummary) -> list[Html]:
    return [class_scores_table(summary)] if summary.class_table else []


def _confusion(summary: RunSummary, plots: Mapping[str, Plot]) -> list[Html]:
    if not summary.confusion:
        return []
    return [
        *_figure(plots, "confusion", "Confusion matrix: true classes by answers", "medium"),
        confusions_table(summary),
    ]


def _points(plots: Mapping[str, Plot]) -> list[Html]:
    return _figure(plots, "points", "Answers over targets; the line is where they agree", "narrow")


def _calibration(summary: RunSummary, plots: Mapping[str, Plot]) -> list[Html]:
    if not summary.reliability:
        return []
    after = summary.scores.get("ece")
    sentence = f"The logits are divided by the temperature {summary.temperature:.3g}"
    if summary.ece_before is not None and after is not None:
        sentence += (
            f", which changes the mean gap between confidence and accuracy from "
            f"{100 * summary.ece_before:.1f} to {100 * after:.1f} points"
        )
    return [
        element("p", sentence + "."),
        *_figure(plots, "reliability", "Share of right answers over confidence", "narrow"),
        element("p", "Each half of the evaluation examples was scored with the temperature that "
                "fits the other half; the figure shows all with the one that was kept.", class_="note"),
    ]  # fmt: skip


def _training(summary: RunSummary, plots: Mapping[str, Plot]) -> list[Html]:
    parts = _figure(plots, "curves", "Training loss, learning rate and evaluation by step", "")
    if summary.steps:
        words = [f"{summary.steps:,} steps in {_duration(summary.seconds)}"]
        if summary.tokens_per_second:
            words.append(f"{summary.tokens_per_second:,.0f} tokens per second")
        if summary.best_step is not None:
            words.append(f"the kept model is that of step {summary.best_step:,}")
        parts.append(element("p", ", ".join(words) + "."))
    return parts


def _mistakes(summary: RunSummary) -> list[Html]:
    if not summary.mistakes:
        return []
    return [
        element("p", "The model was most certain of these wrong answers. Read them first: some are "
                "wrong labels.", class_="note"),
        mistakes_table(summary),
    ]  # fmt: skip


def _use(summary: RunSummary) -> list[Html]:
    parts = [element("p", "Predict:"), code_block(summary.predict_command)]
    if summary.resume_command:
        parts += [element("p", "Go on training:"), code_block(summary.resume_command)]
    parts += [element("p", "This run was started by:"), code_block(summary.command)]
    if summary.limits:
        parts += [element("h3", "Limits"), _list(summary.limits)]
    return parts


def _settings(summary: RunSummary) -> list[Html]:
    parts = [model_table(summary)]
    if summary.environment:
        parts.append(facts_table("Machine and versions", summary.environment))
    if summary.settings_toml:
        parts.append(
            element(
                "details", element("summary", "All settings"), code_block(summary.settings_toml)
            )
        )
    return parts


def _figure(plots: Mapping[str, Plot], name: str, title: str, width: str) -> list[Html]:
    if name not in plots:
        return []
    drawing = Html(plots[name].for_page(text(title)))
    return [element("figure", drawing, class_=width or None, tabindex="0")]


def _list(items: tuple[str, ...]) -> Html:
    return element("ul", *(element("li", item, dir="auto") for item in items))


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"
