"""Downstream tasks without torch: read labels, encode examples, decode logits, score answers."""

from litebert.tasks.base import TASKS, Prediction, Task, load_task, parse_task
from litebert.tasks.choice import MultipleChoice as MultipleChoice
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.coqa import CoqaTask as CoqaTask
from litebert.tasks.embedding_classification import (
    EmbeddingClassification as EmbeddingClassification,
)
from litebert.tasks.joint_tagging import IntentSlots as IntentSlots
from litebert.tasks.quac import QuacTask as QuacTask
from litebert.tasks.similarity_kinds import make_similarity as make_similarity
from litebert.tasks.span import SquadTask as SquadTask

__all__ = ["TASKS", "Prediction", "SequenceClassification", "Task", "load_task", "parse_task"]
