"""What a run does otherwise than usual with weights and loss, as lines of its plan."""

from __future__ import annotations

from typing import Any

__all__ = ["option_lines"]


def option_lines(plan: Any) -> list[str]:
    """Return lines for a person; none for a run that trains everything on the plain loss.

    Args:
        plan: an `AnyPlan`.

    Raises:
        SettingsError: settings that do not fit the task or the model.
    """
    # torch takes a second to import, and a plan is read by commands that do not train.
    from litebert.recipes.finetune.adapt import adapt_lines
    from litebert.recipes.finetune.loss_choice import loss_lines

    return [*adapt_lines(plan), *loss_lines(plan)]
