"""What an engine can do, by name: each turns checked arguments into a plan.

The argument objects are what `litebert.serve.requests` lets through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from litebert.serve.engine.operations import pairs, records, texts, words

if TYPE_CHECKING:
    from litebert.runtime.session import Session
    from litebert.serve.engine.jobs import Plan

__all__ = ["OPERATIONS", "Operation"]

Operation = Callable[["Session", Mapping[str, Any]], "Plan"]

OPERATIONS: Final[dict[str, Operation]] = {
    "embed": texts.embed,
    "predict": texts.predict,
    "rerank": pairs.rerank,
    "similarity": pairs.similarity,
    "qa": records.answer_questions,
    "ner": records.tag,
    "choice": records.choose,
    "fill_mask": words.fill_mask,
    "tokenize": words.tokenize,
    "decode": words.decode,
}
