"""The loss that a run minimises on the labels of texts and tokens, from its settings and data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.data.batch import collate
from litebert.errors import SettingsError
from litebert.train.class_weights import class_weights
from litebert.train.finetune_loss import FinetuneLoss, LabelKind

if TYPE_CHECKING:
    from litebert.train.loss_settings import LossSettings

__all__ = ["choose_loss", "label_loss", "loss_lines"]

_KINDS: Final[dict[str | None, LabelKind]] = {
    None: "classes",
    "single_label_classification": "classes",
    "multi_label_classification": "subset",
    "regression": "number",
}
_SHOWN: Final = 6


def choose_loss(plan: Any) -> FinetuneLoss | None:
    """Return the loss that `[loss]` asks for; None where it asks for nothing.

    Args:
        plan: an `AnyPlan`.

    Raises:
        SettingsError: what is asked for does not fit the task or the model.
    """
    return None if plan.settings.loss.is_plain else label_loss(plan)


def label_loss(plan: Any) -> FinetuneLoss:
    """Return the loss on labels, which may be the plain one.

    Raises:
        SettingsError: as `choose_loss`.
    """
    settings: LossSettings = plan.settings.loss
    _check(plan)
    task = plan.task
    names = list(task.config_labels().values())
    return FinetuneLoss(
        _KINDS[task.problem_type],
        num_classes=len(names),
        label_smoothing=settings.label_smoothing,
        class_weights=_weights(plan),
        r_drop=settings.r_drop,
    )


def loss_lines(plan: Any) -> list[str]:
    """Return the loss as lines for a person; none if it is the plain one.

    Raises:
        SettingsError: as `choose_loss`.
    """
    settings: LossSettings = plan.settings.loss
    averaging = plan.settings.train.averaging
    lines: list[str] = []
    if not settings.is_plain:
        _check(plan)
        parts: list[str] = []
        if settings.label_smoothing:
            parts.append(f"labels smoothed by {settings.label_smoothing:g}")
        weights = _weights(plan)
        if weights is not None:
            parts.append(f"class weights {_show(weights, plan.task.config_labels())}")
        if settings.r_drop:
            parts.append(f"R-Drop {settings.r_drop:g} (two passes)")
            if not _encoder_dropout(plan):
                parts.append(
                    "only the head has dropout for it, see model.config.hidden_dropout_prob"
                )
        lines.append(f"loss      {'; '.join(parts)}")
    if averaging is not None:
        lines.append(
            f"averaging {averaging.kind} of the weights after {averaging.start_fraction:.0%} of the run"
        )
    return lines


def _weights(plan: Any) -> np.ndarray | None:
    settings: LossSettings = plan.settings.loss
    labels = collate(plan.train.encoded).labels
    if settings.class_weights == "none" or labels is None:
        return None
    if np.issubdtype(labels.dtype, np.floating) and labels.ndim == 1:
        raise SettingsError("loss.class_weights are for classes, but the labels are numbers")
    return class_weights(settings.class_weights, labels, list(plan.task.config_labels().values()))


def _check(plan: Any) -> None:
    settings: LossSettings = plan.settings.loss
    task, config = plan.task, plan.model.config
    loss = getattr(task, "loss", "labels")
    if loss != "labels" or task.head not in ("sequence", "token"):
        raise SettingsError(
            f"[loss] settings and exits.heads are for labels of texts and of tokens; task {task.name!r} minimises "
            f"{loss!r} with the head {task.head!r}: leave them out"
        )
    if _KINDS[task.problem_type] == "number" and settings.label_smoothing:
        raise SettingsError("loss.label_smoothing is for classes, but the labels are numbers")
    if settings.r_drop and not (_encoder_dropout(plan) or config.classifier_dropout_prob):
        raise SettingsError(
            "loss.r_drop compares two passes with different dropout, but the model has none; set "
            "model.config.hidden_dropout_prob, for example to 0.1"
        )


def _encoder_dropout(plan: Any) -> bool:
    config = plan.model.config
    return bool(config.hidden_dropout_prob or config.attention_probs_dropout_prob)


def _show(weights: np.ndarray, labels: dict[int, str]) -> str:
    column = weights if weights.ndim == 1 else weights[:, 1]
    shown = ", ".join(f"{labels[i]} {w:.3g}" for i, w in enumerate(column[:_SHOWN].tolist()))
    return shown + (", ..." if len(column) > _SHOWN else "")
