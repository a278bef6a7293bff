"""What a preparation says of itself: how far it is, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from litebert.data.shards import ShardSet
from litebert.recipes.prepare.tally import Tally

__all__ = ["PrepareOutcome", "PrepareProgress"]


@dataclass(frozen=True, slots=True)
class PrepareProgress:
    """How far a run is.

    Attributes:
        documents: documents read so far, earlier runs included.
        num_bytes: their UTF-8 bytes.
        tokens: tokens kept so far.
        shards: finished shards.
        file: 1-based number of the file that is read.
        files: number of files.
        is_resumed: an earlier run was continued.
    """

    documents: int
    num_bytes: int
    tokens: int
    shards: int
    file: int
    files: int
    is_resumed: bool


@dataclass(frozen=True, slots=True)
class PrepareOutcome:
    """What a run came to.

    Attributes:
        folder: the shard folder.
        tally: counts over all runs.
        shards: the opened result, or None after a stop.
        eval_shards: the opened held-out part, or None.
        signal: number of the signal that stopped the run, None if none did.
        was_finished: everything was there before.
        new_bytes: UTF-8 bytes of documents that this run encoded.
    """

    folder: Path
    tally: Tally
    shards: ShardSet | None
    eval_shards: ShardSet | None
    signal: int | None = None
    was_finished: bool = False
    new_bytes: int = 0
