"""Whether a run that names no model starts from the encoder of the package, or from new weights, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from litebert.models import DEFAULT, default, path
from litebert.recipes.finetune.language import MIN_READABLE, readable_share
from litebert.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import FinetuneSettings, ModelSettings

__all__ = ["AUTO", "SCRATCH", "choose_start"]

AUTO: Final = "auto"
"""The encoder of the package where it fits, else new weights."""
SCRATCH: Final = "scratch"
"""New weights, in a shape that fits the amount of data."""

_OF_NEW_WEIGHTS: Final = ("vocab_size", "lower_case", "keep_accents")
_FREE: Final = frozenset(
    {"hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob", "litebert"}
)
"""Values of the configuration that pretrained weights can be given."""
_FREE_OPTIONS: Final = frozenset({"exit_heads", "pooling", "pooler_reads", "head"})


def choose_start(settings: FinetuneSettings, texts: Sequence[str]) -> tuple[str, str]:
    """Return the source that `auto` stands for, and why, in words; `scratch` needs no words of its own.

    Args:
        settings: of the run.
        texts: that are trained on.
    """
    name = default()
    if name is None:
        return SCRATCH, ""
    told = _told_for_new_weights(settings.model)
    if told:
        return SCRATCH, f"not from {name}, because {told} is told, which is for new weights"
    share = readable_share(Tokenizer.from_pretrained(path(name)), texts)
    if share < MIN_READABLE:
        return SCRATCH, (
            f"not from {name}, which is English: its vocabulary reads {share:.0%} of the letters of "
            "these texts in more than single letters"
        )
    return name, f"weights of {DEFAULT}, which comes with litebert (--from scratch trains new ones)"


def _told_for_new_weights(model: ModelSettings) -> str:
    """The first told setting that pretrained weights cannot follow, or nothing."""
    names = [f"model.{name}" for name in _OF_NEW_WEIGHTS if name in model.model_fields_set]
    names += [f"model.config.{name}" for name in model.config if name not in _FREE]
    options: Any = model.config.get("litebert", {})
    names += [
        f"model.config.litebert.{name}"
        for name in (options if isinstance(options, dict) else ())
        if name not in _FREE_OPTIONS
    ]
    return names[0] if names else ""
