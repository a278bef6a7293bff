"""Options that several commands share, and the words they allow."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class BadRow(StrEnum):
    """What to do with a record that cannot be used."""

    error = "error"
    skip = "skip"


class Kind(StrEnum):
    """What a label is."""

    binary = "binary"
    multiclass = "multiclass"
    multilabel = "multilabel"
    regression = "regression"


class LongText(StrEnum):
    """What to do with a text that is longer than the maximum length."""

    truncate = "truncate"
    windows = "windows"


EvalFile = Annotated[
    Path | None,
    typer.Option("--eval", help="Labelled file to score on; else a part is held out."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")]
TaskName = Annotated[str | None, typer.Option("--task", help="Named format, such as glue/cola.")]
ModelSource = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        "--from",
        help="What to start from: model folder, litebert-small-en, preset, or scratch. Default auto: "
        "litebert-small-en where the texts are English, else scratch.",
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        help="Text column; twice for pairs. Of choices: the question, then the passage.",
    ),
]
LabelColumn = Annotated[str | None, typer.Option("--label-column", help="Label column.")]
ChoiceColumns = Annotated[
    list[str] | None,
    typer.Option("--choice-column", help="Column of choices (lists), or one for each choice."),
]
SplitName = Annotated[
    str,
    typer.Option("--split", help="Part of a folder: train, eval, test; auto: eval, else train."),
]
BadRowRule = Annotated[
    BadRow, typer.Option("--on-bad-row", help="Unusable record: stop, or skip and count.")
]
KindOfLabel = Annotated[Kind | None, typer.Option("--kind", help="What a label is.")]
MetricName = Annotated[str | None, typer.Option("--metric", help="Main score.")]
EncodingName = Annotated[str | None, typer.Option("--encoding", help="Encoding of the files.")]
OnBadRow = Annotated[
    BadRow | None,
    typer.Option("--on-bad-row", help="Unusable record: stop, or skip and count."),
]
MaxLength = Annotated[int | None, typer.Option("--max-length", help="Tokens kept of an example.")]
LongTexts = Annotated[
    LongText | None,
    typer.Option("--long-texts", help="Longer texts: cut them, or read all of them in windows."),
]
Stride = Annotated[
    int | None, typer.Option("--stride", min=1, help="Pieces from window to window; default half.")
]
DepthLimit = Annotated[
    int | None, typer.Option("--depth", min=1, help="Run this many depths; default all.")
]
ExitWhen = Annotated[
    str | None,
    typer.Option(
        "--exit", help="Stop for a text when sure: patience=2, confidence=0.9, entropy=0.2, auto."
    ),
]
NoBaselines = Annotated[bool, typer.Option("--no-baselines", help="Leave out majority and TF-IDF.")]
