"""`README.md` of a model folder: the model card, with everything needed to repeat the run."""

from __future__ import annotations

import json
import re
from statistics import median
from typing import TYPE_CHECKING, Final

from litebert.recipes.markup import clean, fence, inline
from litebert.recipes.verdict import BASELINE_NAMES, format_score, judge, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litebert.recipes.summary import RunSummary

__all__ = ["render_card"]

MAX_CLASS_ROWS: Final = 30
PIPELINES: Final = {
    "sequence": "text-classification",
    "token": "token-classification",
    "span": "question-answering",
    "span_joint": "question-answering",
    "choice": "multiple-choice",
    "embedding": "sentence-similarity",
}
"""Head word -> the word of the model hub for what such a model does."""
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_LICENSE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")


def render_card(summary: RunSummary) -> str:
    """Return the Markdown of the card, YAML header first; no text of the run is trusted."""
    parts = [
        _header(summary),
        f"# {inline(summary.name)}",
        _introduction(summary),
        "## Score",
        _scores(summary),
        *_classes(summary),
        "## Use",
        fence(summary.predict_command, "sh"),
        *_python(summary),
        *_calibration(summary),
        "## Data",
        _data(summary),
        "## Training",
        "This command made the model:",
        fence(summary.command, "sh"),
        _training(summary),
        *_settings(summary),
        "## Limits",
        _limits(summary),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _python(summary: RunSummary) -> list[str]:
    if summary.head != "sequence":
        return []
    code = 'import litebert\n\nmodel = litebert.load("path/to/this/folder")\n'
    return ["In Python:", fence(f"{code}print(model.predict([{_sample(summary)}]))", "python")]


def _header(summary: RunSummary) -> str:
    metric = summary.metric
    lines = ["---"]
    if _LANGUAGE.fullmatch(summary.language):
        lines.append(f"language: {_yaml(summary.language)}")
    word = summary.license if _LICENSE.fullmatch(summary.license) else "other"
    lines += [
        f"license: {_yaml(word.lower())}",
        "library_name: transformers",
        f"pipeline_tag: {PIPELINES.get(summary.head, PIPELINES['sequence'])}",
        "tags:",
        *(f"- {tag}" for tag in ("albert", "litebert", _kind_tag(summary))),
        "metrics:",
        f"- {_yaml(metric)}",
    ]  # fmt: skip
    if metric in summary.scores:
        lines += [
            "model-index:",
            f"- name: {_yaml(summary.name)}",
            "  results:",
            "  - task:",
            f"      type: {PIPELINES.get(summary.head, PIPELINES['sequence'])}",
            "    dataset:",
            f"      name: {_yaml(_evaluation_name(summary))}",
            "      type: local",
            "    metrics:",
            f"    - type: {_yaml(metric)}",
            f"      value: {summary.scores[metric]:.6g}",
        ]
    return "\n".join([*lines, "---"])


def _kind_tag(summary: RunSummary) -> str:
    is_classes = summary.kind in ("binary", "multiclass", "multilabel")
    return f"{summary.kind}-classification" if is_classes else summary.kind


def _introduction(summary: RunSummary) -> str:
    texts = " + ".join(inline(column) for column in summary.text_columns)
    what = {
        "binary": "one of 2 classes",
        "multiclass": f"one of {len(summary.labels):,} classes",
        "multilabel": f"any of {len(summary.labels):,} labels",
        "regression": "a number",
    }.get(summary.kind)
    gives = (
        f"Gives {what} for {texts}." if what else f"Trained for the task {inline(summary.kind)}."
    )
    lines = [f"{gives} {inline(judge(summary).sentence)}"]
    if summary.labels:
        shown = ", ".join(inline(label) for label in summary.labels[:MAX_CLASS_ROWS])
        rest = len(summary.labels) - MAX_CLASS_ROWS
        lines.append(f"Labels: {shown}" + (f" and {rest:,} more." if rest > 0 else "."))
    return "\n\n".join(lines)


def _scores(summary: RunSummary) -> str:
    names = sorted(summary.scores, key=lambda name: name != summary.metric)
    others = [item for item in summary.baselines if item.scores]
    head = ["score", "this model", *(BASELINE_NAMES.get(o.name, o.name) for o in others)]
    rows = [
        [
            readable(name),
            format_score(name, summary.scores[name]),
            *(format_score(name, o.scores[name]) if name in o.scores else "" for o in others),
        ]
        for name in names
    ]
    parts = [f"On {summary.evaluated:,} evaluation examples:", _table(head, rows)]
    parts.append(
        "\n".join(
            f"- {inline(BASELINE_NAMES.get(o.name, o.name))}: {inline(o.method)}" for o in others
        )
    )
    if len(summary.seeds) > 1:
        values = [item.score for item in summary.seeds]
        low, middle, high = (
            format_score(summary.metric, x) for x in (min(values), median(values), max(values))
        )
        seeds = ", ".join(str(item.seed) for item in summary.seeds)
        parts.append(f"Seeds {seeds}: median {middle}, from {low} to {high}.")
    return "\n\n".join(part for part in parts if part)


def _classes(summary: RunSummary) -> list[str]:
    if not summary.class_table:
        return []
    weakest = sorted(summary.class_table, key=lambda row: row.f1)[:MAX_CLASS_ROWS]
    rows = [
        [r.label, f"{r.precision:.3f}", f"{r.recall:.3f}", f"{r.f1:.3f}", f"{r.support:,}"]
        for r in weakest
    ]
    cut = len(summary.class_table) > MAX_CLASS_ROWS
    title = f"The {MAX_CLASS_ROWS} weakest classes:" if cut else "Per class, weakest first:"
    return [title, _table(["class", "precision", "recall", "F1", "examples"], rows)]


def _calibration(summary: RunSummary) -> list[str]:
    after = summary.scores.get("ece")
    if after is None:
        return []
    before = "" if summary.ece_before is None else f"; {summary.ece_before:.3f} without it"
    return [
        "## Calibration",
        f"Probabilities come from logits divided by the temperature {summary.temperature:.4g}, "
        f"stored in `task.json`. Expected calibration error {after:.3f}{before}; each half of the "
        "evaluation examples was scored with the temperature of the other half.",
    ]


def _data(summary: RunSummary) -> str:
    rows = [
        [d.role, d.name, f"{d.examples:,}", f"{d.skipped:,}", d.note, d.sha256]
        for d in summary.data
    ]
    return _table(["role", "file", "examples", "skipped", "note", "sha256"], rows)


def _training(summary: RunSummary) -> str:
    model = summary.model
    facts = {
        "start": model.name,
        "stored parameters": f"{model.parameters:,}",
        **({"without sharing": f"{model.unshared_parameters:,}"}
           if model.unshared_parameters else {}),
        **model.facts,
        "tokens per example at most": f"{summary.max_length:,}",
        "seed": str(summary.seed),
        "steps": f"{summary.steps:,}",
        "training time": f"{summary.seconds:,.0f} s",
        "litebert": summary.litebert_version,
        "finished": summary.created,
        **summary.environment,
    }  # fmt: skip
    return _table(["", ""], [[name, value] for name, value in facts.items()])


def _settings(summary: RunSummary) -> list[str]:
    if not summary.settings_toml:
        return []
    return ["All settings:", fence(summary.settings_toml, "toml")]


def _limits(summary: RunSummary) -> str:
    known = [f"- {inline(item)}" for item in (*summary.limits, *summary.warnings)]
    length = (
        f"- Texts are cut to {summary.max_length:,} tokens; what stands behind that is not read."
    )
    return "\n".join([*known, length])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        "| " + " | ".join(inline(cell) for cell in head) + " |",
        "|" + " --- |" * len(head),
        *("| " + " | ".join(inline(cell) for cell in row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def _evaluation_name(summary: RunSummary) -> str:
    names = [item.name for item in summary.data if item.role == "eval"]
    return names[0] if names else "held-out examples"


def _sample(summary: RunSummary) -> str:
    return '("first text", "second text")' if len(summary.text_columns) == 2 else '"a text"'


def _yaml(value: str) -> str:
    # A JSON string in ASCII is a YAML string whatever it holds.
    return json.dumps(clean(value), ensure_ascii=True)
