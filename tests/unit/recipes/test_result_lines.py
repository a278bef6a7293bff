"""What a person reads at the end: aligned scores, the run's own name in the commands, plain sentences."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parent))
from sample_run import sample_run

from litebert.recipes.abstain import Withheld
from litebert.recipes.finetune.job import SUMMARY, result_lines
from litebert.recipes.run_folder import RunFolder
from litebert.recipes.summary import BaselineScore
from litebert.recipes.verdict import judge


def test_the_command_names_the_run_and_scores_stand_in_one_column(tmp_path: Path) -> None:
    summary = sample_run()
    metric, value = summary.metric, summary.scores[summary.metric]
    baselines = tuple(
        BaselineScore(name=name, method="", scores={metric: value / 2}, seconds=0)
        for name in ("first_sentence", "overlap", "no_answer")
    )
    scores = summary.scores | {f"{metric}_mismatched": 0.25}
    summary = summary.model_copy(update={"baselines": baselines, "scores": scores})
    (tmp_path / SUMMARY).write_text(summary.model_dump_json(), encoding="utf-8")
    plan = SimpleNamespace(others=[("mismatched", None)], warnings=())
    outcome = SimpleNamespace(plan=plan, seeds=(), test_scores={}, faults=())
    lines = result_lines(cast("Any", outcome), RunFolder(tmp_path))
    assert lines[-1] == f"          litebert evaluate {tmp_path} FILE"
    rows = [line for line in lines if line.startswith("  ") and " 0." in line]
    assert len({line.index(" 0.") for line in rows if "median" not in line}) == 1
    assert judge(summary).sentence.count(" and the overlap") == 0
    assert ", the overlap of words gets" in judge(summary).sentence


def test_none_answered_says_nothing_of_right_ones() -> None:
    assert Withheld(0.9, None, 0.0, 1.0).line() == "abstain   below 0.9: 0.0% are answered"
    assert "50.0% are answered, 75.0% of them right" in Withheld(0.9, None, 0.5, 0.75).line()
