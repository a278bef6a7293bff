"""The curves of a distillation, as a person reads them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("matplotlib")

from litebert.recipes.distill.curves import draw_curves


def summary(**changes: Any) -> dict[str, Any]:
    evals = {
        "step": [500, 1000], "tokens": [1, 2], "hidden_loss": [0.6, 0.5],
        "pooled_loss": [0.25, None], "stsb_eval_spearman": [0.8, 0.81],
    }  # fmt: skip
    before = {"hidden_loss": 3.2, "pooled_loss": 0.6, "stsb_eval_spearman": 0.79}
    return {"curves": {"train": {}, "eval": evals}, "before": before, "teacher": {}} | changes


def test_numbers_are_numbers_and_no_formulas() -> None:
    svg = draw_curves(summary())["curves"].svg
    assert "mathdefault" not in svg and "$" not in svg
    assert ">1</text>" in svg and ">0.5</text>" in svg and "e−" not in svg


def test_the_teacher_is_named_where_it_is_drawn() -> None:
    assert "dotted" not in draw_curves(summary())["curves"].svg
    told = summary(teacher={"stsb_eval_spearman": 0.87})
    assert "(dotted: teacher)" in draw_curves(told)["curves"].svg


def test_a_run_that_never_evaluated_has_no_curves() -> None:
    evals = {"step": [], "tokens": []}
    assert draw_curves(summary(curves={"train": {}, "eval": evals})) == {}
