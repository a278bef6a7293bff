"""`litebert quickstart`: the main job on bundled data, in about a minute."""

from __future__ import annotations

from pathlib import Path

import typer

from litebert.cli.output import say, show

SECONDS = 26.0
"""For training from the pretrained encoder; with everything else about a minute on two cores."""
SCRATCH_SHARE = 0.4
"""Of that time, for training from scratch: small new weights need no more."""


def quickstart(
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Run folder; default runs/quickstart-N."
    ),
    seconds: float = typer.Option(
        SECONDS, "--seconds", min=0.1, help="Training time of the pretrained encoder."
    ),
) -> None:
    """Train, score and use a small model on bundled messages, offline.

    Support messages over eight intents, learnt from litebert-small-en and, for comparison, from
    scratch; it takes about a minute on two cores.
    """
    from litebert.cli.training import TrainingRequest, run_training
    from litebert.models import default
    from litebert.recipes.predictor import Predictor
    from litebert.recipes.quickstart import EXAMPLES, data_files
    from litebert.recipes.quickstart.compare import comparison_lines, score_from_scratch
    from litebert.recipes.run_folder import next_folder
    from litebert.train.stop import stop_on_signals

    train, evaluation = data_files()
    name = default()
    say("Support messages over eight intents; train and eval were written by different authors.")
    data = {"train": str(train), "eval": str(evaluation)}
    done = run_training(
        TrainingRequest(
            told={
                "data": data,
                "model": {"source": name or "scratch"},
                "train": {"max_seconds": seconds} if name else {},
                "": {"num_seeds": 1},
            },
            out=out or next_folder("quickstart"),
            ask=False,
        )
    )
    if done is None:
        return
    outcome, folder = done
    if name is not None:
        say("\nthe same messages from scratch, for comparison")
        with stop_on_signals() as stop:
            metric = outcome.plan.task.metric
            scratch = score_from_scratch(data, metric, seconds=SCRATCH_SHARE * seconds, stop=stop)
        show("\n" + "\n".join(comparison_lines(outcome, scratch, name)))
    predictor = Predictor.load(folder.path)
    show("\nthree new messages")
    for text, answer in zip(EXAMPLES, predictor.predict(EXAMPLES), strict=True):
        show(f"  {answer.score:4.0%} {answer.label!s:<30} {text}")
    show("\nyour own data: litebert train FILE.csv")
