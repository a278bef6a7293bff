"""Downstream tasks without torch: read labels, encode examples, decode logits, score answers."""

from litebert.tasks.base import TASKS, Prediction, Task, load_task, parse_task
from litebert.tasks.classification import SequenceClassification

__all__ = ["TASKS", "Prediction", "SequenceClassification", "Task", "load_task", "parse_task"]
