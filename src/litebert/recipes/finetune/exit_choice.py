"""The loss of a run that learns to answer before its last depth, and how its plan says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litebert.errors import SettingsError
from litebert.recipes.finetune.loss_choice import label_loss
from litebert.train.exit_loss import ExitLoss
from litebert.train.micro import LabelledLoss
from litebert.train.random_depth import RandomDepth, depth_probabilities
from litebert.train.step_losses import make_step_loss
from litebert.train.two_pass import ComparingLoss

if TYPE_CHECKING:
    from litebert.train.exit_settings import ExitSettings
    from litebert.train.micro import StepLoss

__all__ = ["exit_lines", "with_exits"]


def with_exits(plan: Any, loss: StepLoss | None) -> StepLoss | None:
    """Return the loss that `[exits]` makes of a loss; the same where it asks for nothing.

    Args:
        plan: an `AnyPlan`.
        loss: what is minimised after the last depth; None: the model's own loss on the labels.

    Raises:
        SettingsError: what is asked for does not fit the task, the model or other settings.
    """
    settings: ExitSettings = plan.settings.exits
    if settings.is_off:
        return loss
    _check(plan)
    if settings.heads:
        loss = ExitLoss(
            label_loss(plan),
            depth_weights=settings.depth_weights,
            first_depth=settings.first_depth,
            distill=settings.distill,
        )
    if settings.random_depth != "off":
        loss = RandomDepth(loss or LabelledLoss(), settings.random_depth, settings.first_depth)
    return loss


def exit_lines(plan: Any) -> list[str]:
    """Return lines for a person; none where only the last depth is trained to answer.

    Raises:
        SettingsError: as `with_exits`.
    """
    settings: ExitSettings = plan.settings.exits
    if settings.is_off:
        return []
    with_exits(plan, None)
    first, last = settings.first_depth, plan.model.config.num_hidden_layers
    parts: list[str] = []
    if settings.heads:
        law = "weighted by depth" if settings.depth_weights == "depth" else "weighted equally"
        parts.append(f"a classifier at each depth from {first} to {last}, {law}")
    if settings.distill:
        parts.append(f"taught by the deepest with weight {settings.distill:g}")
    if settings.random_depth != "off":
        law = "uniform" if settings.random_depth == "uniform" else "deeper ones more often"
        parts.append(f"passes of random depth from {first} to {last}, {law}")
    return [f"exits     {'; '.join(parts)}"]


def _check(plan: Any) -> None:
    settings: ExitSettings = plan.settings.exits
    depths = plan.model.config.num_hidden_layers
    depth_probabilities(depths, "uniform", settings.first_depth)
    if settings.heads and depths < 2:
        raise SettingsError("exits.heads needs a model of two depths or more; this one has 1")
    if not settings.heads and (settings.distill or settings.depth_weights != "depth"):
        name = "distill" if settings.distill else "depth_weights"
        raise SettingsError(
            f"exits.{name} is for the classifiers of depths; set exits.heads = true"
        )
    if settings.heads and plan.settings.train.gradient_checkpointing:
        raise SettingsError(
            "exits.heads holds what every depth gives, so gradient_checkpointing would save nothing; "
            "leave it out"
        )
    if settings.heads:
        ExitLoss(label_loss(plan))  # refuses tasks and losses that it does not fit
    task = plan.task
    if isinstance(make_step_loss(getattr(task, "loss", "labels"), task), ComparingLoss):
        raise SettingsError(
            "exits.random_depth draws a depth for each part of a batch, but this task compares the "
            "examples of a batch with each other; leave it out"
        )
