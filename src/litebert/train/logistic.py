"""Logistic regression on given features: the linear head of a frozen encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch.nn import functional

from litebert.errors import DataError, SettingsError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["fit_logistic"]

MAX_ROUNDS: Final = 500
TOLERANCE: Final = 1e-9


def fit_logistic(
    features: Float[np.ndarray, "N H"],
    labels: Int[np.ndarray, " N"],
    num_classes: int,
    *,
    strength: float = 1.0,
) -> tuple[Float[np.ndarray, "C H"], Float[np.ndarray, " C"]]:
    """Return weights and biases of the softmax regression, the one optimum.

    Minimises `strength * sum(cross-entropy) + |weights|^2 / 2`; biases are free up to a common
    number, which is taken so that their mean is 0.

    Args:
        features: one row for each example.
        labels: class of each, in [0, C).
        num_classes: C, 2 and above.
        strength: inverse regularisation, above 0.

    Raises:
        DataError: shapes or labels that do not fit, or numbers that are not finite.
        SettingsError: `num_classes` or `strength` out of range.
    """
    if num_classes < 2 or not strength > 0:
        raise SettingsError(
            f"num_classes is {num_classes} and strength {strength}; allowed: 2 and above, above 0"
        )
    x = np.asarray(features, np.float64)
    y = np.asarray(labels, np.int64)
    if x.ndim != 2 or y.shape != x.shape[:1] or not len(y) or not np.isfinite(x).all():
        raise DataError(
            f"features {x.shape} and labels {y.shape} must be finite [N, H] and [N], N above 0"
        )
    if y.min() < 0 or y.max() >= num_classes:
        raise DataError(f"labels go from {y.min()} to {y.max()}, allowed: 0..{num_classes - 1}")
    inputs, targets = torch.from_numpy(x), torch.from_numpy(y)
    weights = torch.zeros(num_classes, x.shape[1], dtype=torch.float64, requires_grad=True)
    biases = torch.zeros(num_classes, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weights, biases],
        max_iter=MAX_ROUNDS,
        tolerance_grad=TOLERANCE,
        tolerance_change=1e-14,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        solver.zero_grad()
        logits = functional.linear(inputs, weights, biases)
        fit = functional.cross_entropy(logits, targets, reduction="mean")
        total = fit + weights.square().sum() / (2 * strength * len(y))
        torch.autograd.backward(total)
        return total

    with torch.enable_grad():
        solver.step(loss)  # pyright: ignore[reportArgumentType]
    found = biases.detach().numpy()
    return weights.detach().numpy(), found - found.mean()
