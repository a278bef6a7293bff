"""A teacher's outputs on disk: made shard by shard when first asked for, then mapped.

A shard is one file, written whole and put in place at once, so a killed run leaves none that is
half done. It names what it was made from and carries the digest of its content.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.checkpoint.fs import check_free_space, make_folder, write_atomic
from litebert.compress.teacher import PER_TOKEN, Answering
from litebert.data.batch import EncodedExample
from litebert.errors import DataError
from litebert.objectives.distill_targets import TeacherTargets

__all__ = ["SHARD_EXAMPLES", "TeacherCache", "TextSet"]

SHARD_EXAMPLES: Final = 512
"""Examples of one shard: seconds of the teacher's work, about 14 MB of 384 numbers a token."""
FORMAT: Final = "litebert teacher outputs 1"
MAX_HEADER_BYTES: Final = 1 << 16
OPEN_SHARDS: Final = 16
"""Shards that stay mapped."""

Half = NDArray[np.float16]


class TextSet(Protocol):
    """Texts as token ids, numbered from 0."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of all ids, and their order."""
        ...

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """[N] tokens of each, special ones included."""
        ...

    def example(self, number: int) -> EncodedExample:
        """Return one of them; its `index` is its number."""
        ...


class TeacherCache:
    """A `Teaching` that asks the teacher once for each example."""

    def __init__(
        self,
        folder: Path,
        teacher: Answering,
        texts: TextSet,
        parts: Sequence[str],
        on_made: Callable[[int, int], None] | None = None,
    ) -> None:
        """Open a cache; nothing is computed yet.

        Args:
            folder: where shards lie; each combination of teacher, texts and parts has a folder of
                its own in it.
            teacher: who answers.
            texts: what is asked.
            parts: names out of `PARTS`.
            on_made: called with (shards there, shards) after each that is made.
        """
        self._teacher, self._texts, self.parts = teacher, texts, tuple(sorted(parts))
        self._on_made = on_made
        asked = {
            "format": FORMAT,
            "teacher": teacher.fingerprint,
            "relation_depth": teacher.relation_depth,
            "texts": texts.fingerprint,
            "parts": self.parts,
            "shard_examples": SHARD_EXAMPLES,
        }
        self.fingerprint = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        self.folder = folder / self.fingerprint[:16]
        self._lengths = np.asarray(texts.lengths, np.int64)
        self._open: OrderedDict[int, dict[str, Half]] = OrderedDict()

    @property
    def num_shards(self) -> int:
        """Shards of the whole cache."""
        return -(-len(self._lengths) // SHARD_EXAMPLES)

    def targets(self, example_index: NDArray[np.int64]) -> TeacherTargets:
        """Return the targets of examples, in float32.

        Raises:
            DataError: a shard that is damaged, or of another cache.
            StorageError: a new shard cannot be written.
        """
        rows: dict[str, list[Half]] = {part: [] for part in self.parts}
        for number in example_index.tolist():
            shard, place = divmod(int(number), SHARD_EXAMPLES)
            found, starts = self.shard(shard), self._starts(shard)
            for part in self.parts:
                low, high = place, place + 1
                if part in PER_TOKEN:
                    low, high = int(starts[place]), int(starts[place + 1])
                rows[part].append(found[part][low:high])
        return TeacherTargets(
            **{
                part: torch.from_numpy(np.concatenate(parts)).float()
                for part, parts in rows.items()
            }
        )

    def fill(self, is_stopping: Callable[[], bool] = lambda: False) -> bool:
        """Make every shard that is missing; return whether all are there now."""
        for shard in range(self.num_shards):
            if is_stopping():
                return False
            self.shard(shard)
        return True

    def shard(self, number: int) -> dict[str, Half]:
        """Return the outputs of one shard, part by part; the teacher makes it if it is missing.

        Raises:
            DataError: it is damaged, or of another cache.
            StorageError: it cannot be written.
        """
        found = self._open.get(number)
        if found is None:
            path = self.folder / f"shard-{number:06d}.bin"
            if not path.exists():
                self._make(number, path)
            found = self._open[number] = self._read(number, path)
            while len(self._open) > OPEN_SHARDS:
                self._open.popitem(last=False)
        self._open.move_to_end(number)
        return found

    def _numbers(self, shard: int) -> range:
        first = shard * SHARD_EXAMPLES
        return range(first, min(first + SHARD_EXAMPLES, len(self._lengths)))

    def _starts(self, shard: int) -> NDArray[np.int64]:
        numbers = self._numbers(shard)
        return np.cumsum([0, *self._lengths[numbers.start : numbers.stop]])

    def _shapes(self, shard: int) -> dict[str, tuple[int, int]]:
        numbers = self._numbers(shard)
        tokens = int(self._lengths[numbers.start : numbers.stop].sum())
        return {
            part: (tokens if part in PER_TOKEN else len(numbers), self._teacher.width_of(part))
            for part in self.parts
        }

    def _header(self, shard: int, digest: str) -> bytes:
        table = {"format": FORMAT, "cache": self.fingerprint, "shard": shard, "sha256": digest}
        line = json.dumps(table, sort_keys=True).encode()
        return line + b" " * (-(len(line) + 1) % 64) + b"\n"

    def _make(self, shard: int, path: Path) -> None:
        examples = [self._texts.example(number) for number in self._numbers(shard)]
        answers = self._teacher.answer(examples, self.parts)
        payload = b"".join(answers[part].astype("<f2").tobytes() for part in self.parts)
        make_folder(self.folder)
        check_free_space(self.folder, len(payload))
        write_atomic(path, self._header(shard, hashlib.sha256(payload).hexdigest()) + payload)
        if self._on_made is not None:
            self._on_made(sum(1 for _ in self.folder.glob("shard-*.bin")), self.num_shards)

    def _read(self, shard: int, path: Path) -> dict[str, Half]:
        shapes = self._shapes(shard)
        try:
            with path.open("rb") as file:
                line = file.readline(MAX_HEADER_BYTES)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = path.stat().st_size
        except OSError as error:
            raise DataError(
                f"the teacher's outputs cannot be read ({error.strerror}); check the file",
                path=path,
            ) from error
        expected = 2 * sum(rows * width for rows, width in shapes.values())
        if line != self._header(shard, digest) or size != len(line) + expected:
            raise DataError(
                "the teacher's outputs in it are damaged, cut short, or of another teacher or other "
                "texts; delete the file, and it is made again",
                path=path,
            )
        data = np.memmap(path, "<f2", "r", offset=len(line))
        found: dict[str, Half] = {}
        start = 0
        for part, (rows, width) in shapes.items():
            found[part] = np.asarray(data[start : start + rows * width]).reshape(rows, width)
            start += rows * width
        return found
