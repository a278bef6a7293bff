"""Tags of words: the tag set of a scheme, the best sequence that the scheme allows, and entities.

The best sequence is found by Viterbi over the allowed transitions, for all texts of a batch at
once. Tags fall in two kinds: those that may begin anew (O, B-, S-) after any tag that may end, and
those that go on (I-, E-) after B- or I- of their type; so a step costs O(C), not O(C²).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from litebert.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int64

__all__ = ["TagScheme", "TagSet", "softmax_rows"]

TagScheme = Literal["iob2", "iobes"]
_PREFIXES: Final[dict[str, str]] = {"iob2": "BI", "iobes": "BIES"}
_BATCH_WORDS: Final = 1 << 16
"""Most words, padding included, that Viterbi sees at a time."""


@dataclass(frozen=True)
class TagSet:
    """The tags of some entity types: O, then those of each type in turn.

    Attributes:
        types: entity types in the order of their tags.
        scheme: "iob2" (B- and I-) or "iobes" (B-, I-, E-, S-).
    """

    types: tuple[str, ...]
    scheme: TagScheme = "iob2"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Tags in the order of their ids, O first."""
        marks = _PREFIXES[self.scheme]
        return ("O", *(f"{mark}-{kind}" for kind in self.types for mark in marks))

    def __len__(self) -> int:
        return 1 + len(self.types) * len(_PREFIXES[self.scheme])

    @cached_property
    def _kinds(self) -> Int64[np.ndarray, " C"]:
        """Index of the type of each tag, -1 for O."""
        return np.concatenate(([-1], np.repeat(np.arange(len(self.types)), self._width)))

    @cached_property
    def _is_new(self) -> Bool[np.ndarray, " C"]:
        """O, B- and S-: what may follow any tag that may end."""
        return np.array([name[0] in "OBS" for name in self.names])

    @cached_property
    def _may_end(self) -> Bool[np.ndarray, " C"]:
        """Tags after which a text may end or anything may begin."""
        allowed = "OBI" if self.scheme == "iob2" else "OES"
        return np.array([name[0] in allowed for name in self.names])

    @property
    def _width(self) -> int:
        return len(_PREFIXES[self.scheme])

    def encode(
        self, found: Sequence[tuple[int, int, str]], words: int
    ) -> Int64[np.ndarray, " words"]:
        """Return the tag of each word; -100 where the type is not among `types`.

        Args:
            found: (first word, last word + 1, type), in order, never overlapping.
            words: number of words.
        """
        tags = np.zeros(words, np.int64)
        for first, last, kind in found:
            position = self._positions.get(kind)
            if position is None:
                tags[first:last] = -100
                continue
            base = 1 + position * self._width
            tags[first] = base
            tags[first + 1 : last] = base + 1
            if self.scheme == "iobes":
                tags[last - 1] = base + (2 if last - first > 1 else 3)
        return tags

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {kind: position for position, kind in enumerate(self.types)}

    @cached_property
    def inside(self) -> Int64[np.ndarray, " C"]:
        """For each tag the tag of further pieces of its word: I- of its type, O for O."""
        inner = np.arange(len(self))
        inner[1:] = 2 + self._kinds[1:] * self._width
        return inner

    def entities(self, tags: Int64[np.ndarray, " W"]) -> list[tuple[int, int, str]]:
        """Return (first word, last word + 1, type) of each entity.

        Invalid sequences are read as the official CoNLL script reads them: what goes on from
        nothing begins.
        """
        result: list[tuple[int, int, str]] = []
        start, current = 0, -1
        for position, tag in enumerate([*tags.tolist(), 0]):
            kind = int(self._kinds[tag])
            if current >= 0 and (kind != current or self._is_new[tag]):
                result.append((start, position, self.types[current]))
                current = -1
            if kind >= 0 and current < 0:
                start, current = position, kind
            if current >= 0 and self.scheme == "iobes" and self._may_end[tag]:
                result.append((start, position + 1, self.types[current]))
                current = -1
        return result

    def is_valid(self, tags: Int64[np.ndarray, " W"]) -> bool:
        """Whether the scheme allows this sequence, its start and its end included."""
        if not len(tags):
            return True
        return bool(self._is_new[tags[0]] and self._may_end[tags[-1]] and self._steps(tags).all())

    def _steps(self, tags: Int64[np.ndarray, " W"]) -> Bool[np.ndarray, " steps"]:
        """Whether each tag may follow the one before."""
        before, after = tags[:-1], tags[1:]
        is_open = (before > 0) & np.isin(before, self._opens)
        goes_on = is_open & (self._kinds[before] == self._kinds[after])
        return np.where(self._is_new[after], self._may_end[before], goes_on)

    @cached_property
    def _opens(self) -> Int64[np.ndarray, " opens"]:
        """B- and I- tags: what I- and E- may follow."""
        return np.flatnonzero([name[0] in "BI" for name in self.names])

    def decode(
        self, logits: Sequence[Float[np.ndarray, "W C"]], *, constrained: bool = True
    ) -> list[Int64[np.ndarray, " W"]]:
        """Return the best tags of each text.

        Args:
            logits: one array a text; a text may have no words.
            constrained: only sequences that the scheme allows; else the best tag of each word.

        Raises:
            DataError: logits of another width, or not finite.
        """
        best = [self._checked(rows).argmax(1) for rows in logits]
        if not constrained:
            return best
        # The best of all sequences is the best of the allowed ones, where it is one of them.
        wrong = [i for i, tags in enumerate(best) if not self.is_valid(tags)]
        wrong.sort(key=lambda i: (-len(best[i]), i))
        while wrong:
            count = max(1, _BATCH_WORDS // len(best[wrong[0]]))
            batch, wrong = wrong[:count], wrong[count:]
            for i, tags in zip(batch, self._viterbi([logits[i] for i in batch]), strict=True):
                best[i] = tags
        return best

    def _viterbi(self, logits: Sequence[Float[np.ndarray, "W C"]]) -> list[Int64[np.ndarray, " W"]]:
        """Return the best allowed sequence of each text; the longest text comes first."""
        lengths = np.array([len(rows) for rows in logits])
        longest, tags = int(lengths[0]), np.arange(len(self))
        padded = np.zeros((longest, len(logits), len(self)))
        for i, rows in enumerate(logits):
            padded[: len(rows), i] = rows
        ends = np.flatnonzero(self._may_end)
        is_new = self._is_new
        old = tags[~is_new]
        first = 1 + self._kinds[old] * self._width  # B- of the type; I- is next to it
        back = np.zeros((longest, len(logits), len(self)), np.int64)
        score = np.where(is_new, padded[0], -np.inf)
        for step in range(1, longest):
            count = int((lengths > step).sum())  # texts that have such a word stand in front
            live = score[:count]
            choice = ends[live[:, ends].argmax(1)]
            back[step, :count] = choice[:, None]
            value = np.repeat(live[np.arange(count), choice][:, None], len(self), 1)
            takes_inside = live[:, first + 1] > live[:, first]
            back[step, :count, old] = np.where(takes_inside, first + 1, first).T
            value[:, old] = np.maximum(live[:, first], live[:, first + 1])
            score[:count] = value + padded[step, :count]
        last = ends[score[:, ends].argmax(1)]
        result: list[Int64[np.ndarray, " W"]] = []
        for i, length in enumerate(lengths.tolist()):
            path = np.empty(length, np.int64)
            tag = int(last[i])
            for step in range(length - 1, -1, -1):
                path[step] = tag
                tag = int(back[step, i, tag])
            result.append(path)
        return result

    def _checked(self, rows: Float[np.ndarray, "W C"]) -> Float[np.ndarray, "W C"]:
        if rows.ndim != 2 or rows.shape[1] != len(self):
            raise DataError(
                f"logits have shape {rows.shape}, {len(self)} tags need [words, {len(self)}]; the "
                "model and its task.json do not belong together"
            )
        if not np.isfinite(rows).all():
            raise DataError(
                "the model gave NaN or infinity; it has diverged: train again with a lower "
                "learning rate"
            )
        return rows


def softmax_rows(logits: Float[np.ndarray, "rows C"]) -> Float[np.ndarray, "rows C"]:
    """Return the probabilities of each row, in float64."""
    values = logits.astype(np.float64)
    values -= values.max(axis=1, keepdims=True, initial=-np.inf)
    np.exp(values, out=values)
    return values / values.sum(axis=1, keepdims=True)
