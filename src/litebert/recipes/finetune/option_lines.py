"""What a run does otherwise than usual with weights and loss, as lines of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litebert.errors import SettingsError
from litebert.recipes.finetune.adapt_settings import AdaptSettings

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import FinetuneSettings

__all__ = ["has_options", "option_lines"]


def has_options(settings: FinetuneSettings) -> bool:
    """Whether `[adapt]`, `[loss]` or `[exits]` ask for anything, which training on pairs cannot do."""
    is_plain = settings.loss.is_plain and settings.exits.is_off
    return settings.adapt != AdaptSettings() or not is_plain


def option_lines(plan: Any) -> list[str]:
    """Return lines for a person; none for a run that trains everything on the plain loss.

    Args:
        plan: an `AnyPlan`.

    Raises:
        SettingsError: settings that do not fit the task or the model.
    """
    # torch takes a second to import, and a plan is read by commands that do not train.
    from litebert.recipes.finetune.adapt import adapt_lines
    from litebert.recipes.finetune.exit_choice import exit_lines
    from litebert.recipes.finetune.loss_choice import loss_lines

    if getattr(plan, "is_few_shot", False) and has_options(plan.settings):
        raise SettingsError(
            "few_shot trains the whole encoder on pairs with a loss of its own, so [adapt], [loss] and "
            "[exits] would do nothing; leave them out, or set few_shot = false"
        )
    return [*adapt_lines(plan), *loss_lines(plan), *exit_lines(plan)]
