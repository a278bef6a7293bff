"""`litebert prune`: fewer heads, FFN units, depths or pieces, with proof of what that costs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from litebert.cli.output import show, show_json


class Healing(StrEnum):
    """What a pruned model is trained on."""

    labels = "labels"
    distill = "distill"


def prune(
    folder: Path = typer.Argument(metavar="MODEL", help="Model folder or run folder."),
    out: Path = typer.Option(..., "--out", "-o", help="New folder for the result."),
    heads: int | None = typer.Option(
        None, "--heads", min=1, help="Attention heads that stay, the most important ones."
    ),
    keep_heads: list[int] | None = typer.Option(
        None, "--keep-heads", min=0, help="Instead: a head that stays, from 0; give it for each."
    ),
    ffn: int | None = typer.Option(
        None, "--ffn", min=1, help="FFN units that stay, the most important ones."
    ),
    depth: int | None = typer.Option(None, "--depth", min=1, help="Depths that stay."),
    vocab: list[Path] | None = typer.Option(
        None,
        "--vocab",
        help="Corpus that the vocabulary is cut to; its texts keep their pieces. For each file.",
    ),
    vocab_size: int | None = typer.Option(
        None,
        "--vocab-size",
        min=1,
        help="Most pieces that stay: the most frequent in --vocab, or the first of the vocabulary.",
    ),
    data: Path | None = typer.Option(
        None, "--data", help="Labelled data to score on before and after."
    ),
    task: str | None = typer.Option(None, "--task", help="How data are read, such as glue/sst2."),
    split: str = typer.Option(
        "auto", "--split", help="Part of --data: train, eval, test; auto: eval, else train."
    ),
    train: Path | None = typer.Option(
        None, "--train", help="Labelled data for importance and healing; default: --data, unhealed."
    ),
    texts: list[Path] | None = typer.Option(
        None,
        "--texts",
        help="Plain texts for importance in a model of vectors, without labels. For each file.",
    ),
    epochs: float = typer.Option(2.0, "--epochs", min=0.0, help="Epochs of healing; 0: none."),
    heal: Healing = typer.Option(
        Healing.labels,
        "--heal",
        help="Heal on the labels, or on them and the answers of the unpruned model.",
    ),
    learning_rate: float = typer.Option(3e-4, "--learning-rate", help="Rate of healing."),
    examples: int = typer.Option(512, "--examples", min=1, help="Examples for importance."),
    max_drop: float | None = typer.Option(
        None, "--max-drop", help="Refuse a result that scores so much worse (exit code 1)."
    ),
    threads: int | None = typer.Option(None, "--threads", min=1, help="CPU threads."),
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON."),
) -> None:
    """Make matrices smaller: what matters least over all depths goes from all of them.

    The result is a model folder with a report. Heal it on --train; without it nothing is trained.
    """
    from litebert.recipes.compress_heal import HealOptions
    from litebert.recipes.compress_measure import MeasureOptions
    from litebert.recipes.evaluate import EvaluationJob
    from litebert.recipes.prune import PruneJob, prune_folder

    evaluation = None if data is None else EvaluationJob(data=data, task=task, split=split)
    healing = None
    if train is not None and epochs > 0:
        healing = HealOptions(train, None, task, epochs=epochs, learning_rate=learning_rate)
    job = PruneJob(
        MeasureOptions(evaluation, threads=threads, max_drop=max_drop),
        heads=heads,
        keep_heads=tuple(keep_heads or ()),
        ffn=ffn,
        depth=depth,
        vocab=tuple(vocab or ()),
        vocab_size=vocab_size,
        train=train,
        texts=tuple(texts or ()),
        heal=healing,
        is_taught=heal is Healing.distill,
        examples=examples,
    )
    report = prune_folder(folder, out, job)
    if as_json:
        show_json(report.to_dict())
    else:
        show("\n".join(report.lines()))
