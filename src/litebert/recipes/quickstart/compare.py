"""The same messages learnt from scratch, for the row beside the pretrained one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import RunFolder
from litebert.settings import build_settings

if TYPE_CHECKING:
    from litebert.recipes.finetune.outcome import Outcome
    from litebert.train.stop import StopRequest

__all__ = ["comparison_lines", "score_from_scratch"]


def score_from_scratch(
    data: dict[str, Any], metric: str, *, seconds: float, stop: StopRequest
) -> float | None:
    """Return the score of a small model that starts from new weights; its files are thrown away.

    Args:
        data: `data.train` and `data.eval`.
        metric: which score.
        seconds: for training.
        stop: asks for an early end; None is returned then.
    """
    settings = build_settings(
        FinetuneSettings,
        {
            "data": data,
            "model": {"source": "scratch"},
            "train": {"max_seconds": seconds},
            "num_seeds": 1,
            "has_baselines": False,
        },
    )
    with tempfile.TemporaryDirectory(prefix="litebert-quickstart-") as scratch:
        folder = RunFolder.create(Path(scratch) / "run", name="run")
        outcome = run_plan(make_plan(settings), folder, on_event=_silently, stop=stop)
    scores = outcome.seeds[0].scores if outcome.seeds else {}
    return scores.get(metric)


def comparison_lines(outcome: Outcome, scratch: float | None, name: str) -> list[str]:
    """Return the table of all ways, the weakest first by kind.

    Args:
        outcome: of the run that started from `name`.
        scratch: score from scratch, if it was measured.
        name: the encoder.
    """
    metric = outcome.plan.task.metric
    rows = [(baseline.name, baseline.scores[metric]) for baseline in outcome.baselines]
    rows += [] if scratch is None else [("from scratch", scratch)]
    rows += [(name, seed.scores[metric]) for seed in outcome.seeds[:1] if seed.scores]
    width = max(len(label) for label, _ in rows)
    return [f"{metric} on the same held-out messages"] + [
        f"  {label:<{width}}  {value:.4f}" for label, value in rows
    ]


def _silently(event: object) -> None:
    del event
