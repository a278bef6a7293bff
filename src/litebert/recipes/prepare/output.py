"""The shards being written: one current shard for each output, stretches of documents added to them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from litebert.checkpoint.fs import make_folder
from litebert.data.shards import ShardInfo, ShardWriter
from litebert.recipes.prepare.encode import EncodedBatch
from litebert.recipes.prepare.tally import SplitCounts

__all__ = ["EVAL_FOLDER", "BatchCursor", "Output", "Split"]

EVAL_FOLDER = "eval"
Split = Literal["train", "eval"]


class BatchCursor:
    """Finds the tokens of documents in a batch."""

    def __init__(self, batch: EncodedBatch) -> None:
        self.batch = batch
        self._sentences = np.concatenate([[0], np.cumsum(batch.document_lengths)])  # [D+1]
        self._tokens = np.concatenate([[0], np.cumsum(batch.sentence_lengths)])  # [S+1]

    def sentences(self, document: int) -> int:
        """Return the sentences before a document, 0 to D."""
        return int(self._sentences[document])

    def tokens(self, document: int) -> int:
        """Return the tokens before a document, 0 to D."""
        return int(self._tokens[self._sentences[document]])


class Output:
    """The shards of one folder, finished ones and the current one."""

    def __init__(self, folder: Path, dtype: str, unknown_id: int) -> None:
        """Name the folder; it is made when the first document comes.

        Args:
            folder: where the shards go.
            dtype: number format of the ids.
            unknown_id: id that is counted as unknown.
        """
        self.folder = folder
        self._dtype, self._unknown_id = dtype, unknown_id
        self._writer: ShardWriter | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens of the current shard."""
        return 0 if self._writer is None else self._writer.num_tokens

    def add(
        self, cursor: BatchCursor, first: int, last: int, index: int, counts: SplitCounts
    ) -> None:
        """Append the documents [first, last) of a batch, none of them empty.

        Args:
            cursor: the batch.
            first: first document.
            last: document after the last one, above `first`.
            index: number of the shard, should one be begun.
            counts: counted on.

        Raises:
            OSError: the disk refused.
        """
        if self._writer is None:
            make_folder(self.folder)
            self._writer = ShardWriter(self.folder, index, self._dtype)
        batch = cursor.batch
        sentences = slice(cursor.sentences(first), cursor.sentences(last))
        tokens = slice(cursor.tokens(first), cursor.tokens(last))
        ids, starts = batch.ids[tokens], batch.word_starts[tokens]
        self._writer.add_documents(
            ids, starts, batch.sentence_lengths[sentences], batch.document_lengths[first:last]
        )
        counts.documents += last - first
        counts.sentences += sentences.stop - sentences.start
        counts.tokens += len(ids)
        counts.words += int(np.count_nonzero(starts))
        counts.unknown += int(np.count_nonzero(ids == self._unknown_id))

    def finish(self, infos: list[ShardInfo]) -> None:
        """Finish the current shard, if there is one, and append what the manifest needs.

        Raises:
            OSError: the disk refused.
        """
        if self._writer is not None:
            infos.append(self._writer.finish())
            self._writer = None

    def discard(self) -> None:
        """Remove the current, unfinished shard."""
        if self._writer is not None:
            self._writer.discard()
            self._writer = None

    def remove_strays(self, num_finished: int) -> None:
        """Remove files of shards that were not finished when an earlier run ended.

        Raises:
            OSError: the disk refused.
        """
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.iterdir()):
            name = path.name
            if name.startswith(".shard-") and name.endswith(".tmp"):
                path.unlink()
            elif name.startswith("shard-") and name.endswith(".bin"):
                number = name.removeprefix("shard-").partition(".")[0]
                if not number.isdigit() or int(number) >= num_finished:
                    path.unlink()
