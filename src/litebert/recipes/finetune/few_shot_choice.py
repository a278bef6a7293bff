"""Whether a table is so small that its examples are learnt from in pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from litebert.errors import SettingsError
from litebert.recipes.finetune.few_shot import wants_few_shot
from litebert.recipes.finetune.option_lines import has_options

if TYPE_CHECKING:
    from litebert.data.examples import Example
    from litebert.recipes.finetune.model_choice import ModelChoice
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.tasks.classification import SequenceClassification

__all__ = ["choose_few_shot"]

_OWN_LENGTH: Final = frozenset({"epochs", "max_steps", "learning_rate", "batch_size"})
"""Settings of the loop that pairs do not follow; whoever tells one wants ordinary training."""


def choose_few_shot(
    settings: FinetuneSettings,
    task: SequenceClassification,
    model: ModelChoice,
    examples: Sequence[Example],
) -> tuple[bool, str]:
    """Return whether to learn from pairs, and why, in words; the words are empty for the usual no.

    Raises:
        SettingsError: it is told, and the task, the model or other settings do not allow it.
    """
    if settings.few_shot is False:
        return False, ""
    if settings.data.long_texts == "windows":
        if settings.few_shot:
            raise SettingsError(
                "few_shot learns from whole texts in pairs, not from windows; leave out few_shot, or "
                'data.long_texts = "windows"'
            )
        return False, ""
    counts = Counter(str(example.label) for example in examples)
    reason = wants_few_shot(
        kind=task.kind,
        is_pair=task.is_pair,
        label_counts=[counts[label] for label in task.labels],
        is_pretrained=model.folder is not None,
        hidden_size=model.config.hidden_size,
    )
    if settings.few_shot is None:
        is_told = bool(_OWN_LENGTH & settings.train.model_fields_set) or has_options(settings)
        return (False, "") if reason is None or is_told else (True, reason)
    if reason is None:
        raise SettingsError(
            f"few_shot needs a pretrained --model, single texts with one label each, and at most 64 "
            f"examples of a class; got {task.kind} labels of {'pairs' if task.is_pair else 'texts'}, "
            f"{max(counts.values(), default=0):,} of the largest class, "
            f"{'a pretrained' if model.folder else 'no pretrained'} model; leave few_shot out"
        )
    return True, reason
