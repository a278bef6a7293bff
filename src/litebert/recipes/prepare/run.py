"""The run of `litebert prepare`, readable top to bottom: read, encode in workers, write in order.

A round is one shard and what was held out meanwhile. When it is on disk, `progress.json` says so;
a run that ends in any way goes on from the last round, and gives the same bytes as one that never
ended.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Final

from litebert.checkpoint.fs import StorageError, make_folder, remove_tree
from litebert.checkpoint.lock import RunLock
from litebert.data.corpus import Fault, corpus_files
from litebert.data.shards import ShardSet, dtype_for, write_manifest
from litebert.data.shards.manifest import MANIFEST_FILE
from litebert.errors import DataError, SettingsError
from litebert.recipes.prepare.batches import Batch, read_batches, window_chars
from litebert.recipes.prepare.encode import DocumentEncoder, EncodedBatch, EncodingPlan
from litebert.recipes.prepare.outcome import PrepareOutcome, PrepareProgress
from litebert.recipes.prepare.output import EVAL_FOLDER
from litebert.recipes.prepare.pool import OrderedPool
from litebert.recipes.prepare.report import write_report
from litebert.recipes.prepare.rounds import SEEN_FILE, Rounds
from litebert.recipes.prepare.settings import PrepareSettings
from litebert.recipes.prepare.state import (
    PROGRESS_FILE,
    InputList,
    State,
    list_inputs,
    options_of,
    read_state,
    refuse_changes,
)
from litebert.recipes.prepare.tally import Tally
from litebert.text.tokenizer import Tokenizer
from litebert.train.stop import StopRequest

__all__ = ["LOCK_FILE", "PrepareOutcome", "PrepareProgress", "prepare_corpus"]

LOCK_FILE: Final = "prepare.lock"


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
        SettingsError: other options, tokenizer or files than `out` was begun with, or `out` lies
            inside one of `paths`.
        CheckpointError: no usable tokenizer, or another process is at work in `out`.
        StorageError: the disk refused; finished shards are kept.
        WorkerDied: a worker process was killed.
    """
    settings = settings or PrepareSettings()
    _refuse_inside(out, paths)
    pieces = Tokenizer.from_pretrained(tokenizer)
    files = corpus_files(paths)
    DocumentEncoder(tokenizer, _plan(settings))  # the same refusals as in the workers, but readable
    with _disk_errors(out):
        inputs = list_inputs(files)
        with RunLock(out / LOCK_FILE):
            for leftover in (*out.glob(".*.tmp-*"), *(out / EVAL_FOLDER).glob(".*.tmp-*")):
                leftover.unlink(missing_ok=True)  # of a process that was killed while it wrote
            run = _Run(paths, files, inputs, pieces, tokenizer, out, settings)
            return run.go(workers or _cores(), on_progress, stop or StopRequest())


def _refuse_inside(out: Path, paths: Sequence[Path | str]) -> None:
    """Refuse a place whose own files would be read as text, now or when the run goes on."""
    for path in map(Path, paths):
        if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
            raise SettingsError(
                f"--out {out} lies inside the input folder {path}, so its files would be read as "
                "text; choose a place outside"
            )


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
        self._options = options_of(settings, inputs, pieces)
        self._dtype = dtype_for(pieces.vocab_size)
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
        rounds = Rounds(self._out, self._settings, state, self._dtype, self._pieces.unk_id)
        with contextlib.closing(rounds):
            rounds.begin()
            trailing: list[Fault] = []
            batches = read_batches(self._paths, self._settings.corpus, state.position, trailing)
            pool: OrderedPool[Batch, EncodedBatch] = OrderedPool(
                DocumentEncoder, (self._tokenizer, _plan(self._settings)), workers
            )
            with pool:
                for batch, encoded in pool.map(batches, window_chars(workers)):
                    rounds.write(batch, encoded)
                    self._new_bytes += int(encoded.num_bytes.sum())
                    if on_progress is not None:
                        on_progress(self._progress(state))
                    if stop.is_requested:
                        return PrepareOutcome(
                            self._out, state.tally, None, None, stop.signal, False, self._new_bytes
                        )
            for fault in trailing:
                state.tally.note(fault)
            rounds.end()
        return self._finish(state)

    def _begin(self) -> State:
        """Return where to go on."""
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
        return state

    def _finish(self, state: State) -> PrepareOutcome:
        if not state.train:
            self._remove_traces()
            raise DataError(
                f"nothing is left to write: {_dropped(state.tally)}; check the files and "
                "min_characters, and try again",
                path=self._out,
            )
        if state.eval:
            write_manifest(self._out / EVAL_FOLDER, state.eval, self._pieces, self._options)
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
