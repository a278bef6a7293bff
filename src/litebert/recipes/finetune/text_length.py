"""How many tokens of a text are read, in one piece or in windows, and what is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.errors import SettingsError
from litebert.tasks.long_texts import loses_pieces, usual_stride

if TYPE_CHECKING:
    from litebert.data.examples import Example
    from litebert.recipes.finetune.model_choice import ModelChoice
    from litebert.recipes.finetune.settings import DataSettings
    from litebert.tasks.classification import SequenceClassification

__all__ = ["cut_fraction", "fit_length"]

COVERED_FRACTION: Final = 0.995
"""Share of training examples that the automatic maximum length leaves whole."""
AUTO_MAX_LENGTH: Final = 256


def fit_length(
    task: SequenceClassification,
    model: ModelChoice,
    examples: Sequence[Example],
    data: DataSettings,
) -> tuple[SequenceClassification, list[int]]:
    """Set maximum length and stride; return the task and the uncut length of each example in tokens.

    Raises:
        SettingsError: a length that the model has no positions for, or a stride that skips pieces.
    """
    limit, told = model.config.max_position_embeddings, data.max_length
    probe = [_uncut_length(model, example, limit) for example in examples]
    if told is not None and told > limit:
        raise SettingsError(
            f"max_length is {told}, but the model has {limit} positions; give at most {limit}"
        )
    covering = math.ceil(float(np.quantile(probe, COVERED_FRACTION)))
    length = told or max(16, min(limit, AUTO_MAX_LENGTH, 8 * math.ceil(covering / 8)))
    stride = None
    if data.long_texts == "windows":
        stride = data.stride or usual_stride(length)
        if stride > length - 2:
            raise SettingsError(
                f"data.stride is {stride} and would skip pieces; allowed: 1 to max_length - 2 = {length - 2}"
            )
    return task.model_copy(update={"max_length": length, "stride": stride}), probe


def _uncut_length(model: ModelChoice, example: Example, limit: int) -> int:
    encoding = model.tokenizer.encode(example.text, example.pair, max_length=limit)
    return len(encoding.ids) + encoding.truncated


def cut_fraction(
    task: SequenceClassification,
    model: ModelChoice,
    examples: Sequence[Example],
    lengths: Sequence[int],
) -> float:
    """Return the share of examples of which something is not read."""
    long = [e for e, tokens in zip(examples, lengths, strict=True) if tokens > task.max_length]
    if task.stride is None:
        return len(long) / len(lengths)
    cut = 0
    for example in long:
        texts = (example.text,) if example.pair is None else (example.text, example.pair)
        cut += loses_pieces(task, [len(model.tokenizer.pieces(text).ids) for text in texts])
    return cut / len(lengths)
