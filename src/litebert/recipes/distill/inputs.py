"""Texts to learn from and texts to compare on, as the student's ids and as the teacher's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from litebert.compress.teacher import Answering, Teacher
from litebert.compress.teacher_cache import TextSet
from litebert.data.batch import EncodedExample
from litebert.data.chunks import ChunkIndex
from litebert.data.examples import Example
from litebert.data.shards import ShardSet
from litebert.recipes.distill.reading import FileTexts
from litebert.recipes.distill.recut import RecutTexts
from litebert.recipes.distill.settings import DistillRun
from litebert.recipes.distill.texts import SPECIALS, EncodedTexts, ShardTexts
from litebert.text.tokenizer import Tokenizer

__all__ = ["Inputs", "file_inputs", "shard_inputs"]

EVAL_FOLDER: Final = "eval"
LARGEST_EVAL_SHARE: Final = 10
"""At most every so many-th text is held out of the ones that are learnt from."""


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What is learnt from and compared on.

    Attributes:
        texts: the student's ids; held-out ones may follow behind those to learn from.
        count: texts of them to learn from.
        eval_texts: where the held-out texts are; may be `texts`.
        eval_numbers: which of them.
        teacher_texts: the teacher's ids of `texts`; the same object where the pieces are the same.
        teacher_eval_texts: those of `eval_texts`.
        note: how they were read.
    """

    texts: TextSet
    count: int
    eval_texts: TextSet
    eval_numbers: range
    teacher_texts: TextSet
    teacher_eval_texts: TextSet
    note: str = ""

    @property
    def num_tokens(self) -> int:
        """Tokens to learn from, special ones included."""
        return int(self.texts.lengths[: self.count].sum())


def shard_inputs(
    path: Path, settings: DistillRun, teacher: Answering, tokenizer: Tokenizer, longest: int
) -> Inputs:
    """Cut shards into texts; the part that was held out when they were made is compared on.

    Args:
        path: shards in the teacher's pieces.
        settings: the run.
        teacher: who is asked.
        tokenizer: the student's: the teacher's, or a part of it.
        longest: tokens that the student takes.

    Raises:
        DataError: shards that cannot be used.
    """
    data = settings.data
    shards = ShardSet.open(path)
    if isinstance(teacher, Teacher) and tokenizer.fingerprint != teacher.vocabulary:
        return _recut_inputs(shard_inputs(path, settings, teacher, teacher.tokenizer, longest),
                             teacher.tokenizer, tokenizer, longest)  # fmt: skip
    texts = _shard_texts(shards, settings, tokenizer, data.max_examples)
    held_out = shards.folder / EVAL_FOLDER
    if held_out.is_dir():
        others = _shard_texts(
            ShardSet.open(held_out), settings, tokenizer, data.eval_examples, held_out=True
        )
        return Inputs(
            texts, len(texts), others, range(len(others)), texts, others, "documents held out"
        )
    count = _learnt(len(texts), data.eval_examples)
    return Inputs(texts, count, texts, range(count, len(texts)), texts, texts)


def _recut_inputs(inputs: Inputs, wide: Tokenizer, narrow: Tokenizer, longest: int) -> Inputs:
    """Give the student its own ids of the teacher's texts."""
    texts = RecutTexts(inputs.texts, wide, narrow, longest)
    is_one = inputs.eval_texts is inputs.texts
    others = texts if is_one else RecutTexts(inputs.eval_texts, wide, narrow, longest)
    note = f"{inputs.note}; in {narrow.vocab_size:,} of the teacher's {wide.vocab_size:,} pieces"
    return replace(inputs, texts=texts, eval_texts=others, note=note.removeprefix("; "))


def file_inputs(
    found: FileTexts, settings: DistillRun, teacher: Answering, tokenizer: Tokenizer
) -> Inputs:
    """Encode the texts of a file, in a random order.

    Raises:
        DataError: a label that the task does not know.
    """
    data, task = settings.data, found.task
    order = np.random.default_rng(settings.train.seed).permutation(len(found.examples))
    chosen = [found.examples[n] for n in order[: data.max_examples].tolist()]
    own: list[EncodedExample] = []
    for number, example in enumerate(chosen):
        encoding = tokenizer.encode(example.text, example.pair, max_length=data.max_length)
        label = task.encode_label(example) if task is not None and settings.distill.labels else None
        own.append(
            EncodedExample(
                np.asarray(encoding.ids, np.int32),
                np.asarray(encoding.type_ids, np.int32),
                label,
                number,
            )
        )
    texts = EncodedTexts(own)
    theirs = texts
    if tokenizer.fingerprint != teacher.vocabulary:
        theirs = EncodedTexts(_encoded(chosen, teacher, data.max_length))
    elif settings.distill.labels:
        # The teacher's answers do not follow from the labels, so the cache need not.
        theirs = EncodedTexts([replace(example, label=None) for example in own])
    count = _learnt(len(texts), data.eval_examples)
    return Inputs(texts, count, texts, range(count, len(texts)), theirs, theirs, found.note)


def _encoded(
    examples: Sequence[Example], teacher: Answering, max_length: int
) -> list[EncodedExample]:
    return [
        teacher.encode(example.text, example.pair, max_length, number)
        for number, example in enumerate(examples)
    ]


def _learnt(count: int, wanted: int) -> int:
    """How many of the texts are learnt from, where some are held out."""
    return count - min(wanted, max(1, count // LARGEST_EVAL_SHARE))


def _shard_texts(
    shards: ShardSet,
    settings: DistillRun,
    tokenizer: Tokenizer,
    limit: int | None,
    *,
    held_out: bool = False,
) -> ShardTexts:
    data, seed = settings.data, settings.train.seed
    index = ChunkIndex.build(
        shards,
        max_tokens=data.max_length - SPECIALS,
        short_fraction=data.short_fraction,
        seed=seed,
    )
    return ShardTexts(
        index,
        tokenizer,
        seed=seed,
        limit=limit,
        replaced=data.replaced_fraction * (not held_out),
        by_rank=data.replaced_by == "rank",
    )
