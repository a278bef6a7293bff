"""Encoded documents go to shards in order; a round ends where a shard for training is full."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from litebert.data.seen_texts import SeenTexts
from litebert.data.shards import Shard
from litebert.recipes.prepare.batches import Batch
from litebert.recipes.prepare.encode import EncodedBatch
from litebert.recipes.prepare.output import EVAL_FOLDER, BatchCursor, Output, Split
from litebert.recipes.prepare.settings import PrepareSettings
from litebert.recipes.prepare.state import State

__all__ = ["SEEN_FILE", "Rounds"]

SEEN_FILE: Final = "seen.sqlite"


class Rounds:
    """The outputs of a preparation and its list of seen documents."""

    def __init__(
        self, out: Path, settings: PrepareSettings, state: State, dtype: str, unknown_id: int
    ) -> None:
        """Open the list of seen documents; writes nothing yet.

        Args:
            out: shard folder.
            settings: what is dropped, and when a shard is full.
            state: as it was at the end of the last round; changed by what is written.
            dtype: number format of the ids.
            unknown_id: id that is counted as unknown.
        """
        self._out, self._settings, self._state, self._dtype = out, settings, state, dtype
        self._outputs: dict[Split, Output] = {
            "train": Output(out, dtype, unknown_id),
            "eval": Output(out / EVAL_FOLDER, dtype, unknown_id),
        }
        self._seen: SeenTexts | None = None
        if settings.dedup != "none":
            self._seen = SeenTexts(out / SEEN_FILE, threshold=settings.near_threshold)

    def begin(self) -> None:
        """Remove what an earlier run left behind its last round, and check what it finished.

        Raises:
            DataError: a finished shard is missing or has another size.
            OSError: the disk refused.
        """
        for split, output in self._outputs.items():
            infos = self._state.train if split == "train" else self._state.eval
            output.remove_strays(len(infos))
            for info in infos:
                Shard(output.folder, info, self._dtype).check_sizes()
        if self._seen is not None:
            self._seen.forget_from(self._state.documents)

    def write(self, batch: Batch, encoded: EncodedBatch) -> None:
        """Append the documents of a batch, ending rounds where a shard is full.

        Raises:
            OSError: the disk refused.
        """
        state, cursor = self._state, BatchCursor(encoded)
        first, split = 0, None  # documents [first, here) wait to be written to `split`
        for here, document in enumerate(batch.documents):
            for fault in batch.faults[here]:
                state.tally.note(fault)
            target = self._target(encoded, here)
            if target != split:
                self._append(cursor, split, first, here)
                first, split = here, target
            state.documents += 1
            state.position = document.position.after()
            state.tally.documents += 1
            state.tally.num_bytes += int(encoded.num_bytes[here])
            state.tally.cut_sentences += int(encoded.num_cut[here])
            waiting = cursor.tokens(here + 1) - cursor.tokens(first)
            if split and self._outputs[split].num_tokens + waiting >= self._settings.shard_tokens:
                self._append(cursor, split, first, here + 1)
                first, split = here + 1, None
                self.end()
        self._append(cursor, split, first, len(batch.documents))

    def end(self) -> None:
        """Finish the shards and remember it: from here on nothing of them is done again.

        Raises:
            OSError: the disk refused.
        """
        self._outputs["train"].finish(self._state.train)
        self._outputs["eval"].finish(self._state.eval)
        if self._seen is not None:
            self._seen.commit()
        self._state.save(self._out)

    def close(self) -> None:
        """Remove unfinished shards."""
        for output in self._outputs.values():
            output.discard()
        if self._seen is not None:
            self._seen.close()

    def _target(self, encoded: EncodedBatch, document: int) -> Split | None:
        """Say where a document goes; None drops it, and counts why."""
        tally = self._state.tally
        if (
            encoded.characters[document] < self._settings.min_characters
            or not encoded.document_lengths[document]
        ):
            tally.drop("too short")
            return None
        if self._seen is not None:
            repeats = self._seen.add(
                self._state.documents,
                encoded.keys[document],
                encoded.signatures[document] if encoded.signatures is not None else None,
                encoded.bands[document].tolist() if encoded.bands is not None else (),
            )
            if repeats is not None:
                tally.drop(repeats)
                return None
        return "eval" if encoded.is_eval[document] else "train"

    def _append(self, cursor: BatchCursor, split: Split | None, first: int, last: int) -> None:
        if split is None or first == last:
            return
        state = self._state
        infos, counts = (
            (state.train, state.tally.train) if split == "train" else (state.eval, state.tally.eval)
        )
        self._outputs[split].add(cursor, first, last, len(infos), counts)
