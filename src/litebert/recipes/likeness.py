"""Whether vectors tell texts apart, and what to say where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Likeness", "likeness_hint"]

FEWEST: Final = 4
"""Different texts below which their cosines say little."""
SAMPLE: Final = 256
"""Different texts that are looked at, the first ones."""
ALIKE: Final = 0.9
"""Mean cosine from which on texts count as not told apart; 0.0 to 0.6 is usual after training for
similarity, 0.95 to 0.99 before."""


@dataclass(slots=True)
class Likeness:
    """The mean cosine of the first different texts that come by."""

    _rows: dict[str, Float[np.ndarray, " D"]] = field(default_factory=dict[str, "np.ndarray"])

    def add(self, texts: Sequence[str], vectors: Float[np.ndarray, "n D"]) -> None:
        """Look at texts with their vectors, of any length; blank ones do not count."""
        if len(self._rows) >= SAMPLE:
            return
        for text, row in zip(texts, vectors, strict=True):
            name = " ".join(text.split()).casefold()
            if name and name not in self._rows and len(self._rows) < SAMPLE:
                self._rows[name] = np.asarray(row, np.float64)

    def watch(
        self, blocks: Iterable[tuple[list[str], Float[np.ndarray, "n D"]]]
    ) -> Iterator[tuple[list[str], Float[np.ndarray, "n D"]]]:
        """Yield the blocks as they are, and look at each."""
        for texts, vectors in blocks:
            self.add(texts, vectors)
            yield texts, vectors

    @property
    def mean_cosine(self) -> float | None:
        """Mean over all pairs of different texts, in [-1, 1]; None for fewer than 4 texts."""
        count = len(self._rows)
        if count < FEWEST:
            return None
        rows = np.stack(list(self._rows.values()))
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        total = float(np.square(rows.sum(axis=0)).sum()) - float(np.square(rows).sum())
        return total / (count * (count - 1))


def likeness_hint(model: str, trained_for: str | None, mean_cosine: float | None) -> str | None:
    """Return what a person should know about vectors, or None where all is as it should be.

    Args:
        model: as it was typed.
        trained_for: what its vectors are made for: "similarity", another task, or None: pretrained only.
        mean_cosine: of different texts, if it is known.
    """
    is_alike = mean_cosine is not None and mean_cosine >= ALIKE
    is_meant = trained_for == "similarity"
    if is_meant and not is_alike:
        return None
    what = (
        f"the texts are hardly told apart: their mean cosine is {mean_cosine:.2f}"
        if is_alike
        else "near vectors need not mean near texts"
    )
    if is_meant:
        return (
            f"{what}, although {model} was trained for similarity; are they nearly the same texts?"
        )
    why = (
        f"was trained for {trained_for.replace('_', ' ')}" if trained_for else "was only pretrained"
    )
    return (
        f"{what}. {model} {why}, not for similarity: train it with pairs of texts that belong together "
        f"(litebert train PAIRS --task similarity --model {model}), or take an encoder that was"
    )
