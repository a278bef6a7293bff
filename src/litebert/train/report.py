"""Tells the caller, the log and `metrics.jsonl` what happens in a run."""

from __future__ import annotations

import logging
import math
from typing import Any

from litebert.errors import TrainingDiverged
from litebert.train.evaluate import Evaluation
from litebert.train.events import Evaluated, Event, Found, OnEvent, Stepped, Warned
from litebert.train.guard import Finding
from litebert.train.log import MetricsLog, resident_bytes
from litebert.train.plan import StepPlan
from litebert.train.settings import TrainSettings
from litebert.train.state import TrainState, Window

log = logging.getLogger(__name__)


class Reporter:
    """The voice of one run.

    Attributes:
        emit: the caller's function.
        metrics: the run's `metrics.jsonl`.
        findings: what the guard saw; shared with the snapshot.
    """

    def __init__(
        self,
        emit: OnEvent | None,
        metrics: MetricsLog,
        findings: list[Finding],
        plan: StepPlan,
        settings: TrainSettings,
    ) -> None:
        self.emit: OnEvent = emit or _ignore
        self.metrics, self.findings = metrics, findings
        self._plan, self._settings = plan, settings

    def stepped(self, state: TrainState, loss: float, learning_rate: float, norm: float) -> None:
        """Tell about a step, and write the line that is due every `log_steps`."""
        remaining = self._plan.total_steps - state.step
        eta = state.seconds / state.step * remaining
        if self._settings.max_seconds is not None:
            eta = max(0.0, min(eta, self._settings.max_seconds - state.seconds))
        event = Stepped(
            step=state.step,
            total_steps=self._plan.total_steps,
            epoch=self._plan.epoch(state.step),
            loss=loss,
            learning_rate=learning_rate,
            grad_norm=norm,
            tokens_per_second=state.window.tokens / max(state.window.seconds, 1e-9),
            rss_bytes=resident_bytes(),
            eta_seconds=eta,
        )
        if state.step % self._settings.log_steps == 0:
            self._write_train(state, event)
        self.emit(event)

    def evaluated(self, state: TrainState, result: Evaluation, is_best: bool) -> None:
        """Tell about an evaluation."""
        epoch, metrics = self._plan.epoch(state.step), result.metrics
        values = {"epoch": epoch, "score": result.score, "is_best": is_best, "metrics": metrics}
        self.metrics.write("eval", state.step, values, {"seconds": result.seconds})
        self.emit(
            Evaluated(state.step, epoch, result.score, metrics, is_best, seconds=result.seconds)
        )

    def found(self, finding: Finding | None, *, is_fatal: bool = False) -> None:
        """Tell about a finding of the guard, if there is one.

        Raises:
            TrainingDiverged: it is confirmed and `is_fatal`.
        """
        if finding is None:
            return
        self.findings.append(finding)
        values = {"finding": finding.kind, "message": finding.message}
        self.metrics.write("guard", finding.step, {**values, "evidence": finding.evidence}, {})
        self.emit(Found(finding))
        if finding.is_confirmed and is_fatal:
            raise TrainingDiverged(finding.message, step=finding.step, evidence=finding.evidence)

    def warned(self, step: int, message: str) -> None:
        """Tell about a fault that the run survives: the caller, or the log if nobody listens."""
        if self.emit is _ignore:
            log.warning("step %d: %s", step, message)
        self.metrics.write("warning", step, {"message": message}, {})
        self.emit(Warned(step, message))

    def _write_train(self, state: TrainState, event: Stepped) -> None:
        window = state.window
        values: dict[str, Any] = {
            "epoch": event.epoch,
            "loss": window.loss / window.steps if window.steps else math.nan,
            "learning_rate": event.learning_rate,
            "grad_norm": event.grad_norm,
            "tokens_seen": state.tokens_seen,
        }
        terms = window.means()
        if len(terms) > 1:
            values["terms"] = terms
        timing = {
            "tokens_per_second": event.tokens_per_second,
            "rss_bytes": event.rss_bytes,
            "eta_seconds": event.eta_seconds,
            "data_fraction": window.data_seconds / max(window.seconds, 1e-9),
        }
        self.metrics.write("train", state.step, values, timing)
        state.window = Window()


def _ignore(event: Event) -> None:
    """Do nothing with an event."""
