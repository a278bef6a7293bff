"""Ridge regression on given features: the linear head of a frozen encoder that answers with a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from litebert.errors import DataError, SettingsError

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["fit_ridge"]


def fit_ridge(
    features: Float[np.ndarray, "N H"],
    targets: Float[np.ndarray, " N"],
    *,
    strength: float = 1.0,
) -> tuple[Float[np.ndarray, "1 H"], Float[np.ndarray, " 1"]]:
    """Return weights and bias of the one optimum.

    Minimises `strength * sum((answer - target)^2) + |weights|^2`; the bias is free.

    Args:
        features: one row for each example.
        targets: number of each.
        strength: inverse regularisation, above 0.

    Raises:
        DataError: shapes that do not fit, or numbers that are not finite.
        SettingsError: `strength` out of range.
    """
    if not strength > 0:
        raise SettingsError(f"strength is {strength}; allowed: above 0")
    x, y = np.asarray(features, np.float64), np.asarray(targets, np.float64)
    is_fit = x.ndim == 2 and y.shape == x.shape[:1] and len(y) > 0
    if not is_fit or not np.isfinite(x).all() or not np.isfinite(y).all():
        raise DataError(
            f"features {x.shape} and targets {y.shape} must be finite [N, H] and [N], N above 0"
        )
    center, mean = x.mean(0), y.mean()
    rows = x - center
    gram = rows.T @ rows + np.eye(x.shape[1]) / strength
    weights = np.linalg.solve(gram, rows.T @ (y - mean))
    return weights[None], np.array([mean - center @ weights])
