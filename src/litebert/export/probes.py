"""What exports are compared on: sequences, laid into rows with gaps, or padded on either side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.model.albert import AlbertModel, AlbertWithHead

__all__ = ["Probe", "packed_probes", "padded_inputs"]

Array = NDArray[Any]

LENGTHS: Final = (1, 7, 128, 512)
SEED: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Sequences, laid into rows.

    Attributes:
        rows: for each row its sequences and gaps, in order: (sequence or None, slots).
        slots: width of the rows.
        depth: depths to run; None: the default of the graph.
    """

    sequences: tuple[Array, ...]
    types: tuple[Array, ...]
    rows: tuple[tuple[tuple[int | None, int], ...], ...]
    slots: int
    depth: int | None

    def inputs(self) -> tuple[dict[str, Array], list[Array]]:
        """Return the inputs of a packed graph, and the flat slots of each sequence."""
        shape = (len(self.rows), self.slots)
        names = ("input_ids", "token_type_ids", "position_ids", "sequence_ids")
        made: dict[str, Array] = {name: np.zeros(shape, np.int64) for name in names}
        slots: list[Array] = [np.empty(0, np.int64)] * len(self.sequences)
        for number, row in enumerate(self.rows):
            at = 0
            for place, (sequence, width) in enumerate(row):
                if sequence is not None:
                    part = slice(at, at + width)
                    made["input_ids"][number, part] = self.sequences[sequence]
                    made["token_type_ids"][number, part] = self.types[sequence]
                    made["position_ids"][number, part] = np.arange(width)
                    made["sequence_ids"][number, part] = place + 1
                    slots[sequence] = number * self.slots + np.arange(at, at + width)
                at += width
        made["first_positions"] = np.array([at[0] for at in slots], np.int64)
        made["masked_positions"] = np.concatenate([at[: 1 + len(at) // 3] for at in slots])
        if self.depth is not None:
            made["depth"] = np.array(self.depth, np.int64)
        return made, slots


def packed_probes(model: AlbertModel | AlbertWithHead) -> Iterator[Probe]:
    """Yield what a packed graph is compared on: lengths, packings, gaps, batches, depths."""
    config = model.config
    limit = config.max_position_embeddings if config.litebert.has_position_table else LENGTHS[-1]
    lengths = sorted({min(length, limit) for length in LENGTHS})
    generator = np.random.default_rng(SEED)
    drawn = [generator.integers(0, config.vocab_size, length) for length in lengths]
    extra = [min(5, limit), min(3, limit)]
    drawn += [generator.integers(0, config.vocab_size, length) for length in extra]
    types = [_segments(len(ids), config.type_vocab_size) for ids in drawn]
    depths = config.num_hidden_layers

    def probe(rows: list[list[int | None]], gaps: int = 2, depth: int | None = None) -> Probe:
        used = sorted({n for row in rows for n in row if n is not None})
        spots = [[(n, gaps if n is None else len(drawn[n])) for n in row] for row in rows]
        width = max(sum(size for _, size in row) for row in spots)
        local = {n: place for place, n in enumerate(used)}
        return Probe(
            tuple(drawn[n] for n in used),
            tuple(types[n] for n in used),
            tuple(
                tuple((None if n is None else local[n], size) for n, size in row) for row in spots
            ),
            width,
            depth,
        )

    for number in range(len(lengths)):  # alone
        yield probe([[number]])
    short, other = len(lengths), len(lengths) + 1
    middle = min(1, len(lengths) - 1)
    yield probe([[short, middle, other, None]])  # one row, padded at its end
    yield probe([[None, other, None, 0], [middle], [short]])  # gaps, rows of other lengths
    for depth in sorted({1, max(1, depths // 2)}):
        yield probe([[short, middle], [other, None]], depth=depth)


def _segments(length: int, kinds: int) -> Array:
    types = np.zeros(length, np.int64)
    if kinds > 1:
        types[length // 2 :] = 1
    return types


def padded_inputs(probe: Probe, *, is_left: bool) -> tuple[dict[str, Array], list[slice]]:
    """Return a padded batch of the sequences of a probe, and the columns of each."""
    width = max(len(ids) for ids in probe.sequences)
    shape = (len(probe.sequences), width)
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs: dict[str, Array] = {name: np.zeros(shape, np.int64) for name in names}
    places: list[slice] = []
    for row, (ids, types) in enumerate(zip(probe.sequences, probe.types, strict=True)):
        at = slice(width - len(ids), width) if is_left else slice(0, len(ids))
        places.append(at)
        inputs["input_ids"][row, at] = ids
        inputs["token_type_ids"][row, at] = types
        inputs["attention_mask"][row, at] = 1
    return inputs, places
