"""A few training examples as a person would read them: what is hidden, what is asked, what is packed.

They are made exactly as training makes them, from the shards and the settings of a run.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from litebert.data.batch import Batch
from litebert.data.chunks import ChunkIndex
from litebert.data.shards import ShardSet
from litebert.errors import SettingsError
from litebert.objectives.base import IGNORED, NO_LABEL, PretrainingExample, SpecialIds
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.examples import ExampleMaker, collate_examples
from litebert.text.tokenizer import Tokenizer

__all__ = ["inspect_examples"]

_WIDTH: Final = 96
_INDENT: Final = "     "
_ANSWERS_SHOWN: Final = 40
_SAMPLED: Final = 1000
"""Chunks that are looked at to say how many hold a pair."""
_GLUE: Final = "\N{NO-BREAK SPACE}"
"""Holds together what stands in brackets, until lines are broken."""
_UNIT: Final = re.compile(
    rf"\[[0-9]+:{_GLUE}[^\]]*\]|[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
    r"|[^\s\[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+| +|."
)
"""What stays on one line: a bracket, a character of a script without spaces, a word."""
_BLANK: Final = "▁"
"""A piece that is a space and nothing else."""


def inspect_examples(
    folder: str | Path,
    *,
    examples: int = 3,
    objectives: ObjectiveSettings | None = None,
    max_length: int = 128,
    short_fraction: float = 0.1,
    seed: int = 0,
    epoch: int = 0,
) -> str:
    """Return a page of text about some examples, spread over the shards.

    Args:
        folder: what `litebert prepare` wrote.
        examples: how many, 1 to 100.
        objectives: what is learnt; None: masked words and sentence order.
        max_length: tokens of an example, special ones included.
        short_fraction: part of the chunks with a shorter target.
        seed: of the run.
        epoch: which pass over the shards; each one hides other words.

    Raises:
        SettingsError: a number out of its range.
        DataError: no shard folder, or a damaged one.
    """
    if not 1 <= examples <= 100:
        raise SettingsError(f"examples is {examples}; allowed: 1 to 100")
    if max_length < 5:
        raise SettingsError(f"max_length is {max_length}; allowed: 5 and above")
    shards = ShardSet.open(folder)
    tokenizer = Tokenizer.from_pretrained(shards.tokenizer_folder)
    index = ChunkIndex.build(
        shards, max_tokens=max_length - 3, short_fraction=short_fraction, seed=seed
    )
    settings = objectives or ObjectiveSettings()
    maker = ExampleMaker(index, settings, SpecialIds.of(tokenizer), seed)
    count = min(examples, len(index))
    numbers = [int((k + 0.5) * len(index) / count) for k in range(count)]
    made = [maker.make(epoch, number, 0.0) for number in numbers]
    pieces = _Pieces(tokenizer, maker.tokens)
    lines = [*_heading(shards, index, settings), ""]
    for place, (number, example) in enumerate(zip(numbers, made, strict=True), start=1):
        view = _View(example, maker, pieces, number, epoch)
        lines.append(f"Example {place} of {count}: {view.title}")
        lines.extend([*view.lines(), ""])
    lines.extend(_packing(collate_examples(made)))
    return "\n".join(lines)


def _heading(shards: ShardSet, index: ChunkIndex, settings: ObjectiveSettings) -> Iterator[str]:
    lengths = index.lengths
    yield (
        f"{shards.folder}: {shards.num_tokens:,} tokens of {shards.num_documents:,} documents, cut "
        f"into {len(index):,} chunks"
    )
    yield (
        f"a chunk has {lengths.mean():.0f} tokens on average, at most "
        f"{index.settings['max_tokens']:,}, and 2 or 3 special ones are added"
    )
    step = max(1, len(index) // _SAMPLED)
    several = [len(index.chunk(i).sentence_ends) > 1 for i in range(0, len(index), step)]
    yield f"{100 * sum(several) / len(several):.0f} % of the chunks hold two sentences or more"
    mlm, order = settings.mlm, settings.order
    if settings.has_mlm:
        limit = mlm.prediction_limit
        most = "" if limit is None else f", at most {limit} an example"
        rate = f"{100 * mlm.mask_fraction:g} %"
        if mlm.end_fraction is not None:
            rate += f" falling to {100 * mlm.end_fraction:g} %"
        yield (
            f"mlm: {rate} of the tokens are predicted{most}, as whole words in runs of up to "
            f"{mlm.max_ngram}; of them {100 * mlm.mask_prob:g} % are hidden, "
            f"{100 * mlm.random_prob:g} % replaced, the rest kept"
        )
    if settings.has_rtd:
        yield "rtd: a generator fills what is hidden; the model says which tokens are not original"
    yield {
        "sop": "sop: are the two segments in the order of the text?",
        "nsp": "nsp: does the second segment follow the first?",
        "none": "no question about the segments",
    }[order.kind]


class _Pieces:
    """Token ids as text, with the space before a word where there is one."""

    def __init__(self, tokenizer: Tokenizer, tokens: SpecialIds) -> None:
        self.tokenizer = tokenizer
        self.tokens = tokens
        self._known: dict[int, str] = {}

    @cached_property
    def _anchor(self) -> tuple[int, str]:
        """An id whose text is letters: decoded alone, a piece would lose its space."""
        for token in range(self.tokens.num_special, self.tokens.vocab_size):
            text = self.tokenizer.decode([token])
            if text.isalpha():
                return token, text
        return self.tokenizer.unk_id, self.tokenizer.decode([self.tokenizer.unk_id])

    def __call__(self, token: int) -> str:
        """Return the text of one id."""
        if token not in self._known:
            anchor, prefix = self._anchor
            text = self.tokenizer.decode([anchor, token]).removeprefix(prefix)
            if token == self.tokenizer.unk_id:
                text = " (unknown)"
            self._known[token] = text
        return self._known[token]

    def name(self, token: int) -> str:
        """Return the text of one id as it is shown by itself."""
        return self(token).strip() or _BLANK


@dataclass(frozen=True, slots=True)
class _Word:
    """A word with something to predict: its number, what is right, what became of each piece."""

    number: int
    answer: str
    fates: tuple[str, ...]

    @property
    def line(self) -> str:
        fates = self.fates[:1] if len(set(self.fates)) == 1 else self.fates
        return f"{self.number:>3}  {self.answer or _BLANK}  <- {' + '.join(fates)}"


class _View:
    """One example, taken apart."""

    def __init__(
        self,
        example: PretrainingExample,
        maker: ExampleMaker,
        pieces: _Pieces,
        number: int,
        epoch: int,
    ) -> None:
        self.example, self.maker, self.pieces = example, maker, pieces
        self.chunk = maker.index.chunk(number)
        self.begins = maker.word_begins(epoch, number).tolist()
        self.words: list[_Word] = []
        self.segments = self._segments()

    @property
    def title(self) -> str:
        """Which chunk this is."""
        sentences = len(self.chunk.sentence_ends)
        return (
            f"chunk {self.chunk.index:,} of document {self.chunk.document:,}, "
            f"{sentences} sentence{'s' * (sentences != 1)}, {len(self.example)} tokens"
        )

    def lines(self) -> Iterator[str]:
        """Everything about it."""
        for name, (text, tokens) in zip("AB", self.segments, strict=False):
            yield from _wrapped(f"{name} ({tokens} tokens)  {text.strip()}")
        yield f"  order: {self._order()}"
        labels = self.example.labels
        targets = int((labels != IGNORED).sum())
        if targets:
            text_tokens = sum(tokens for _, tokens in self.segments)
            share = 100 * targets / text_tokens
            yield (
                f"  to predict: {targets} of {text_tokens} tokens ({share:.1f} %) in "
                f"{len(self.words)} words"
            )
            yield from (f"  {word.line}" for word in self.words[:_ANSWERS_SHOWN])
            if len(self.words) > _ANSWERS_SHOWN:
                yield f"       and {len(self.words) - _ANSWERS_SHOWN} more"
        else:
            yield "  to predict: nothing"

    def _order(self) -> str:
        kind, label = self.maker.settings.order.kind, self.example.order_label
        if label == NO_LABEL:
            one = len(self.segments) == 1
            return "no question" + (" (a single segment)" if one else "")
        if label == 0:
            return f"{kind} label 0: B follows A in the text"
        if kind == "sop" and len(self.chunk.sentence_ends) > 1:
            return "sop label 1: swapped, A follows B in the text"
        return f"{kind} label 1: B is from another document"

    def _segments(self) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        ids, specials = self.example.ids.tolist(), self.maker.tokens
        text, tokens = "", 0
        bounds = [*self.begins, len(ids)]
        for begin, end in pairwise(bounds):
            if end - begin == 1 and ids[begin] in (specials.cls, specials.sep):
                if ids[begin] == specials.sep:
                    found.append((text, tokens))
                    text, tokens = "", 0
                continue
            text += self._word(begin, end)
            tokens += end - begin
        return found

    def _word(self, begin: int, end: int) -> str:
        """Return a word as it is shown, and note it if something is to be predicted."""
        ids = self.example.ids[begin:end].tolist()
        labels = self.example.labels[begin:end].tolist()
        if all(label == IGNORED for label in labels):
            return "".join(map(self.pieces, ids))
        answers = [
            self.pieces(token if label == IGNORED else label)
            for token, label in zip(ids, labels, strict=True)
        ]
        fates = tuple(self._fate(token, label) for token, label in zip(ids, labels, strict=True))
        mask = self.maker.tokens.mask
        shown = ["MASK" if token == mask else self.pieces.name(token) for token in ids]
        number = len(self.words) + 1
        answer = "".join(answers)
        space = " " if answer.startswith(" ") else ""
        parts = [part.strip() or _BLANK for part in answers]
        split = f" ({'|'.join(parts)})" if len(parts) > 1 else ""
        self.words.append(_Word(number, answer.strip() + split, fates))
        return f"{space}[{number}:{_GLUE}{_GLUE.join(shown)}]"

    def _fate(self, token: int, label: int) -> str:
        if token == self.maker.tokens.mask:
            return "hidden"
        if label in (IGNORED, token):
            return f"kept ({self.pieces.name(token)})"
        return f"replaced by {self.pieces.name(token)!r}"


def _packing(batch: Batch) -> Iterator[str]:
    lengths = batch.lengths.tolist()
    padded = len(lengths) * max(lengths)
    bounds = ", ".join(f"{bound:,}" for bound in batch.cu_seqlens[:8])
    more = ", ..." if len(batch.cu_seqlens) > 8 else ""
    yield (
        f"As one batch: {batch.num_tokens:,} tokens end to end, sequences begin at {bounds}{more}"
    )
    yield (
        f"(padded to the longest it would be {len(lengths)} x {max(lengths)} = {padded:,}, "
        f"{100 * (1 - batch.num_tokens / padded):.0f} % of it padding)"
    )
    targets = 0 if batch.labels is None else int((batch.labels != IGNORED).sum())
    pairs = 0 if batch.order_labels is None else int((batch.order_labels != NO_LABEL).sum())
    yield f"targets: {targets:,} tokens, {pairs:,} pairs of segments"


def _wrapped(text: str) -> list[str]:
    """Break a paragraph into lines that fit a terminal, never inside brackets."""
    lines, width = ["  "], 2
    for unit in _UNIT.findall(text):
        columns = sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in unit)
        if width + columns > _WIDTH and not unit.isspace():
            lines.append(_INDENT)
            width = len(_INDENT)
        if not unit.isspace() or lines[-1] != _INDENT:
            lines[-1] += unit
            width += columns
    return [line.rstrip(" ").replace(_GLUE, " ") for line in lines]
