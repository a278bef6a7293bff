"""The official files of predictions for SQuAD: best answers, n-best lists, odds of no answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litebert.tasks.span_decode import SpanAnswer

__all__ = ["nbest_rows", "to_file"]


def nbest_rows(spans: Sequence[SpanAnswer]) -> list[dict[str, Any]]:
    """Return the entries of `nbest_predictions.json`, at least one.

    Source: official `squad_utils.py`, `write_predictions`.
    """
    rows = [
        {
            "text": span.text,
            "probability": span.probability,
            "start_log_prob": span.start_score,
            "end_log_prob": span.end_score,
        }
        for span in spans
    ]
    nothing = {"text": "", "probability": 1.0, "start_log_prob": -1e6, "end_log_prob": -1e6}
    return rows or [nothing]


def to_file(values: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return JSON with the indentation of the official files."""
    return json.dumps(values, indent=4, ensure_ascii=False) + "\n"
