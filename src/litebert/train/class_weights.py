"""How much an example of each class counts in the loss, from how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from litebert.errors import SettingsError
from litebert.train.chance import IGNORED_LABEL

__all__ = ["class_weights"]


def class_weights(
    wanted: str | Mapping[str, float], labels: NDArray[Any], names: Sequence[str]
) -> Float[np.ndarray, "C ..."] | None:
    """Return the weights, or None where all count the same.

    Args:
        wanted: a word of `LossSettings.class_weights`, or a table by name.
        labels: of the training examples or tokens: class index [N], or 0/1 for each class [N, C].
        names: of the classes in the order of their index.

    Returns:
        [C], one weight for each class; for 0/1 labels [C, 2]: for those that lack a label and for
        those that have it, each label a question of two classes of its own. A class that no example
        has counts as if it had one.

    Raises:
        SettingsError: a table with a name that is no class.
    """
    if wanted == "none":
        return None
    if isinstance(wanted, Mapping):
        weights = _told(wanted, names)
        return np.stack([np.ones_like(weights), weights], axis=1) if labels.ndim == 2 else weights
    if labels.ndim == 2:
        having = labels.sum(0, dtype=np.float64)
        pairs = np.stack([len(labels) - having, having], axis=1)
        return np.stack([_by_counts(pair, str(wanted)) for pair in pairs])
    kept = labels[labels != IGNORED_LABEL]
    return _by_counts(np.bincount(kept, minlength=len(names)), str(wanted))


def _by_counts(counts: Int[np.ndarray, " C"] | Float[np.ndarray, " C"], word: str) -> Any:
    """Weights by frequency; Source of "balanced": King and Zeng 2001, as in scikit-learn."""
    counts = counts.astype(np.float64)
    rare = 1 / np.maximum(counts, 1)
    if word == "inverse":
        return rare / rare.mean()
    raw = np.sqrt(rare) if word == "inverse_sqrt" else rare
    total = (raw * counts).sum()
    return raw * (counts.sum() / total) if total else np.ones_like(raw)


def _told(table: Mapping[str, float], names: Sequence[str]) -> Float[np.ndarray, " C"]:
    for name in table:
        if name not in names:
            near = get_close_matches(name[:80], names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names[:12])}"
            raise SettingsError(f"loss.class_weights names {name!r:.80}, which is no label; {hint}")
    return np.array([table.get(name, 1.0) for name in names], np.float64)
