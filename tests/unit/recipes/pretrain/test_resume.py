"""A run stopped after every single step is the run that was never stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from litebert.recipes.pretrain.job import start_run
from litebert.recipes.pretrain.plan import make_plan
from litebert.recipes.pretrain.run import run_plan
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.recipes.run_folder import RunFolder
from litebert.train.events import Event, Stepped
from litebert.train.state import FitResult
from litebert.train.stop import StopRequest


def part(folder: RunFolder, settings: PretrainSettings, steps: int | None) -> FitResult:
    """Train some steps more, or to the end."""
    stop, left = StopRequest(), [steps]

    def count(event: Event) -> None:
        if isinstance(event, Stepped) and left[0] is not None:
            left[0] -= 1
            if left[0] == 0:
                stop.request()

    plan = make_plan(settings, folder.path)
    return run_plan(plan, folder, on_event=count, stop=stop, resume=True).result


def lines(folder: RunFolder) -> list[dict[str, Any]]:
    text = (folder.path / "metrics.jsonl").read_text(encoding="utf-8")
    return [
        {name: value for name, value in json.loads(line).items() if name != "timing"}
        for line in text.splitlines()
    ]


@pytest.mark.parametrize("optimizer", ["adamw", "lamb", "muon"])
def test_a_stop_after_every_step_changes_nothing(
    wanted: Any, tmp_path: Path, optimizer: str
) -> None:
    """Three epochs and more over three shards, in steps that no border fits."""
    settings = wanted(
        train={
            "max_steps": 12,
            "batch_size": 24,
            "log_steps": 5,
            "eval_steps": 4,
            "save_steps": 3,
            "micro_batch_tokens": 400,
            "learning_rate": 3e-3,
            "optimizer": optimizer,
            "batch_ramp": {"start_batch_size": 8, "fraction": 0.5},
            "shallow_start": {"depth": 1, "fraction": 0.4},
        },
        objectives={"mlm": {"schedule": "linear", "mask_fraction": 0.3, "end_fraction": 0.15}},
    )
    plan = make_plan(settings)
    whole, often = (start_run(plan, tmp_path / name, name, "") for name in ("whole", "often"))
    result = part(whole, settings, None)
    assert result.epoch > 3
    for step in range(1, 13):
        found = part(often, settings, 1)
        assert (found.step, found.status) == (step, "interrupted")
    assert part(often, settings, None).status == "finished"
    ours, theirs = (load_file(f.last / "model.safetensors") for f in (often, whole))
    for name, values in theirs.items():
        np.testing.assert_array_equal(ours[name], values, err_msg=name)
    assert lines(often) == lines(whole)
