"""Pretraining as a person sees it: loss and accuracies on held-out text, in words."""

from __future__ import annotations

from typing import Any, Final

from litebert.cli.progress import Progress

__all__ = ["PretrainProgress"]

_SHOWN: Final = (
    ("mlm_loss", "loss {:.3f}"),
    ("mlm_accuracy", "{:.1%} of masked tokens right"),
    ("rtd_accuracy", "{:.1%} of replaced tokens told"),
    ("sop_accuracy", "{:.1%} of orders right"),
    ("nsp_accuracy", "{:.1%} of next sentences right"),
)


class PretrainProgress(Progress):
    """Renders the events of a pretraining run on standard error."""

    def _on_evaluated(self, event: Any) -> None:
        parts = [form.format(event.metrics[n]) for n, form in _SHOWN if n in event.metrics]
        self._say(f"step {event.step:,}  held out: {', '.join(parts)}")
