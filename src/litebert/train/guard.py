"""The guard: sees training that diverges or collapses, and keeps the evidence.

It never changes the model. The loop asks it after each step and evaluation, and acts on the
verdict. All it remembers is JSON, so that a resumed run decides like an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final, Literal

from litebert.train.chance import Answers
from litebert.train.settings import GuardSettings

Verdict = Literal["ok", "skip", "roll_back", "stop"]

_NORM_HISTORY: Final = 64
_MIN_NORMS: Final = 16
"""Norms that must be known before one can be called extreme."""
_CLEAR_SIGNAL: Final = 3.0
"""Standard errors with which the answers of one evaluation certainly depend on the input."""
_SLOW_SIGNAL: Final = 1.0
"""The same as a mean over several evaluations: models on a plateau that later learn show this
much, collapsed ones scatter around 0 (measured on small models from random weights)."""
_SIGNAL_HISTORY: Final = 8
_END_EVALUATIONS: Final = 2
"""Evaluations in a row that confirm a collapse at the end, where none can follow."""
_MIN_DROP: Final = 0.005
"""A loss lower by this part of chance is a sign of learning."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that looks wrong, with its evidence.

    Attributes:
        kind: "non_finite", "exploding_gradient", "constant_predictions" or "loss_at_chance".
        step: steps done when it was seen.
        is_confirmed: False for a suspicion, True when training is to be stopped for it.
        message: one sentence for people.
        evidence: name -> value pairs that show it.
    """

    kind: str
    step: int
    is_confirmed: bool
    message: str
    evidence: dict[str, float | str]


@dataclass(slots=True)
class GuardState:
    """Everything the guard remembers."""

    bad_steps_in_row: int = 0
    skipped_steps: int = 0
    rollbacks: int = 0
    norms: list[float] = field(default_factory=list[float])
    best_eval_loss: float | None = None
    best_gain: float | None = None
    """Largest part of the chance loss that any evaluation saved."""
    signals: list[float] = field(default_factory=list[float])
    flat_evaluations: int = 0
    window_loss: float = 0.0
    window_steps: int = 0
    last_window: float | None = None
    flat_windows: int = 0


class Guard:
    """Judges steps and evaluations of one run."""

    def __init__(
        self, settings: GuardSettings, *, chance: float | None, warmup_steps: float = 0
    ) -> None:
        """Prepare for one run.

        Args:
            settings: limits and tolerances.
            chance: loss of the best constant answer on the training labels, None if unknown.
            warmup_steps: steps in which no learning is expected.
        """
        self.settings = settings
        self.state = GuardState()
        self._chance = chance
        self._warmup = warmup_steps

    def judge_step(
        self, step: int, loss: float, grad_norm: float, examples: list[int]
    ) -> tuple[Verdict, Finding | None]:
        """Judge a step before its update: "ok" to take it, "skip", "roll_back" or "stop".

        Args:
            step: steps done so far.
            loss: mean loss of the step.
            grad_norm: L2 norm of the whole gradient before clipping.
            examples: indices of the examples, for the evidence.
        """
        state, limits = self.state, self.settings
        typical = median(state.norms) if len(state.norms) >= _MIN_NORMS else math.inf
        is_finite = math.isfinite(loss) and math.isfinite(grad_norm)
        if is_finite and grad_norm <= limits.explode_factor * typical:
            state.bad_steps_in_row = 0
            state.norms = [*state.norms, grad_norm][-_NORM_HISTORY:]
            return "ok", None
        state.bad_steps_in_row += 1
        state.skipped_steps += 1
        evidence: dict[str, float | str] = {
            "loss": _number(loss),
            "grad_norm": _number(grad_norm),
            "bad_steps_in_row": state.bad_steps_in_row,
            "examples": ",".join(map(str, examples[:8])) + ("..." if len(examples) > 8 else ""),
        }
        verdict: Verdict = "skip"
        if state.bad_steps_in_row > limits.nonfinite_limit:
            state.bad_steps_in_row = 0
            state.rollbacks += 1
            evidence["rollbacks"] = state.rollbacks
            verdict = "roll_back" if state.rollbacks <= limits.rollback_limit else "stop"
        if is_finite:
            kind = "exploding_gradient"
            evidence["median_grad_norm"] = typical
            message = f"the gradient norm is {grad_norm / max(typical, 1e-30):.3g} times its median"
        else:
            kind, message = "non_finite", "the loss or the gradient is not a finite number"
        action = {"skip": "step skipped", "roll_back": "going back", "stop": "stopping"}[verdict]
        return verdict, Finding(kind, step, verdict == "stop", f"{message}; {action}", evidence)

    def judge_loss(self, step: int, loss: float, progress: float) -> Finding | None:
        """Take in the loss of a finished step; report a training loss that stays at chance.

        Args:
            step: steps done.
            loss: mean loss of the last one.
            progress: part of the schedule that has passed, in [0, 1].
        """
        state = self.state
        if not self.settings.enabled or self._chance is None or step <= self._warmup:
            return None
        state.window_loss += loss
        state.window_steps += 1
        if state.window_steps < self.settings.chance_steps:
            return None
        mean, before = state.window_loss / state.window_steps, state.last_window
        state.window_loss, state.window_steps, state.last_window = 0.0, 0, mean
        is_at_chance = mean >= (1 - self.settings.chance_tolerance) * self._chance
        is_falling = before is not None and mean < before - _MIN_DROP * self._chance
        if not is_at_chance or is_falling:
            state.flat_windows = 0
            return None
        state.flat_windows += 1
        if state.flat_windows < 2:
            return None
        # The training loss alone is never enough to stop: shared models often start on a plateau.
        return Finding(
            kind="loss_at_chance",
            step=step,
            is_confirmed=False,
            message="the training loss is no better than that of a constant answer",
            evidence={
                "train_loss": mean,
                "chance_loss": self._chance,
                "windows": state.flat_windows,
                "window_steps": self.settings.chance_steps,
                "progress": progress,
            },
        )

    def judge_answers(self, step: int, answers: Answers | None, progress: float) -> Finding | None:
        """Judge an evaluation: report answers that do not depend on the input.

        Answers that are all the majority class are no fault by themselves: on imbalanced data a
        model can be right to give them, and a slow one passes through them. The fault is a loss
        no better than chance as well. It is confirmed when that lasts for several evaluations
        without any gain, after the warm-up and a good part of the schedule, and the answers do
        not even lean the right way. At the end less is asked, but never less than a whole window
        of steps after the warm-up and a second witness, an earlier evaluation or the training
        loss of a window: a run of a few steps has not had the time to learn anything.

        Args:
            step: steps done.
            answers: what `examine_answers` found, None if it could not tell.
            progress: part of the schedule that has passed, in [0, 1]; 1 for the last evaluation.
        """
        state, limits = self.state, self.settings
        if not limits.enabled or answers is None:
            return None
        best = state.best_eval_loss
        has_gained = best is not None and answers.loss < best - _MIN_DROP * answers.chance
        state.signals = [*state.signals, answers.signal][-_SIGNAL_HISTORY:]
        if math.isfinite(answers.loss):
            earlier = answers.gain if state.best_gain is None else state.best_gain
            state.best_gain = max(answers.gain, earlier)
            state.best_eval_loss = answers.loss if best is None else min(best, answers.loss)
        is_at_chance = not answers.gain > limits.chance_tolerance
        # Overfitting raises the loss as well, but not together with constant answers.
        if not (answers.is_constant and is_at_chance):
            state.flat_evaluations = 0
            return None
        state.flat_evaluations = 1 if has_gained else state.flat_evaluations + 1
        is_long = step >= self._warmup + limits.chance_steps
        is_late = progress >= limits.min_progress_fraction
        is_lasting = is_late and state.flat_evaluations >= limits.chance_evaluations
        has_witness = state.flat_evaluations >= _END_EVALUATIONS or state.flat_windows >= 1
        mean_signal = sum(state.signals) / len(state.signals)
        is_sure = is_lasting and mean_signal < _SLOW_SIGNAL
        is_confirmed = (
            is_long
            and answers.signal < _CLEAR_SIGNAL
            and (is_sure or (progress >= 1 and has_witness))
        )
        return Finding(
            kind="constant_predictions",
            step=step,
            is_confirmed=is_confirmed,
            message=f"every answer is {answers.answer}, as if the input were ignored",
            evidence={
                "answer": answers.answer,
                "label_share": answers.label_share,
                "eval_loss": _number(answers.loss),
                "chance_loss": answers.chance,
                "signal": answers.signal,
                "mean_signal": mean_signal,
                "evaluations_in_row": state.flat_evaluations,
                "progress": progress,
            },
        )

    @property
    def has_learned(self) -> bool:
        """Whether some evaluation was clearly better than chance, so its weights are worth having."""
        gain = self.state.best_gain
        return gain is not None and gain > self.settings.chance_tolerance

    def to_json(self) -> dict[str, Any]:
        """Return the memory of the guard."""
        return asdict(self.state)

    def load_json(self, values: Mapping[str, Any]) -> None:
        """Put back what `to_json` returned."""
        self.state = GuardState(**values)

    def keep_counts(self, earlier: GuardState) -> None:
        """After going back to an older memory, go on counting from `earlier`."""
        self.state.skipped_steps = earlier.skipped_steps
        self.state.rollbacks = earlier.rollbacks
        self.state.bad_steps_in_row = 0


def _number(value: float) -> float | str:
    """Keep a number that JSON can hold, else its name."""
    return value if math.isfinite(value) else str(value)
