"""What an objective is, and the example that objectives make together. No torch.

One maker takes a clean chunk through three steps: objectives arrange its segments, the special
tokens are put in, objectives corrupt the tokens. Each objective counts and names its own targets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from litebert.data.batch import Batch
from litebert.data.chunks import Chunk, ChunkIndex
from litebert.errors import SettingsError
from litebert.registry import Registry
from litebert.text.tokenizer import Tokenizer

__all__ = [
    "IGNORED",
    "IN_ORDER",
    "NO_LABEL",
    "OBJECTIVES",
    "SWAPPED",
    "Arrangement",
    "Draft",
    "Objective",
    "PretrainingExample",
    "Segment",
    "SpecialIds",
]

IGNORED: Final = -100
"""Label of a position without a target, as in PyTorch."""
IN_ORDER: Final = 0
SWAPPED: Final = 1
NO_LABEL: Final = -100
_EARLY: Final = 1024
"""Special ids below this stand before the ordinary tokens, with the unused ones of WordPiece."""


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """Ids that masking must know.

    Attributes:
        cls: opens every sequence.
        sep: closes every segment.
        mask: stands for a hidden token.
        pad: fills sequences up; never predicted nor drawn.
        vocab_size: ids lie in [0, vocab_size).
        num_special: ids below are special or unused and are never drawn as replacements.
    """

    cls: int
    sep: int
    mask: int
    pad: int
    vocab_size: int
    num_special: int = 5

    def __post_init__(self) -> None:
        named = (self.cls, self.sep, self.mask, self.pad)
        if min(named) < 0 or max(named) >= self.vocab_size:
            raise SettingsError(
                f"special ids {named} must lie in the vocabulary of {self.vocab_size}; "
                "does the tokenizer belong to these shards?"
            )
        if not 0 <= self.num_special <= self.vocab_size - len(self.late) - 1:
            raise SettingsError(
                f"num_special is {self.num_special}, but the vocabulary of {self.vocab_size} must "
                "keep ordinary tokens; train a larger one"
            )

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self:
        """Return those of a tokenizer; ids up to the last special one near the start are not drawn."""
        size = tokenizer.vocab_size
        named = (tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id, tokenizer.pad_id)
        early = [i for i in (*named, tokenizer.unk_id) if i < min(_EARLY, size // 2)]
        return cls(*named, vocab_size=size, num_special=max(early, default=-1) + 1)

    @property
    def late(self) -> tuple[int, ...]:
        """Special ids that stand among or behind the ordinary ones, rising."""
        return tuple(
            sorted(i for i in {self.cls, self.sep, self.mask, self.pad} if i >= self.num_special)
        )

    def draw(self, uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return an ordinary id for each number in [0, 1), all equally likely."""
        late = self.late
        size = self.vocab_size - self.num_special - len(late)
        drawn = self.num_special + (uniform * size).astype(np.int64)
        for special in late:
            drawn += drawn >= special
        return drawn


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A run of clean tokens.

    Attributes:
        ids: int32 [n], n >= 1.
        word_starts: bool [n], True where a word begins.
    """

    ids: NDArray[np.int32]
    word_starts: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int) -> Segment:
        """Return the tokens start..end-1."""
        return Segment(self.ids[start:end], self.word_starts[start:end])


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """The segments of an example in the order they will stand.

    Attributes:
        first: stands after [CLS], token type 0.
        second: stands after the first [SEP], token type 1; None: one segment only.
        order_label: 0 in order, 1 swapped (or, for NSP, from another document), -100 none.
    """

    first: Segment
    second: Segment | None
    order_label: int


@dataclass(slots=True, eq=False)
class Draft:
    """An example under work, special tokens in place.

    Attributes:
        ids: int32 [S], changed in place by `corrupt`.
        labels: int64 [S], original id where a token is to be predicted, else -100.
        word_begins: [W] place of the first token of each word.
        word_ends: [W] place after its last token.
        last_words: [W] for each word the number of the last word of its segment.
        tokens: which ids are special.
        num_maskable: tokens that are not special.
    """

    ids: NDArray[np.int32]
    labels: NDArray[np.int64]
    word_begins: NDArray[np.int64]
    word_ends: NDArray[np.int64]
    last_words: NDArray[np.int64]
    tokens: SpecialIds
    num_maskable: int


@dataclass(frozen=True, slots=True, eq=False)
class PretrainingExample:
    """One corrupted example.

    Attributes:
        ids: int32 [S].
        type_ids: int32 [S], 0 up to the first [SEP], 1 after it.
        labels: int64 [S], the original id at predicted positions, -100 elsewhere.
        order_label: 0 in order, 1 swapped, -100 none.
        index: sample number, epoch x chunks + number of the chunk.
    """

    ids: NDArray[np.int32]
    type_ids: NDArray[np.int32]
    labels: NDArray[np.int64]
    order_label: int
    index: int

    def __len__(self) -> int:
        return len(self.ids)


class Objective(ABC):
    """One thing to learn: what it does to an example, and how many targets it then has."""

    name: ClassVar[str]
    """Name of its loss term."""

    def arrange(  # noqa: B027 - most objectives leave the segments to another
        self, chunk: Chunk, index: ChunkIndex, rng: np.random.Generator
    ) -> Arrangement | None:
        """Return the segments to use; None: leave that to another objective."""

    def corrupt(  # noqa: B027 - some objectives change no token
        self, draft: Draft, rng: np.random.Generator, progress: float
    ) -> None:
        """Change ids and labels of the draft in place."""

    @abstractmethod
    def count(self, batch: Batch) -> int:
        """Return the number of its targets in a batch."""


OBJECTIVES: Registry[Callable[..., Objective]] = Registry("objective")
"""Name -> maker of the objective from its settings; filled by the files of this folder."""
