"""Operations over one text and many others: re-ranking, and cosines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from litebert.errors import DataError
from litebert.serve.engine.jobs import Plan, write_json
from litebert.serve.engine.operations.inputs import encode, task_name
from litebert.serve.engine.operations.texts import classifier_plan
from litebert.serve.engine.operations.vectors import shaped

if TYPE_CHECKING:
    from litebert.runtime.session import Session
    from litebert.serve.engine.jobs import Outputs
    from litebert.tasks.classification import SequenceClassification

__all__ = ["rerank", "similarity"]


def rerank(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan how well each text answers a query, best first.

    A classifier of pairs gives the probability of its last label, or its number; an encoder gives
    the cosine.

    Raises:
        DataError: a model that does neither, or a text that must not be cut and is.
    """
    task: Any = session.task
    texts: list[str] = args["texts"]

    def write(scores: Sequence[float]) -> bytes:
        order = np.argsort(-np.asarray(scores), kind="stable").tolist()
        return write_json(
            [
                {"index": i, "score": float(scores[i])}
                | ({"text": texts[i]} if args["return_text"] else {})
                for i in order
            ]
        )

    if getattr(task, "is_pair", False):
        classifier = cast("SequenceClassification", task)
        if classifier.kind not in ("binary", "regression"):
            raise DataError(
                f"the model gives {len(classifier.labels)} labels to a pair, which are no order; "
                "re-rank with a model of two labels, of a number, or of embeddings"
            )

        def write_logits(logits: np.ndarray) -> bytes:
            if args["raw_scores"]:
                return write(logits[:, -1].tolist())
            if classifier.kind == "regression":
                return write(classifier.values(logits).tolist())
            return write(classifier.probabilities(logits)[:, -1].tolist())

        pairs = [(args["query"], text) for text in texts]
        return classifier_plan(session, list(pairs), truncate=args["truncate"], write=write_logits)
    if hasattr(task, "decode") or (hasattr(task, "features") and task.head != "embedding"):
        raise DataError(
            f"the model was trained for {task_name(session)}, which puts no texts in order; "
            "re-rank with a classifier of pairs or with a model of embeddings"
        )
    return _cosines(session, args, args["query"], texts, write)


def similarity(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan the cosines of one sentence and others, in order.

    Raises:
        DataError: a text that must not be cut and is.
    """
    return _cosines(session, args, args["source"], args["sentences"], write_json)


def _cosines(
    session: Session, args: Mapping[str, Any], first: str, others: list[str], write: Any
) -> Plan:
    examples = encode(
        session, [first, *others], truncate=args["truncate"], keep=args.get("keep", "head")
    )

    def finish(outputs: Outputs) -> bytes:
        vectors = shaped(np.concatenate(outputs), dimensions=None, normalize=True)
        return cast("bytes", write((vectors[1:] @ vectors[0]).tolist()))

    return Plan(args["pooling"], examples, finish)
