"""Training as a person sees it: a live bar on a terminal, one line every ten seconds elsewhere."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from litebert.cli.output import say, visible

if TYPE_CHECKING:
    from litebert.recipes.finetune.run import RunEvent

__all__ = ["Progress"]

LINE_SECONDS: Final = 10.0
ENDINGS: Final = {
    "early_stopped": "no better score for some evaluations (--patience), the best one is kept",
    "time_up": "the time budget is used up",
}
"""Why a run ended before its last step."""


class Progress:
    """Renders the events of a run on standard error."""

    def __init__(self, metric: str, log: Path | None = None) -> None:
        """Start without a display.

        Args:
            metric: main score.
            log: file that keeps every line, with the time; it goes on where it ended.
        """
        self._metric = metric
        self._log = log
        self._live: Any = None
        self._bar: Any = None
        self._next_line = time.monotonic() + LINE_SECONDS

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown"):
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._live = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[facts]}"),
                console=Console(stderr=True),
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: RunEvent) -> None:
        """Show one event."""
        handler = getattr(self, f"_on_{type(event).__name__.lower()}", None)
        if handler is not None:
            handler(event)

    def _say(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(visible(text), markup=False, highlight=False)
        else:
            say(text)
        self._keep(text)

    def _keep(self, text: str) -> None:
        if self._log is None:
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            with self._log.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{stamp} {visible(text)}\n")
        except OSError as error:
            log, self._log = self._log, None
            self._say(f"warning   {log.name} is no longer written: {error.strerror}")

    def _on_baselinescored(self, event: Any) -> None:
        baseline = event.baseline
        self._say(f"baseline  {baseline.name}: {self._metric} {baseline.scores[self._metric]:.4f}")

    def _on_seedstarted(self, event: Any) -> None:
        if event.total > 1:
            self._say(f"seed {event.seed} ({event.number} of {event.total})")

    def _on_started(self, event: Any) -> None:
        start = f"from step {event.step:,} " if event.step else ""
        self._say(f"training  {start}on {event.device}, {event.threads} threads, {event.precision}")
        if self._live is not None:
            self._bar = self._live.add_task(
                "training", total=event.total_steps, completed=event.step, facts=""
            )

    def _on_stepped(self, event: Any) -> None:
        facts = f"loss {event.loss:.4f}  {event.tokens_per_second:,.0f} tokens/s"
        if self._live is not None:
            self._live.update(self._bar, completed=event.step, total=event.total_steps, facts=facts)
        if time.monotonic() < self._next_line:
            return
        self._next_line = time.monotonic() + LINE_SECONDS
        line = (
            f"step {event.step:,}/{event.total_steps:,}  {facts}  lr {event.learning_rate:.2e}  "
            f"{event.rss_bytes / 1e6:,.0f} MB  {_duration(event.eta_seconds)} left"
        )
        if self._live is None:
            say(line)
        self._keep(line)

    def _on_evaluated(self, event: Any) -> None:
        mark = "  best so far" if event.is_best else ""
        self._say(
            f"step {event.step:,}  epoch {event.epoch:.1f}  {self._metric} {event.metrics[self._metric]:.4f}{mark}"
        )

    def _on_warned(self, event: Any) -> None:
        self._say(f"warning   {event.message}")

    def _on_found(self, event: Any) -> None:
        state = "confirmed" if event.finding.is_confirmed else "suspected"
        self._say(f"guard     {state}: {event.finding.message}")

    def _on_rolledback(self, event: Any) -> None:
        self._say(
            f"guard     back from step {event.step:,} to {event.to_step:,}, learning rate x {event.lr_scale:g}"
        )

    def _on_restarted(self, event: Any) -> None:
        self._say(
            f"restart   attempt {event.attempt + 1}: seed {event.seed}, learning rate {event.learning_rate:.2e}"
        )
        self._say(f"          because {event.reason}")

    def _on_seedfinished(self, event: Any) -> None:
        result = event.result
        if self._bar is not None:
            self._live.remove_task(self._bar)
            self._bar = None
        if result.failure:
            self._say(f"seed {result.seed} failed: {result.failure}")
        elif result.result is not None and result.result.status in ENDINGS:
            self._say(f"stopped   at step {result.result.step:,}: {ENDINGS[result.result.status]}")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
