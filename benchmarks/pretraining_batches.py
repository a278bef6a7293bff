"""Pretraining batches for measuring: chunks of a synthetic corpus, masked and paired as in a run.

The corpus has the shape of books (documents of 400 sentences of about 22 tokens, words of 1.4
tokens) and token frequencies that fall as 1 / rank. Only lengths and ids matter to the speed, so
that nobody needs the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor

from litebert.data.batch import Batch
from litebert.data.chunks import ChunkIndex
from litebert.data.shards import ShardSet, ShardWriter
from litebert.data.shards.manifest import Manifest
from litebert.model.packing import Packing
from litebert.objectives.base import IGNORED, SpecialIds
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.examples import ExampleMaker
from litebert.recipes.pretrain.settings import PretrainTrain
from litebert.recipes.pretrain.source import ShardSource

Lengths = Literal["as they come", "all full"]
DOCUMENTS: Final = 24
SENTENCES: Final = 400
SPECIALS: Final = SpecialIds(cls=2, sep=3, mask=4, pad=0, vocab_size=30_000)


@dataclass(frozen=True, eq=False)
class StepBatch:
    """One batch as litebert and as transformers take it."""

    packed: Batch

    @property
    def tokens(self) -> int:
        """Real tokens of the batch."""
        return self.packed.num_tokens

    @property
    def num_masked(self) -> int:
        """Positions with a target."""
        return int((self.packed.labels != IGNORED).sum())

    @cached_property
    def padded(self) -> dict[str, Tensor]:
        """Arguments of `AlbertForPreTraining`, padded to the longest sequence."""
        packing = Packing.from_lengths(self.packed.lengths.tolist())
        rows = packing.sequence_ids, packing.position_ids

        def fill(values: Any, blank: int) -> Tensor:
            table = torch.full((packing.num_sequences, packing.max_length), blank)
            table[rows] = torch.from_numpy(np.asarray(values, np.int64))
            return table

        order = self.packed.order_labels
        assert order is not None
        return {
            "input_ids": fill(self.packed.input_ids, SPECIALS.pad),
            "attention_mask": packing.mask().long(),
            "token_type_ids": fill(self.packed.token_type_ids, 0),
            "labels": fill(self.packed.labels, IGNORED),
            "sentence_order_label": torch.from_numpy(order),
        }


def make_source(folder: Path, sequences: int, length: int, lengths: Lengths) -> ShardSource:
    """Return batches of so many sequences of at most `length` tokens; writes shards to `folder`."""
    rng = np.random.default_rng(12345)
    longest = length - 3
    with ShardWriter(folder, 0, "uint16") as writer:
        for _ in range(DOCUMENTS):
            if lengths == "all full":
                sizes = [longest // 5] * 4 + [longest - 4 * (longest // 5)]
                sizes *= max(1, SENTENCES * 22 // longest)
            else:
                sizes = rng.lognormal(3.0, 0.4, SENTENCES).astype(int).clip(3, 60).tolist()
            total = sum(sizes)
            ids = 5 + (29_995 ** rng.random(total)).astype(np.int64) - 1
            starts = rng.random(total) < 0.7
            ends = np.cumsum(sizes)
            starts[np.concatenate([[0], ends[:-1]])] = True
            bounds = list(zip(np.concatenate([[0], ends[:-1]]), ends, strict=True))
            writer.add_document([(ids[a:b], starts[a:b]) for a, b in bounds])
        info = writer.finish()
    manifest = Manifest(
        vocab_size=SPECIALS.vocab_size,
        tokenizer_fingerprint="none",
        tokenizer_files=(),
        shards=(info,),
    )
    index = ChunkIndex.build(
        ShardSet(folder, manifest),
        max_tokens=longest,
        short_fraction=0.0 if lengths == "all full" else 0.1,
    )
    maker = ExampleMaker(index, ObjectiveSettings(), SPECIALS, seed=0)
    settings = PretrainTrain(batch_size=sequences)
    return ShardSource(maker, np.arange(len(index)), settings, data_sha256="synthetic")


def make_batches(source: ShardSource, count: int) -> list[StepBatch]:
    """Return the batches of the first steps."""
    batches: list[StepBatch] = []
    for step in range(count):
        packed = source.batch(step, 0.0)
        assert packed is not None
        batches.append(StepBatch(packed))
        assert batches[-1].padded  # made once, before anything is timed
    return batches
