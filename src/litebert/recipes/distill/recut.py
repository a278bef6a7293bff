"""Texts in the teacher's WordPiece vocabulary for a student that has only some of its pieces.

A word that lost a piece is cut up again as the student's tokenizer does; all others keep their ids. Each
piece of such a word learns the hidden state of the teacher's piece that its first letter is in.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.compress.teacher_cache import TextSet
from litebert.data.batch import EncodedExample
from litebert.objectives.distill_targets import TeacherTargets, Teaching
from litebert.text.tokenizer import Tokenizer

__all__ = ["RecutTargets", "RecutTexts", "is_narrower"]

_INNER: Final = "##"
_REMEMBERED: Final = 1 << 17
"""Words whose pieces are kept: a few tens of MB."""


def is_narrower(narrow: Tokenizer, wide: Tokenizer) -> bool:
    """Whether both are WordPiece, and each piece of the one is one of the other."""
    if not narrow.kind == wide.kind == "wordpiece":
        return False
    known = {wide.token(number) for number in range(wide.vocab_size)}
    return all(narrow.token(number) in known for number in range(narrow.vocab_size))


class RecutTexts:
    """The student's ids of texts in the teacher's: a `litebert.compress.teacher_cache.TextSet`."""

    def __init__(self, texts: TextSet, wide: Tokenizer, narrow: Tokenizer, longest: int) -> None:
        """Set up the way from ids to ids.

        Args:
            texts: in the teacher's ids.
            wide: the teacher's vocabulary.
            narrow: the student's, of which `is_narrower` is true.
            longest: tokens that the student takes; what is cut into more loses its end.
        """
        self._texts, self._longest, self._narrow = texts, longest, narrow
        self._words = [wide.token(number) for number in range(wide.vocab_size)]
        self._ids = {narrow.token(number): number for number in range(narrow.vocab_size)}
        self._new = np.array([self._ids.get(word, -1) for word in self._words], np.int64)
        self._is_inner = np.array([word.startswith(_INNER) for word in self._words])
        self._cut = lru_cache(_REMEMBERED)(self._cut_word)

    def __len__(self) -> int:
        return len(self._texts.lengths)

    @property
    def fingerprint(self) -> str:
        """Hex digests of the texts and of the student's vocabulary."""
        return f"{self._texts.fingerprint} {self._narrow.fingerprint}"

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """[N] tokens of each, as the teacher counts them."""
        return self._texts.lengths

    def example(self, number: int) -> EncodedExample:
        """Return one text."""
        example = self._texts.example(number)
        ids, _ = self._recut(example)
        return replace(example, ids=ids, type_ids=np.zeros(len(ids), np.int32))

    def rows(self, number: int) -> NDArray[np.int64]:
        """Return for each of the student's tokens the teacher's token that it belongs to."""
        return self._recut(self._texts.example(number))[1]

    def _recut(self, example: EncodedExample) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        old = np.asarray(example.ids)
        new = self._new[old]
        rows = np.arange(len(old))
        if (new >= 0).all():
            return new.astype(np.int32), rows
        first = ~self._is_inner[old]
        first[0] = True
        word = np.cumsum(first) - 1  # [T] number of the word that a piece belongs to
        ids: list[int] = []
        owners: list[int] = []
        starts = np.flatnonzero(first).tolist()
        broken = set(word[new < 0].tolist())
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(old)], strict=True)):
            if number in broken:
                pieces, places = self._cut(tuple(old[start:end].tolist()))
                ids += pieces
                owners += [start + place for place in places]
            else:
                ids += new[start:end].tolist()
                owners += range(start, end)
        if len(ids) > self._longest:
            ids[self._longest - 1 :], owners[self._longest - 1 :] = ids[-1:], owners[-1:]
        return np.array(ids, np.int32), np.array(owners, np.int64)

    def _cut_word(self, old: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """Return the student's pieces of a word, and which of the old ones each begins in.

        The longest match first, as in Wu et al. 2016; a word with a letter that the student does not
        have is one unknown piece.
        """
        texts = [self._words[number] for number in old]
        is_inner = texts[0].startswith(_INNER)
        bare = [text.removeprefix(_INNER) for text in texts]
        word = "".join(bare)
        owner = [place for place, text in enumerate(bare) for _ in text]
        ids: list[int] = []
        places: list[int] = []
        start = 0
        while start < len(word):
            mark = _INNER if start or is_inner else ""
            found = next(
                (end for end in range(len(word), start, -1) if mark + word[start:end] in self._ids),
                None,
            )
            if found is None:
                return [self._narrow.unk_id], [0]
            ids.append(self._ids[mark + word[start:found]])
            places.append(owner[start])
            start = found
        return ids, places


class RecutTargets:
    """A teacher's outputs for the student's tokens: a `litebert.objectives.distill_targets.Teaching`."""

    def __init__(self, teaching: Teaching, texts: RecutTexts) -> None:
        """Take what the teacher says of its own tokens, and the texts in the student's."""
        self._teaching, self._texts = teaching, texts

    def targets(self, example_index: NDArray[np.int64]) -> TeacherTargets:
        """Return the targets of examples by their numbers, in that order."""
        found = self._teaching.targets(example_index)
        if found.hidden is None and found.relations is None:
            return found
        lengths = self._texts.lengths[example_index]
        starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
        rows = np.concatenate(
            [
                start + self._texts.rows(int(number))
                for start, number in zip(starts.tolist(), example_index.tolist(), strict=True)
            ]
        )
        return replace(
            found,
            hidden=None if found.hidden is None else found.hidden[rows],
            relations=None if found.relations is None else found.relations[rows],
        )
