"""`litebert quickstart`: the main job on bundled data, in about a minute."""

from __future__ import annotations

from pathlib import Path

import typer

from litebert.cli.output import say, show


def quickstart(
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Run folder; default runs/quickstart-N."
    ),
) -> None:
    """Train, score and use a small model on bundled messages, offline.

    Support messages over eight intents; it takes about a minute on two cores.
    """
    from litebert.cli.training import TrainingRequest, run_training
    from litebert.recipes.predictor import Predictor
    from litebert.recipes.quickstart import EXAMPLES, data_files
    from litebert.recipes.run_folder import next_folder

    train, evaluation = data_files()
    say("Support messages over eight intents; train and eval were written by different authors.")
    done = run_training(
        TrainingRequest(
            told={
                "data": {"train": str(train), "eval": str(evaluation)},
                "": {"num_seeds": 1},
            },
            out=out or next_folder("quickstart"),
            ask=False,
        )
    )
    if done is None:
        return
    _, folder = done
    predictor = Predictor.load(folder.path)
    show("\nthree new messages")
    for text, answer in zip(EXAMPLES, predictor.predict(EXAMPLES), strict=True):
        show(f"  {answer.score:4.0%} {answer.label!s:<30} {text}")
    show("\nyour own data: litebert train FILE.csv")
