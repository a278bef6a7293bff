"""The run of `litebert prepare`, readable top to bottom: read, encode in workers, write in order.

A round is one shard and what was held out meanwhile. When it is on disk, `progress.json` says so;
a run that ends in any way goes on from the last round, and gives the same bytes as one that never
ended.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from litebert.checkpoint.fs import StorageError, make_folder, remove_tree
from litebert.checkpoint.lock import RunLock
from litebert.data.corpus import Document, Fault, corpus_files, read_documents
from litebert.data.seen_texts import SeenTexts
from litebert.data.shards import Shard, ShardSet, dtype_for, write_manifest
from litebert.data.shards.manifest import MANIFEST_FILE
from litebert.errors import DataError, SettingsError
from litebert.recipes.prepare.encode import DocumentEncoder, EncodedBatch, EncodingPlan
from litebert.recipes.prepare.output import EVAL_FOLDER, BatchCursor, Output, Split
from litebert.recipes.prepare.pool import OrderedPool
from litebert.recipes.prepare.report import write_report
from litebert.recipes.prepare.settings import PrepareSettings
from litebert.recipes.prepare.state import (
    PROGRESS_FILE,
    InputList,
    State,
    list_inputs,
    read_state,
    refuse_changes,
)
from litebert.recipes.prepare.tally import Tally
from litebert.text.tokenizer import Tokenizer
from litebert.train.stop import StopRequest

__all__ = ["LOCK_FILE", "PrepareOutcome", "PrepareProgress", "prepare_corpus"]

LOCK_FILE: Final = "prepare.lock"
SEEN_FILE: Final = "seen.sqlite"
_BATCH_CHARS: Final = 1 << 18
"""Characters of the documents that go to a worker together."""
_BATCH_DOCUMENTS: Final = 4096
_WINDOW_BATCHES: Final = 3
"""Batches under way for each worker: one in work, one waiting, one done."""
_DOCUMENT_COST: Final = 64
"""Characters that a document counts beside its own, so that empty ones fill a batch too."""


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


@dataclass(slots=True)
class _Batch:
    """Documents for a worker, and the faults that were met before each of them."""

    documents: list[Document] = field(default_factory=list[Document])
    faults: list[tuple[Fault, ...]] = field(default_factory=list[tuple[Fault, ...]])
    size: int = 0

    @property
    def work(self) -> list[str]:
        return [document.text for document in self.documents]


def prepare_corpus(
    paths: Sequence[Path | str],
    tokenizer: Path,
    out: Path,
    settings: PrepareSettings | None = None,
    *,
    workers: int | None = None,
    on_progress: Callable[[PrepareProgress], None] | None = None,
    stop: StopRequest | None = None,
) -> PrepareOutcome:
    """Turn a corpus into shards, or go on with it where an earlier call ended.

    Args:
        paths: files and folders of text.
        tokenizer: model or tokenizer folder.
        out: shard folder; new, empty, or begun by the same call.
        settings: what decides the result.
        workers: processes; all cores this process may use when None. Does not change the result.
        on_progress: told after each batch.
        stop: looked at after each batch.

    Raises:
        DataError: a path that cannot be read, a damaged shard, or no text at all.
        SettingsError: other options, tokenizer or files than `out` was begun with.
        CheckpointError: no usable tokenizer, or another process is at work in `out`.
        StorageError: the disk refused; finished shards are kept.
        WorkerDied: a worker process was killed.
    """
    settings = settings or PrepareSettings()
    pieces = Tokenizer.from_pretrained(tokenizer)
    files = corpus_files(paths)
    DocumentEncoder(tokenizer, _plan(settings))  # the same refusals as in the workers, but readable
    with _disk_errors(out):
        inputs = list_inputs(files)
        with RunLock(out / LOCK_FILE):
            run = _Run(paths, files, inputs, pieces, tokenizer, out, settings)
            return run.go(workers or _cores(), on_progress, stop or StopRequest())


class _Run:
    """One call of `prepare_corpus` that holds the lock."""

    def __init__(
        self,
        paths: Sequence[Path | str],
        files: Sequence[Path],
        inputs: InputList,
        pieces: Tokenizer,
        tokenizer: Path,
        out: Path,
        settings: PrepareSettings,
    ) -> None:
        self._paths, self._files, self._inputs = paths, files, inputs
        self._pieces, self._tokenizer, self._out, self._settings = pieces, tokenizer, out, settings
        self._options = _options(settings, inputs, pieces)
        self._dtype = dtype_for(pieces.vocab_size)
        self._outputs: dict[Split, Output] = {
            "train": Output(out, self._dtype, pieces.unk_id),
            "eval": Output(out / EVAL_FOLDER, self._dtype, pieces.unk_id),
        }
        self._seen: SeenTexts | None = None
        self._is_resumed = False
        self._new_bytes = 0

    def go(
        self,
        workers: int,
        on_progress: Callable[[PrepareProgress], None] | None,
        stop: StopRequest,
    ) -> PrepareOutcome:
        if (self._out / MANIFEST_FILE).exists():
            return self._already_finished()
        state = self._begin()
        try:
            self._open_seen(state)
            trailing: list[Fault] = []
            batches = self._batches(state, trailing)
            pool: OrderedPool[_Batch, EncodedBatch] = OrderedPool(
                DocumentEncoder, (self._tokenizer, _plan(self._settings)), workers
            )
            with pool:
                window = workers * _WINDOW_BATCHES * _BATCH_CHARS
                for batch, encoded in pool.map(batches, window):
                    self._write(state, batch, encoded)
                    if on_progress is not None:
                        on_progress(self._progress(state))
                    if stop.is_requested:
                        return PrepareOutcome(
                            self._out, state.tally, None, None, stop.signal, False, self._new_bytes
                        )
            for fault in trailing:
                state.tally.note(fault)
            self._end_round(state)
        finally:
            for output in self._outputs.values():
                output.discard()
            if self._seen is not None:
                self._seen.close()
        return self._finish(state)

    def _begin(self) -> State:
        """Return where to go on, with everything behind that removed."""
        state = read_state(self._out, self._dtype)
        if state is None:
            _require_empty(self._out)
            state = State(self._options, self._inputs)
            state.save(self._out)
            return state
        refuse_changes(state.options, self._options, self._out, "half-finished")
        if state.inputs.times_sha256 != self._inputs.times_sha256:
            raise SettingsError(
                "a file of the corpus was changed since the half-finished preparation in this "
                "folder began; delete the folder, or choose another --out",
                path=self._out,
            )
        self._is_resumed = True
        for output, infos in (
            (self._outputs["train"], state.train),
            (self._outputs["eval"], state.eval),
        ):
            output.remove_strays(len(infos))
            for info in infos:
                Shard(output.folder, info, self._dtype).check_sizes()
        return state

    def _open_seen(self, state: State) -> None:
        """Open the list of seen documents as it was at the end of the last round."""
        if self._settings.dedup == "none":
            return
        self._seen = SeenTexts(self._out / SEEN_FILE, threshold=self._settings.near_threshold)
        self._seen.forget_from(state.documents)

    def _batches(self, state: State, trailing: list[Fault]) -> Iterator[_Batch]:
        """Yield documents in batches; faults after the last document go to `trailing`."""
        batch = _Batch()
        faults: list[Fault] = []
        for document in read_documents(
            self._paths, self._settings.corpus, on_fault=faults.append, start=state.position
        ):
            batch.documents.append(document)
            batch.faults.append(tuple(faults))
            faults.clear()
            batch.size += len(document.text) + _DOCUMENT_COST
            if batch.size >= _BATCH_CHARS or len(batch.documents) >= _BATCH_DOCUMENTS:
                yield batch
                batch = _Batch()
        if batch.documents:
            yield batch
        trailing.extend(faults)

    def _write(self, state: State, batch: _Batch, encoded: EncodedBatch) -> None:
        """Append the documents of a batch, closing rounds where a shard is full."""
        cursor = BatchCursor(encoded)
        self._new_bytes += int(encoded.num_bytes.sum())
        first, split = 0, None  # documents [first, here) wait to be written to `split`
        for here, document in enumerate(batch.documents):
            for fault in batch.faults[here]:
                state.tally.note(fault)
            target = self._target(state, encoded, here)
            if target != split:
                self._append(state, cursor, split, first, here)
                first, split = here, target
            state.documents += 1
            state.position = document.position.after()
            state.tally.documents += 1
            state.tally.num_bytes += int(encoded.num_bytes[here])
            state.tally.cut_sentences += int(encoded.num_cut[here])
            waiting = cursor.tokens(here + 1) - cursor.tokens(first)
            if split and self._outputs[split].num_tokens + waiting >= self._settings.shard_tokens:
                self._append(state, cursor, split, first, here + 1)
                first, split = here + 1, None
                self._end_round(state)
        self._append(state, cursor, split, first, len(batch.documents))

    def _target(self, state: State, encoded: EncodedBatch, document: int) -> Split | None:
        """Say where a document goes; None drops it, and counts why."""
        if (
            encoded.characters[document] < self._settings.min_characters
            or not encoded.document_lengths[document]
        ):
            state.tally.drop("too short")
            return None
        if self._seen is not None:
            repeats = self._seen.add(
                state.documents,
                encoded.keys[document],
                encoded.signatures[document] if encoded.signatures is not None else None,
                encoded.bands[document].tolist() if encoded.bands is not None else (),
            )
            if repeats is not None:
                state.tally.drop(repeats)
                return None
        return "eval" if encoded.is_eval[document] else "train"

    def _append(
        self, state: State, cursor: BatchCursor, split: Split | None, first: int, last: int
    ) -> None:
        if split is None or first == last:
            return
        infos, counts = (
            (state.train, state.tally.train) if split == "train" else (state.eval, state.tally.eval)
        )
        self._outputs[split].add(cursor, first, last, len(infos), counts)

    def _end_round(self, state: State) -> None:
        """Finish the shards and remember it: from here on nothing of them is done again."""
        self._outputs["train"].finish(state.train)
        self._outputs["eval"].finish(state.eval)
        if self._seen is not None:
            self._seen.commit()
        state.save(self._out)

    def _finish(self, state: State) -> PrepareOutcome:
        if not state.train:
            raise DataError(
                f"nothing is left to write: {_dropped(state.tally)}; check the files and "
                "min_characters, delete the folder and try again",
                path=self._out,
            )
        if state.eval:
            write_manifest(self._outputs["eval"].folder, state.eval, self._pieces, self._options)
        write_report(self._out, state.tally, self._options, len(state.train), len(state.eval))
        write_manifest(self._out, state.train, self._pieces, self._options)
        self._remove_traces()
        return self._outcome(state.tally, was_finished=False)

    def _already_finished(self) -> PrepareOutcome:
        shards = ShardSet.open(self._out)
        refuse_changes(dict(shards.manifest.options), self._options, self._out, "finished")
        self._remove_traces()
        return self._outcome(Tally(), was_finished=True)

    def _remove_traces(self) -> None:
        for name in (PROGRESS_FILE, SEEN_FILE, f"{SEEN_FILE}-journal"):
            remove_tree(self._out / name)

    def _outcome(self, tally: Tally, *, was_finished: bool) -> PrepareOutcome:
        held_out = self._out / EVAL_FOLDER
        has_eval = (held_out / MANIFEST_FILE).exists()
        return PrepareOutcome(
            folder=self._out,
            tally=tally,
            shards=ShardSet.open(self._out),
            eval_shards=ShardSet.open(held_out) if has_eval else None,
            was_finished=was_finished,
            new_bytes=self._new_bytes,
        )

    def _progress(self, state: State) -> PrepareProgress:
        return PrepareProgress(
            documents=state.documents,
            num_bytes=state.tally.num_bytes,
            tokens=state.tally.train.tokens + state.tally.eval.tokens,
            shards=len(state.train),
            file=state.position.file + 1,
            files=len(self._files),
            is_resumed=self._is_resumed,
        )


def _plan(settings: PrepareSettings) -> EncodingPlan:
    return EncodingPlan(
        sentences=settings.sentences,
        language=settings.language,
        eval_fraction=settings.eval_fraction,
        seed=settings.seed,
        has_signatures=settings.dedup == "near",
    )


def _options(settings: PrepareSettings, inputs: InputList, pieces: Tokenizer) -> dict[str, Any]:
    """Return all that decides the result, flat, as JSON values."""
    values: dict[str, Any] = {}
    for name, value in settings.model_dump(mode="json").items():
        if isinstance(value, dict):
            values |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            values[name] = value
    return values | {
        "tokenizer": pieces.fingerprint,
        "input_files": inputs.files,
        "input_bytes": inputs.num_bytes,
        "input_sha256": inputs.names_sha256,
    }


def _require_empty(folder: Path) -> None:
    foreign = [
        path.name
        for path in sorted(folder.iterdir())
        if path.name != LOCK_FILE and not path.name.startswith(f".{PROGRESS_FILE}")
    ]
    if foreign:
        raise SettingsError(
            f"the folder holds {foreign[0]!r:.80} and is no preparation of ours; choose a new or "
            "empty folder for --out",
            path=folder,
        )
    make_folder(folder)


def _dropped(tally: Tally) -> str:
    reasons = {**tally.dropped, **tally.faults}
    listed = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
    return f"{tally.documents:,} documents were read" + (f", {listed}" if listed else "")


def _cores() -> int:
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


@contextlib.contextmanager
def _disk_errors(out: Path) -> Generator[None]:
    """Give refusals of the disk the message and exit code that other commands have."""
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        place = Path(error.filename) if isinstance(error.filename, str) else out
        raise StorageError(
            f"cannot read or write here ({os.strerror(number)}); finished shards are kept: see to "
            "it and give the same command again",
            path=place,
            errno=number,
        ) from error
