"""What a model says about itself, and the proof that it answers before anybody may ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from litebert.errors import CheckpointError, LitebertError
from litebert.serve.engine.operations.inputs import encode
from litebert.tasks.exit_file import read_exit_curve

if TYPE_CHECKING:
    from litebert.runtime.session import Session
    from litebert.runtime.text_model import Text

__all__ = ["describe", "self_test"]

AGREEMENT: Final = {"fp32": 1e-4, "fp16": 2e-2, "int8": 0.5}
"""Allowed difference of an output computed alone and in company, as a share of the largest number.

In int8 the activations of a call share a scale; the bound catches a broken graph, not rounding.
"""
_TEXTS: Final = ("a short text", "b", "another text that is somewhat longer than the first one is")
_MOST_LABELS: Final = 1000


def describe(session: Session) -> dict[str, Any]:
    """Return the facts of `/info`, JSON values only."""
    task: Any = session.task
    labels = {} if task is None else task.config_labels()
    kind = getattr(task, "kind", None)
    return {
        "task": None if task is None else task.name,
        "head": session.head,
        "routes": _routes(session),
        "labels": [labels[i] for i in sorted(labels)][:_MOST_LABELS],
        "is_pair": bool(getattr(task, "is_pair", False)),
        "kind": kind,
        "threshold": getattr(task, "threshold", None) if kind == "multilabel" else None,
        "text_columns": list(getattr(task, "text_columns", ())),
        "precision": session.precision,
        "depths": session.depths,
        "exits": _can_exit(session),
        "curve": read_exit_curve(session.folder),
        "hidden_size": session.hidden_size,
        "max_input_length": session.max_positions,
        "task_max_length": getattr(task, "max_length", None),
        "vocab_size": session.tokenizer.vocab_size,
        "mask_token": session.tokenizer.token(session.tokenizer.mask_id),
        "threads": session.threads,
    }


def self_test(session: Session) -> None:
    """Compute some texts, alone and together; this warms the model up, too.

    It takes a third of a second with albert-base: an engine that died must be back soon.

    Raises:
        CheckpointError: outputs that are not finite or depend on their company.
    """
    texts: list[Text] = list(_TEXTS)
    examples = encode(session, texts, truncate=True)
    longer = encode(session, [" ".join(_TEXTS * 6)], truncate=True)
    together = session.pooled(examples, "mean", batch_tokens=1 << 12)
    alone = [session.pooled([example], "mean", batch_tokens=1 << 12)[0] for example in examples]
    session.pooled(longer, "mean", batch_tokens=1 << 12)
    values = np.concatenate([together, np.stack(alone)])
    if not np.isfinite(values).all():
        raise CheckpointError(
            "the model gives NaN or infinity for plain texts", path=session.folder
        )
    worst = float(np.abs(together - np.stack(alone)).max())
    allowed = AGREEMENT.get(session.precision, 0.5) * max(1e-6, float(np.abs(together).max()))
    if worst > allowed:
        raise CheckpointError(
            f"a text computed alone and in company differs by {worst:.2g}, allowed {allowed:.2g}; "
            "export the model again",
            path=session.folder,
        )


def _can_exit(session: Session) -> bool:
    """Whether texts can leave before the last depth."""
    try:
        session.set_exit("patience=1")
    except LitebertError:
        return False
    finally:
        session.set_exit(None)
    return True


def _routes(session: Session) -> list[str]:
    """Routes that this model answers."""
    task = cast("Any", session.task)
    found = ["/embed", "/similarity", "/v1/embeddings", "/tokenize", "/decode"]
    head = getattr(task, "head", session.head)
    if hasattr(task, "decode"):
        found.append("/predict")
        if getattr(task, "is_pair", False) and getattr(task, "kind", "") in (
            "binary",
            "regression",
        ):
            found.append("/rerank")
    elif task is None or head == "embedding":
        found.append("/rerank")
    if head in ("span", "span_joint") and hasattr(task, "from_text"):
        found.append("/v1/qa")
    elif head == "token":
        found.append("/v1/ner")
    elif head == "choice":
        found.append("/v1/choice")
    if session.head in ("mlm", "pretraining"):
        found.append("/v1/fill-mask")
    return sorted(found)
