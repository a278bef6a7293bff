"""The tables of the report, each from the run summary alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litebert.recipes.markup import Html, element, table
from litebert.recipes.verdict import BASELINE_NAMES, format_score, readable
from litebert.tasks.scores import SCORES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litebert.recipes.summary import RunSummary

__all__ = [
    "class_counts_table",
    "class_scores_table",
    "confusions_table",
    "data_table",
    "facts_table",
    "mistakes_table",
    "model_table",
    "scores_table",
]

MAX_CONFUSIONS: Final = 30
MAX_TEXT: Final = 600
"""Characters of one text that are shown."""


def scores_table(summary: RunSummary) -> Html:
    """Every score of the model beside the same score of the simple models."""
    names = sorted(summary.scores, key=lambda name: name != summary.metric)
    others = [item for item in summary.baselines if item.scores]
    rows = [
        (
            readable(name),
            format_score(name, summary.scores[name]),
            *(format_score(name, o.scores[name]) if name in o.scores else "" for o in others),
            SCORES[name].meaning + ("" if SCORES[name].higher_is_better else " (lower is better)")
            if name in SCORES
            else "",
        )
        for name in names
    ]
    titles = [BASELINE_NAMES.get(item.name, item.name) for item in others]
    notes = element(
        "ul",
        *(
            element("li", f"{title}: {item.method}, {item.seconds:.1f} s")
            for title, item in zip(titles, others, strict=True)
        ),
        class_="note",
    )
    return Html(
        table(
            f"All scores on {summary.evaluated:,} evaluation examples",
            ("score", "this model", *titles, "meaning"),
            rows,
            numbers=range(1, 2 + len(others)),
            texts=(2 + len(others),),
            main=(0,) if summary.metric in summary.scores else (),
        )
        + (notes if others else "")
    )


def data_table(summary: RunSummary) -> Html:
    """Where the examples came from."""
    return table(
        "Sources",
        ("file", "role", "examples", "skipped", "note", "sha256"),
        [
            (d.name, d.role, f"{d.examples:,}", f"{d.skipped:,}", d.note, _digest(d.sha256))
            for d in summary.data
        ],
        numbers=(2, 3),
        texts=(4,),
    )


def class_counts_table(summary: RunSummary) -> Html:
    """Examples per class."""
    return table(
        "Examples per class",
        ("class", "train", "evaluation"),
        [(c.label, _meter(c.train, max(x.train for x in summary.label_counts)), f"{c.evaluation:,}")
         for c in summary.label_counts],
        numbers=(1, 2),
        tall=len(summary.label_counts) > 15,
    )  # fmt: skip


def class_scores_table(summary: RunSummary) -> Html:
    """Precision, recall and F1 per class, weakest first."""
    rows = sorted(summary.class_table, key=lambda row: row.f1)
    return table(
        "Scores per class, weakest F1 first",
        ("class", "F1", "precision", "recall", "examples", "answered"),
        [
            (r.label, f"{r.f1:.3f}", f"{r.precision:.3f}", f"{r.recall:.3f}", f"{r.support:,}",
             f"{r.predicted:,}")
            for r in rows
        ],
        numbers=range(1, 6),
        tall=len(rows) > 15,
    )  # fmt: skip


def confusions_table(summary: RunSummary) -> Html:
    """The most frequent pairs of true class and wrong answer."""
    pairs = [
        (count, row, column)
        for row, counts in enumerate(summary.confusion)
        for column, count in enumerate(counts)
        if row != column and count
    ]
    pairs.sort(key=lambda item: (-item[0], item[1], item[2]))
    support = [max(sum(counts), 1) for counts in summary.confusion]
    more = f", first {MAX_CONFUSIONS} of {len(pairs):,}" if len(pairs) > MAX_CONFUSIONS else ""
    return table(
        f"Most frequent confusions{more}",
        ("true class", "answered instead", "times", "share of the true class"),
        [
            (summary.labels[row], summary.labels[column], f"{count:,}",
             f"{100 * count / support[row]:.1f} %")
            for count, row, column in pairs[:MAX_CONFUSIONS]
        ],
        numbers=(2, 3),
        tall=len(pairs) > 15,
    )  # fmt: skip


def mistakes_table(summary: RunSummary) -> Html:
    """The wrong answers with the largest loss."""
    is_number = summary.kind == "regression"
    rows: list[tuple[object, ...]] = []
    for m in summary.mistakes:
        place = f"{m.path}:{m.line}"
        whole = m.text if m.pair is None else f"{m.text}\n— {m.pair}"
        shown = whole if len(whole) <= MAX_TEXT else whole[:MAX_TEXT] + "…"
        sure = f"{m.loss:.3g}" if is_number else f"{100 * m.confidence:.0f} %"
        rows.append((place, shown, m.truth, m.answer, sure))
    last = "squared error" if is_number else "confidence"
    return table(
        "Worst mistakes first",
        ("place", "text", "label", "answer", last),
        rows,
        numbers=(4,),
        texts=(1,),
        tall=len(rows) > 8,
    )


def model_table(summary: RunSummary) -> Html:
    """What was trained."""
    model = summary.model
    facts = {"model": model.name, "stored parameters": f"{model.parameters:,}"}
    if model.unshared_parameters:
        facts["without sharing"] = f"{model.unshared_parameters:,}"
    facts |= {"tokens at most": f"{summary.max_length:,}", "seed": str(summary.seed)}
    return facts_table("Model", facts | model.facts)


def facts_table(caption: str, facts: Mapping[str, str]) -> Html:
    """Names and values."""
    return table(caption, ("", ""), list(facts.items()))


def _digest(value: str) -> Html:
    shown = value[:12] + "…" if len(value) > 12 else value
    return element("code", shown, title=value or None)


def _meter(value: int, largest: int) -> Html:
    width = round(100 * value / max(largest, 1))
    bar = element("span", class_="bar", style=f"width:{width}%")
    return Html(element("span", bar, class_="track", aria_hidden="true") + f"{value:,}")
