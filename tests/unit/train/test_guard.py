from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.train.chance import chance_loss, examine_answers
from litebert.train.guard import Guard
from litebert.train.settings import GuardSettings

LN2 = math.log(2)


def constant_logits(n: int, classes: int, top: int, noise: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    logits = np.zeros((n, classes))
    logits[:, top] = 1.0
    return logits + noise * rng.normal(size=logits.shape)


def balanced(n: int, classes: int) -> np.ndarray:
    return np.random.default_rng(5).permutation(np.arange(n) % classes)


@given(st.integers(2, 50), st.integers(1, 40))
def test_chance_of_balanced_classes_is_ln_c(classes: int, times: int) -> None:
    labels = np.repeat(np.arange(classes), times)
    assert chance_loss(labels) == pytest.approx(math.log(classes))
    with_ignored = np.concatenate([labels, np.full(7, -100)])
    assert chance_loss(with_ignored) == pytest.approx(math.log(classes))


def test_chance_of_other_kinds() -> None:
    assert chance_loss(np.array([3, 3, 3])) is None
    assert chance_loss(np.array([], np.int64)) is None
    assert chance_loss(np.array([0.0, 2.0], np.float32)) == 1.0
    assert chance_loss(np.array([1.5, 1.5], np.float32)) is None
    multi = np.array([[0, 1], [1, 1]], np.float32)
    assert chance_loss(multi) == pytest.approx(LN2 / 2)
    assert chance_loss(np.array([0] * 9 + [1])) == pytest.approx(0.325, abs=1e-3)


def test_no_answer_can_beat_its_own_loss_at_chance() -> None:
    """The loss of the constant answer with the true frequencies is the chance loss itself."""
    labels = np.array([0] * 70 + [1] * 20 + [2] * 10)
    logits = np.tile(np.log([0.7, 0.2, 0.1]), (100, 1))
    answers = examine_answers(logits, labels)
    assert answers is not None
    assert answers.is_constant and answers.answer == "class 0"
    assert answers.gain == pytest.approx(0, abs=1e-9)
    assert answers.label_share == pytest.approx(0.7)
    assert answers.signal == 0


def test_answers_of_every_kind() -> None:
    rng = np.random.default_rng(0)
    multi = (rng.random((200, 3)) < 0.2).astype(np.float32)
    none = examine_answers(np.full((200, 3), -1.4) + 0.01 * rng.normal(size=(200, 3)), multi)
    assert none is not None and none.is_constant and none.answer == "no class"
    right = examine_answers(8 * multi - 4, multi)
    assert right is not None and not right.is_constant and right.gain > 0.9 and right.signal > 3
    some = examine_answers(np.tile([2.0, -2.0, 2.0], (200, 1)), multi)
    assert some is not None and some.is_constant and some.answer == "classes [0, 2]"

    numbers = rng.normal(3, 2, 200).astype(np.float32)
    flat = examine_answers(np.full((200, 1), 3.0), numbers)
    assert flat is not None and flat.is_constant and abs(flat.gain) < 0.05 and flat.answer == "3"
    good = examine_answers(numbers[:, None] * 0.9, numbers)
    assert good is not None and not good.is_constant and good.signal > 3

    tokens = np.array([0, 1, -100, 1, 0])
    kept = examine_answers(np.eye(2)[[0, 1, 0, 1, 0]] * 5, tokens)
    assert kept is not None and not kept.is_constant and kept.gain > 0.9
    assert examine_answers(np.zeros((2, 2)), np.array([1, 1])) is None


def judge(guard: Guard, logits: np.ndarray, labels: np.ndarray, progress: float) -> Any:
    return guard.judge_answers(int(1000 * progress), examine_answers(logits, labels), progress)


@pytest.mark.parametrize("classes", [2, 5, 77])
def test_collapse_is_flagged_at_once_and_confirmed_later(classes: int) -> None:
    """Ecosystem fault 10: all answers one class, from one evaluation on."""
    guard = Guard(GuardSettings(), chance=math.log(classes))
    labels = balanced(770, classes)
    confirmed: list[bool] = []
    for i in range(1, 11):
        logits = constant_logits(770, classes, top=1, noise=0.01, seed=i)
        finding = judge(guard, logits, labels, i / 10)
        assert finding is not None, "flagged within one evaluation"
        assert finding.kind == "constant_predictions"
        assert finding.evidence["answer"] == "class 1"
        assert finding.evidence["label_share"] == pytest.approx(1 / classes, abs=0.01)
        confirmed.append(finding.is_confirmed)
    assert not any(confirmed[:4]), "half of the schedule has to pass first"
    assert all(confirmed[4:])
    assert not guard.has_learned


def test_frozen_numbers_are_a_collapse_too() -> None:
    labels = balanced(100, 2)
    guard = Guard(GuardSettings(), chance=LN2)
    bad = np.full((100, 2), np.nan)
    findings = [judge(guard, bad, labels, p) for p in (0.5, 0.6, 0.7)]
    assert findings[-1].is_confirmed and findings[-1].evidence["eval_loss"] == "nan"
    json.dumps([finding.evidence for finding in findings], allow_nan=False)


def test_majority_answers_on_imbalanced_data_can_be_right() -> None:
    """97 % of one class: a model that always says so, but knows when it is less sure, is healthy."""
    rng = np.random.default_rng(1)
    labels = (rng.random(1000) < 0.03).astype(np.int64)
    evidence = labels * 1.5 + rng.normal(size=1000) * 0.3
    logits = np.stack([np.full(1000, 4.0), evidence], 1)
    answers = examine_answers(logits, labels)
    assert answers is not None and answers.is_constant
    guard = Guard(GuardSettings(), chance=answers.chance)
    for i in range(1, 11):
        assert judge(guard, logits, labels, i / 10) is None
    assert guard.has_learned


def test_badly_scaled_but_informed_answers_are_never_a_confirmed_collapse() -> None:
    """Too sure of the majority, so the loss is above chance; but the order of the answers is right."""
    rng = np.random.default_rng(2)
    labels = (rng.random(1000) < 0.1).astype(np.int64)
    logits = np.stack([np.full(1000, 9.0), labels * 2.0 + rng.normal(size=1000) * 0.3], 1)
    guard = Guard(GuardSettings(), chance=0.325)
    findings = [judge(guard, logits, labels, i / 10) for i in range(1, 11)]
    assert all(finding is not None and not finding.is_confirmed for finding in findings)


def test_a_slow_run_is_not_stopped() -> None:
    """On a plateau for 80 % of the schedule, with answers that lean a little the right way."""
    rng = np.random.default_rng(3)
    labels = balanced(200, 2)
    guard = Guard(GuardSettings(), chance=LN2)
    for i in range(1, 10):
        lean = 0.004 * (2 * labels - 1) + 0.03 * rng.normal(size=200)
        logits = np.stack([np.full(200, 0.2), lean], 1)
        finding = judge(guard, logits, labels, i / 10)
        assert finding is None or not finding.is_confirmed
    informed = np.stack([np.zeros(200), 3.0 * (2 * labels - 1)], 1)
    assert judge(guard, informed, labels, 1.0) is None


def test_a_falling_evaluation_loss_starts_the_count_anew() -> None:
    labels = balanced(200, 2)
    guard = Guard(GuardSettings(), chance=LN2)
    for i, offset in enumerate((3.0, 2.5, 2.0, 1.6, 1.2, 0.9, 0.7, 0.5, 0.3)):
        logits = np.tile([offset, 0.0], (200, 1))
        finding = judge(guard, logits, labels, 0.1 + i / 10)
        assert finding is not None and not finding.is_confirmed
        assert finding.evidence["evaluations_in_row"] == 1


CONSTANT = np.tile([0.1, 0.0], (100, 1))


def test_the_end_confirms_what_a_short_run_could_not() -> None:
    labels = balanced(100, 2)
    guard = Guard(GuardSettings(), chance=LN2, warmup_steps=900)
    assert not judge(guard, CONSTANT, labels, 0.5).is_confirmed
    assert judge(guard, CONSTANT, labels, 1.0).is_confirmed


@pytest.mark.parametrize("steps", [3, 109])
def test_a_run_of_few_steps_has_not_collapsed(steps: int) -> None:
    guard = Guard(GuardSettings(), chance=LN2, warmup_steps=10)
    answers = examine_answers(CONSTANT, balanced(100, 2))
    for _ in range(5):
        finding = guard.judge_answers(steps, answers, 1.0)
        assert finding is not None and not finding.is_confirmed


@pytest.mark.parametrize(("train_loss", "is_collapsed"), [(LN2, True), (0.1, False)])
def test_one_evaluation_at_the_end_needs_the_training_loss_as_witness(
    train_loss: float, is_collapsed: bool
) -> None:
    guard = Guard(GuardSettings(), chance=LN2, warmup_steps=10)
    for step in range(1, 201):
        guard.judge_loss(step, train_loss, step / 200)
    finding = guard.judge_answers(200, examine_answers(CONSTANT, balanced(100, 2)), 1.0)
    assert finding is not None and finding.is_confirmed == is_collapsed


def test_the_guard_can_be_turned_off() -> None:
    guard = Guard(GuardSettings(enabled=False), chance=LN2)
    assert judge(guard, np.tile([1.0, 0.0], (100, 1)), balanced(100, 2), 1.0) is None
    assert all(guard.judge_loss(step, LN2, 0.5) is None for step in range(1000))
    assert guard.judge_step(1, math.nan, 1.0, [])[0] == "skip", "never turned off"


def feed(guard: Guard, losses: list[float]) -> list[Any]:
    found = [guard.judge_loss(i + 1, loss, 0.5) for i, loss in enumerate(losses)]
    return [finding for finding in found if finding]


def test_training_loss_that_stays_at_chance_is_reported_not_confirmed() -> None:
    rng = np.random.default_rng(0)
    guard = Guard(GuardSettings(chance_steps=50), chance=LN2, warmup_steps=10)
    found = feed(guard, (LN2 + 0.02 * rng.normal(size=400)).tolist())
    assert found and found[0].kind == "loss_at_chance" and found[0].step == 10 + 100
    assert not any(finding.is_confirmed for finding in found)


def test_training_loss_that_falls_slowly_is_healthy() -> None:
    rng = np.random.default_rng(0)
    slow = 1.02 * LN2 - np.arange(1000) * LN2 * 0.0002 + 0.05 * rng.normal(size=1000)
    guard = Guard(GuardSettings(chance_steps=100), chance=LN2)
    assert feed(guard, slow.tolist()) == []


def test_no_chance_no_judgement() -> None:
    assert feed(Guard(GuardSettings(chance_steps=10), chance=None), [9.0] * 100) == []


def test_bad_steps_are_skipped_then_rolled_back_then_stopped() -> None:
    guard = Guard(GuardSettings(), chance=LN2)
    verdicts = [guard.judge_step(i, math.nan, 1.0, [i])[0] for i in range(16)]
    assert verdicts == (["skip"] * 3 + ["roll_back"]) * 3 + ["skip"] * 3 + ["stop"]
    assert guard.state.skipped_steps == 16
    guard = Guard(GuardSettings(), chance=LN2)
    for i in range(40):  # three bad ones, one good one: never a roll-back
        assert guard.judge_step(i, 1.0, math.inf if i % 4 else 1.0, [i])[0] in ("skip", "ok")
    assert guard.state.rollbacks == 0


def test_evidence_names_the_examples() -> None:
    guard = Guard(GuardSettings(nonfinite_limit=0, rollback_limit=0), chance=None)
    verdict, finding = guard.judge_step(7, math.inf, math.nan, list(range(20, 40)))
    assert verdict == "stop"
    assert finding is not None and finding.is_confirmed and finding.kind == "non_finite"
    assert finding.evidence["examples"] == "20,21,22,23,24,25,26,27..."
    assert finding.evidence["loss"] == "inf"


def test_exploding_gradient() -> None:
    guard = Guard(GuardSettings(explode_factor=100), chance=None)
    assert guard.judge_step(0, 1.0, 1e9, [])[0] == "ok", "nothing to compare with yet"
    for i in range(30):
        assert guard.judge_step(i, 1.0, 1.0 + i % 3, [])[0] == "ok"
    assert guard.judge_step(31, 1.0, 150.0, [])[0] == "ok"
    verdict, finding = guard.judge_step(32, 1.0, 300.0, [5])
    assert verdict == "skip"
    assert finding is not None and finding.kind == "exploding_gradient"
    assert finding.evidence["median_grad_norm"] == 2.0


def test_memory_is_json_and_continues_equally() -> None:
    rng = np.random.default_rng(4)
    labels = balanced(50, 2)

    def run(guard: Guard, steps: range) -> list[Any]:
        out: list[Any] = []
        for i in steps:
            local = np.random.default_rng(i)
            norm = math.nan if i % 7 == 0 else float(local.exponential())
            out.append(guard.judge_step(i, 0.7, norm, [i]))
            out.append(guard.judge_loss(i, LN2, i / 60))
            logits = constant_logits(50, 2, 0, 0.1, seed=i)
            out.append(guard.judge_answers(i, examine_answers(logits, labels), i / 60))
        return out

    settings = GuardSettings(chance_steps=10)
    whole = Guard(settings, chance=LN2)
    expected = run(whole, range(60))
    first, second = Guard(settings, chance=LN2), Guard(settings, chance=LN2)
    cut = int(rng.integers(10, 50))
    got = run(first, range(cut))
    second.load_json(json.loads(json.dumps(first.to_json(), allow_nan=False)))
    assert got + run(second, range(cut, 60)) == expected
    assert second.to_json() == whole.to_json()
