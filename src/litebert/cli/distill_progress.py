"""Distillation as a person sees it: how far from the teacher, and the correlations."""

from __future__ import annotations

from typing import Any

from litebert.cli.progress import Progress

__all__ = ["DistillProgress"]


class DistillProgress(Progress):
    """Renders the events of a distillation on standard error."""

    def _on_evaluated(self, event: Any) -> None:
        parts = [
            f"{name.removesuffix('_loss').replace('_', ' ')} {value:.4f}"
            for name, value in event.metrics.items()
            if name != "score"
        ]
        self._say(f"step {event.step:,}  held out: {', '.join(parts)}")
