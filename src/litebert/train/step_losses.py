"""What a task minimises, by the word it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from litebert.registry import Registry
from litebert.train.joint_loss import JointTaggingLoss
from litebert.train.micro import LabelledLoss, StepLoss
from litebert.train.similarity_loss import ContrastiveLoss, CosineLoss

__all__ = ["STEP_LOSSES", "make_step_loss"]

STEP_LOSSES: Final[Registry[Callable[[Any], StepLoss]]] = Registry("loss")
"""Word -> function of the task that returns its loss."""


@STEP_LOSSES.register("labels")
def _labels(_task: Any) -> StepLoss:
    return LabelledLoss()


@STEP_LOSSES.register("cosine_mse")
def _cosine(task: Any) -> StepLoss:
    return CosineLoss(task.dims)


@STEP_LOSSES.register("contrastive")
def _contrastive(task: Any) -> StepLoss:
    return ContrastiveLoss(scale=task.scale, is_symmetric=task.symmetric, dims=task.dims)


@STEP_LOSSES.register("joint_tagging")
def _joint_tagging(task: Any) -> StepLoss:
    return JointTaggingLoss(task)


def make_step_loss(word: str, task: Any) -> StepLoss:
    """Return the loss that a task names.

    Raises:
        SettingsError: no such loss.
    """
    return STEP_LOSSES.get(word)(task)
