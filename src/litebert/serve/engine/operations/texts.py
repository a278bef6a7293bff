"""Operations over texts and pairs of texts: vectors, and answers of classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from litebert.data.examples import Example
from litebert.errors import DataError
from litebert.serve.engine.jobs import Plan, write_json
from litebert.serve.engine.operations.inputs import encode, listed, refuse_cut, task_name
from litebert.serve.engine.operations.vectors import openai_body, rows_body, shaped
from litebert.tasks.long_texts import encode_texts, gather_texts

if TYPE_CHECKING:
    from pathlib import Path

    from litebert.runtime.session import Session
    from litebert.runtime.text_model import Text
    from litebert.serve.engine.jobs import Outputs
    from litebert.tasks.base import Prediction, Task

__all__ = ["classifier_plan", "embed", "predict"]


def embed(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan vectors of texts.

    Raises:
        DataError: a text is too long and must not be cut, or more numbers than a vector has.
    """
    texts, _ = listed(args["inputs"], is_pair=False)
    dimensions = args["dimensions"]
    if dimensions is not None and dimensions > session.hidden_size:
        raise DataError(f"dimensions is {dimensions}; vectors have {session.hidden_size} numbers")
    examples = encode(session, texts, truncate=args["truncate"], keep=args["keep"])
    tokens = sum(map(len, examples))

    def finish(outputs: Outputs) -> bytes:
        vectors = shaped(
            np.concatenate(outputs), dimensions=dimensions, normalize=args["normalize"]
        )
        if args["form"] == "rows":
            return rows_body(vectors)
        return openai_body(
            vectors, model=args["model"], tokens=tokens, is_base64=args["form"] == "base64"
        )

    return Plan(args["pooling"], examples, finish)


def predict(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan the answers of a classifier, best label first.

    Raises:
        DataError: the model is no classifier, takes other texts, or a text must not be cut and is.
    """
    task = cast("Any", session.task)
    if not hasattr(task, "decode"):
        raise DataError(
            f"the model was trained for {task_name(session)} and has no labels for texts; "
            "GET /info names the routes that it answers"
        )
    texts, is_single = listed(args["inputs"], is_pair=getattr(task, "is_pair", False))
    top = args["top_k"]

    def write(logits: np.ndarray) -> bytes:
        if args["raw_scores"]:
            rows = [_raw(task, row) for row in logits]
        else:
            rows = [_scores(task, prediction) for prediction in task.decode(logits)]
        if top is not None:
            rows = [row[:top] for row in rows]
        return write_json(rows[0] if is_single and not args["nested"] else rows)

    return classifier_plan(session, texts, truncate=args["truncate"], write=write)


def classifier_plan(session: Session, texts: list[Text], *, truncate: bool, write: Any) -> Plan:
    """Plan the logits of a classifier; `write` makes the body from [N, C].

    Raises:
        DataError: other texts than the model takes, or one that must not be cut and is.
    """
    task = cast("Task", session.task)
    if not truncate and getattr(task, "stride", None) is None:
        length = getattr(task, "max_length", session.max_positions)
        refuse_cut(session.tokenizer.encode_batch(texts, max_length=length), length)
    here = cast("Path", None)  # no file: messages about an input name its number alone
    examples = [
        Example(text=first, pair=second, label=None, path=here, line=number)
        for number, (first, second) in enumerate(map(_parts, texts))
    ]
    windows, bounds = encode_texts(task, examples, session.tokenizer)

    def finish(outputs: Outputs) -> bytes:
        return cast("bytes", write(gather_texts(np.concatenate(outputs), bounds)))

    return Plan("head", windows, finish)


def _parts(text: Text) -> tuple[str, str | None]:
    return text if isinstance(text, tuple) else (text, None)


def _scores(task: Task, prediction: Prediction) -> list[dict[str, Any]]:
    if not prediction.scores:
        return [{"label": task.config_labels()[0], "score": prediction.score}]
    return [{"label": label, "score": score} for label, score in prediction.scores.items()]


def _raw(task: Task, row: np.ndarray) -> list[dict[str, Any]]:
    labels = task.config_labels()
    order = np.argsort(-row, kind="stable").tolist()
    return [{"label": labels[i], "score": float(row[i])} for i in order]
