"""How well the right text is found among many: its rank, accuracy at 1, mean reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = [
    "MRR_CUT",
    "Searchable",
    "Target",
    "accuracy_at_1",
    "find_ranks",
    "mrr_at_10",
    "searched",
]

MRR_CUT: Final = 10
"""A text found at a later rank counts as not found."""
BLOCK: Final = 256
"""Anchors that are compared with all candidates at once."""

Similarities = Callable[[slice], "Float[np.ndarray, 'N M']"]
"""Rows of anchors -> their similarity with every candidate."""


class Searchable(Protocol):
    """A record: an anchor, its positive, its negatives."""

    @property
    def anchor(self) -> str:
        """What is searched with."""
        ...

    @property
    def texts(self) -> tuple[str, ...]:
        """The anchor, then the texts it is compared with, the positive first."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """Which candidates one anchor should find.

    Attributes:
        relevant: positions of all its positives, of every record with the same anchor.
        ignored: positions that count neither way: the anchor's own text.
    """

    relevant: tuple[int, ...]
    ignored: tuple[int, ...] = ()


def searched(records: Sequence[Searchable]) -> tuple[list[str], list[Target]]:
    """Return the distinct candidates in order of appearance, and the target of each record.

    Candidates are the positives and negatives of all records. An anchor that occurs again has the
    positives of all its records.
    """
    places: dict[str, int] = {}
    for record in records:
        for text in record.texts[1:]:
            places.setdefault(text, len(places))
    positives: dict[str, dict[int, None]] = {}
    for record in records:
        positives.setdefault(record.anchor, {})[places[record.texts[1]]] = None
    targets: list[Target] = []
    for record in records:
        relevant = tuple(positives[record.anchor])
        own = places.get(record.anchor)
        is_other = own is not None and own not in relevant
        targets.append(Target(relevant, (own,) if own is not None and is_other else ()))
    return list(places), targets


def find_ranks(
    similarities: Similarities, targets: Sequence[Target], *, block: int = BLOCK
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
    """Return the rank of the best relevant candidate (from 1), and the most similar candidate.

    A candidate that is no better than another is ranked behind it, so that vectors which are all
    alike get the worst rank, not the best.

    Args:
        similarities: similarity of some anchors with all candidates.
        targets: one for each anchor.
        block: anchors that are looked at together, which bounds memory.
    """
    ranks = np.zeros(len(targets), np.int64)
    best = np.zeros(len(targets), np.int64)
    for start in range(0, len(targets), block):
        rows = slice(start, min(start + block, len(targets)))
        table = np.array(similarities(rows), np.float64)  # [n, M], a copy that is written into
        for offset, target in enumerate(targets[rows]):
            line = table[offset]
            own = line[list(target.relevant)].max()
            line[list(target.ignored)] = -np.inf
            best[start + offset] = int(line.argmax())
            line[list(target.relevant)] = -np.inf
            ranks[start + offset] = 1 + int((line >= own).sum())
    return ranks, best


def accuracy_at_1(ranks: Iterable[int]) -> float:
    """Share of anchors whose most similar text is a right one; 0.0 without anchors."""
    hits = [float(rank == 1) for rank in ranks]
    return float(np.mean(hits)) if hits else 0.0


def mrr_at_10(ranks: Iterable[int]) -> float:
    """Mean of 1 / rank, 0 from rank 11 on; 0.0 without anchors."""
    parts = [1.0 / rank if rank <= MRR_CUT else 0.0 for rank in ranks]
    return float(np.mean(parts)) if parts else 0.0
