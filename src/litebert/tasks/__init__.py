"""Downstream tasks without torch: read labels, encode examples, decode logits, score answers.

A task's module is imported when its name is asked for: a process that answers one kind of question
does not load the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from litebert.tasks.base import TASKS, Prediction, Task, load_task, parse_task
from litebert.tasks.records import RECORD_KINDS

if TYPE_CHECKING:
    from litebert.tasks.classification import SequenceClassification

__all__ = ["TASKS", "Prediction", "SequenceClassification", "Task", "load_task", "parse_task"]

TASKS.declare("litebert.tasks.choice", "choice")
TASKS.declare("litebert.tasks.classification", "sequence_classification")
TASKS.declare("litebert.tasks.coqa", "coqa")
TASKS.declare("litebert.tasks.embedding_classification", "embedding_classification")
TASKS.declare("litebert.tasks.joint_tagging", "intent_slots")
TASKS.declare("litebert.tasks.quac", "quac")
TASKS.declare("litebert.tasks.similarity", "similarity")
TASKS.declare("litebert.tasks.span", "squad", "squad_v2")
TASKS.declare("litebert.tasks.tagging", "tagging")

RECORD_KINDS.declare(
    "litebert.tasks.choice", "arc", "arc/challenge", "arc/easy", "choice", "commonsense_qa", "dream",
    "jcommonsenseqa", "race", "race/high", "race/middle",
)  # fmt: skip
RECORD_KINDS.declare("litebert.tasks.coqa", "coqa")
RECORD_KINDS.declare("litebert.tasks.joint_tagging", "intent_slots")
RECORD_KINDS.declare("litebert.tasks.quac", "quac")
RECORD_KINDS.declare("litebert.tasks.similarity_kinds", "jsts", "sick", "similarity", "stsb")
RECORD_KINDS.declare("litebert.tasks.span", "squad", "squad_v2")
RECORD_KINDS.declare("litebert.tasks.tagging", "tagging")

_HOMES: Final = {"SequenceClassification": "litebert.tasks.classification"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use.

    Raises:
        AttributeError: not a public name.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
