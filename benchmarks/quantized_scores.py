"""What int8 costs a trained model: its exports through onnxruntime, on the evaluation part of its own plan."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litebert.recipes.export import export_model
from litebert.recipes.finetune.plan import Plan
from litebert.recipes.finetune.record_plan import RecordPlan
from litebert.runtime.session import Session
from litebert.tasks.evaluation import evaluate_answers

BATCH_TOKENS = 2048
MAX_TOKENS = 150_000
"""Of longer evaluation parts every second, third, ... example is scored."""


def exported_scores(plan: Plan | RecordPlan, model: Path, scratch: Path) -> dict[str, Any]:
    """Return for fp32 and int8 the score of the task's metric, seconds and the file's bytes.

    Args:
        plan: what the model was trained by; its evaluation part is scored, or an even sample of it.
        model: model folder or run folder.
        scratch: empty folder for the exports.
    """
    found: dict[str, Any] = {}
    for precision in ("fp32", "int8"):
        out = scratch / f"export-{precision}"
        export_model("onnx", model, out, precisions=(precision,), plain=False, least_agreement=0.0)
        session = Session(out, threads=1)
        examples = plan.eval.examples[:: math.ceil(plan.eval.num_tokens / MAX_TOKENS)]
        start = time.monotonic()
        scores = _scores(plan, session, examples)
        (graph,) = (out / "onnx").glob("*.onnx")
        found[precision] = {
            "score": scores[plan.task.metric],
            "examples": len(examples),
            "seconds": round(time.monotonic() - start, 1),
            "bytes": graph.stat().st_size,
        }
    return found


def _scores(plan: Plan | RecordPlan, session: Session, examples: Sequence[Any]) -> dict[str, float]:
    if isinstance(plan, RecordPlan):
        task: Any = session.required_task  # with what training added, such as a threshold
        return task.evaluate(examples, session.answers(examples, batch_tokens=BATCH_TOKENS))
    labels = np.asarray([plan.task.encode_label(example) for example in examples])
    logits = session.logits(examples, batch_tokens=BATCH_TOKENS)
    return evaluate_answers(plan.task, logits, labels, list(examples)).scores
