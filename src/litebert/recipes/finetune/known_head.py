"""Whether the head in the folder to start from was trained for the same labels, or must begin anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litebert.model.config import AlbertConfig
from litebert.recipes.finetune.defaults import begins_fitted

if TYPE_CHECKING:
    from litebert.model.albert import AlbertWithHead

__all__ = ["head_notes", "is_head_foreign", "is_head_known", "renew_head"]

_LABELLED: Final = frozenset({"sequence", "token"})
"""Heads with one row of weights for each label; those of other heads mean the same in every task."""
_SHOWN: Final = 4


def is_head_foreign(plan: Any) -> bool:
    """Whether the folder has a head of this kind and size whose rows stand for other labels.

    Its weights would load without a word, and each row would answer for a label it never saw.

    Args:
        plan: an `AnyPlan`.

    Raises:
        CheckpointError: the configuration of the folder cannot be used.
    """
    saved = _saved(plan)
    return saved is not None and not _is_same(plan, saved)


def is_head_known(plan: Any) -> bool:
    """Whether the folder has a head that was trained for the same labels.

    Args:
        plan: an `AnyPlan`.

    Raises:
        CheckpointError: the configuration of the folder cannot be used.
    """
    saved = _saved(plan)
    return saved is not None and _is_same(plan, saved)


def head_notes(plan: Any, fresh: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the plan says about a head that the folder has.

    Args:
        plan: an `AnyPlan`.
        fresh: parts that the folder does not have, which is said elsewhere.
    """
    saved = _saved(plan)
    if saved is None or plan.task.head in fresh:
        return ()
    names = ", ".join(map(str, list(saved.id2label.values())[:_SHOWN]))
    names += ", ..." if len(saved.id2label) > _SHOWN else ""
    if _is_same(plan, saved):
        return (
            f"the head goes on from {plan.model.folder}, which was trained for the same labels",
        )
    start = (
        "begins as the linear head that fits"
        if begins_fitted(plan.model)
        else "is new and untrained"
    )
    return (
        f"the encoder of {plan.model.folder} goes on, the head {start}: the old one was for {names}",
    )


def renew_head(model: AlbertWithHead, head: str) -> None:
    """Give a head new weights, as the official code starts them."""
    from litebert.model.layers import init_weights

    init_weights(model.heads[head], model.config.initializer_range)


def _saved(plan: Any) -> AlbertConfig | None:
    """Return the configuration of a folder with a head of labels of this kind."""
    folder = plan.model.folder
    if folder is None or plan.task.head not in _LABELLED or getattr(plan, "is_few_shot", False):
        return None
    # torch takes a second to import, and a plan is read by commands that do not train.
    from litebert.checkpoint.folder import saved_head

    return AlbertConfig.load(folder) if saved_head(folder) == plan.task.head else None


def _is_same(plan: Any, saved: AlbertConfig) -> bool:
    if (saved.problem_type == "regression") != (plan.task.problem_type == "regression"):
        return False
    if saved.problem_type == "regression":
        return True  # one number, and targets are standardised
    names = {int(key): str(name) for key, name in saved.id2label.items()}
    return names == plan.task.config_labels()
