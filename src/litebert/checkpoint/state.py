"""Training states on disk: one folder per step, written whole or not at all, verified when read.

A state is `step-00001200/` with `tensors.safetensors`, `scalars.json` and, written last,
`manifest.json` with the size and sha256 of the others. Which state is the latest is found by
looking, never by a pointer that can lie. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from litebert.checkpoint.fs import (
    FileStamp,
    StorageError,
    check_free_space,
    fsync_folder,
    make_folder,
    remove_tree,
    rename,
    replace_folder_atomic,
    write_file,
)
from litebert.checkpoint.lock import RunLock
from litebert.checkpoint.tensor_file import tensor_bytes, tensor_chunks
from litebert.errors import CheckpointError

log = logging.getLogger(__name__)

FORMAT_VERSION = 1
MIN_KEEP = 2
"""One state could be the one that a power cut spoils; two cannot."""

_STEP_FOLDER = re.compile(r"step-(\d{8,})")
_TENSORS, _SCALARS, _MANIFEST = "tensors.safetensors", "scalars.json", "manifest.json"
_HASH_BLOCK = 1 << 20


class SavedState(NamedTuple):
    """What `StateStore.save` was given."""

    step: int
    tensors: dict[str, Tensor]
    scalars: dict[str, Any]


class StateStore:
    """The training states of one run."""

    def __init__(self, folder: Path) -> None:
        """Name the folder that holds the `step-*` folders; it is created by the first save."""
        self.folder = folder

    def lock(self) -> RunLock:
        """Return the single-writer lock of the run, `run.lock` beside the state folder."""
        return RunLock(self.folder.parent / "run.lock")

    def steps(self) -> list[int]:
        """Return the steps that have a state, oldest first; they may yet fail to verify."""
        if not self.folder.is_dir():
            return []
        matches = (_STEP_FOLDER.fullmatch(entry.name) for entry in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def save(
        self,
        step: int,
        tensors: Mapping[str, Tensor],
        scalars: Mapping[str, Any],
        *,
        keep: int = MIN_KEEP,
        protect: Iterable[int] = (),
        about: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a state, verify it, and only then delete old ones.

        Args:
            step: optimizer steps done, >= 0; a state of the same step is replaced.
            tensors: name -> tensor, any device.
            scalars: anything that strict JSON can hold.
            keep: newest states to keep, at least 2.
            protect: steps to keep besides, such as the best one.
            about: JSON pairs for the manifest, such as the data position.

        Returns:
            The folder of the state.

        Raises:
            StorageError: too little space (nothing was written) or any other refusal; the older
                states are untouched.
            CheckpointError: the values cannot be stored, or did not read back as written.
        """
        if keep < MIN_KEEP:
            raise CheckpointError(f"keep is {keep}; at least {MIN_KEEP} states must be kept")
        scalar_text = _to_json(scalars, self.folder)
        needed = 2 * (tensor_bytes(tensors) + len(scalar_text))
        make_folder(self.folder)
        check_free_space(self.folder, needed)
        final = self._path(step)
        temporary = self.folder / f".tmp-{final.name}-{os.getpid()}"
        try:
            self._remove_leftovers()
            make_folder(temporary)
            files = {
                _TENSORS: write_file(temporary / _TENSORS, tensor_chunks(tensors)),
                _SCALARS: write_file(temporary / _SCALARS, scalar_text),
            }
            write_file(temporary / _MANIFEST, _manifest(step, files, about or {}))
            replace_folder_atomic(temporary, final)
        except StorageError as error:
            self._forget(temporary)
            if error.is_disk_full and error.needed_bytes is None:
                raise StorageError(
                    f"the disk is full; a state of this run needs {needed:,} bytes free",
                    path=self.folder,
                    errno=error.errno,
                    needed_bytes=needed,
                ) from error
            raise
        _verify(final)
        self._purge(keep, set(protect))
        return final

    def load_latest(self) -> SavedState | None:
        """Return the newest state that verifies, or None when none was ever saved.

        A state that does not verify is moved to `.quarantine` and reported in one warning.

        Raises:
            CheckpointError: a newer version of litebert wrote the state, or there are states and
                none of them verifies.
        """
        broken: list[str] = []
        loaded: SavedState | None = None
        for step in reversed(self.steps()):
            try:
                loaded = self.load(step)
                break
            except _NewerFormatError:
                raise
            except CheckpointError as error:
                broken.append(str(error))
                self._quarantine(self._path(step))
        if broken and loaded is None:
            raise CheckpointError(
                f"none of the {len(broken)} training states can be used ({broken[0]}); they are "
                "in .quarantine; start again in another folder",
                path=self.folder,
            )
        if broken and loaded is not None:
            log.warning(
                "%d training state(s) did not verify and were moved to %s; going back to step %d. "
                "First fault: %s",
                len(broken),
                self.folder / ".quarantine",
                loaded.step,
                broken[0],
            )
        return loaded

    def load(self, step: int) -> SavedState:
        """Return the state of one step.

        Raises:
            CheckpointError: it is missing, does not verify, or is of a newer format.
        """
        folder = self._path(step)
        if not folder.is_dir():
            raise CheckpointError(f"no state of step {step}; there are {self.steps()}", path=folder)
        try:
            _verify(folder)
            scalars = json.loads((folder / _SCALARS).read_bytes())
            tensors = load_file(folder / _TENSORS)
        except (OSError, ValueError, SafetensorError) as error:
            raise CheckpointError(f"cannot be read: {error}", path=folder) from error
        return SavedState(step, tensors, scalars)

    def discard_after(self, step: int) -> None:
        """Delete the states newer than `step`, after training went back to it.

        Raises:
            StorageError: the disk refused.
        """
        for newer in self.steps():
            if newer > step:
                remove_tree(self._path(newer))
        if self.folder.is_dir():
            fsync_folder(self.folder)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    def _purge(self, keep: int, protect: set[int]) -> None:
        for step in self.steps()[:-keep]:
            if step not in protect:
                self._forget(self._path(step))

    def _forget(self, path: Path) -> None:
        """Delete as far as possible; a left-over costs space, not correctness."""
        try:
            remove_tree(path)
        except StorageError as error:
            log.warning("could not delete %s: %s", path, error)

    def _remove_leftovers(self) -> None:
        for entry in self.folder.glob(".tmp-step-*"):
            self._forget(entry)

    def _quarantine(self, path: Path) -> None:
        target = self.folder / ".quarantine" / path.name
        number = 1
        while target.exists():
            number += 1
            target = target.with_name(f"{path.name}.{number}")
        try:
            make_folder(target.parent)
            rename(path, target)
        except StorageError as error:
            log.warning("could not move %s to quarantine: %s", path, error)


class _NewerFormatError(CheckpointError):
    """A later version wrote this; not a broken state, so never quarantined."""


def _manifest(step: int, files: Mapping[str, FileStamp], about: Mapping[str, Any]) -> bytes:
    from litebert import __version__

    body: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "step": step,
        "files": {name: {"size": s.size, "sha256": s.sha256} for name, s in files.items()},
        "litebert_version": __version__,
        "torch_version": str(torch.__version__),
        "about": dict(about),
    }
    body["sha256"] = _body_hash(body)
    return json.dumps(body, indent=1).encode()


def _body_hash(body: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in body.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _verify(folder: Path) -> None:
    """Compare every file of a state with its manifest.

    Raises:
        CheckpointError: what does not fit, or the format version if it is newer than ours.
    """
    try:
        parsed = json.loads((folder / _MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{_MANIFEST} cannot be read: {error}", path=folder) from error
    body = cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {}
    if body.get("sha256") != _body_hash(body):
        raise CheckpointError(f"{_MANIFEST} does not match its own checksum", path=folder)
    version = body["format_version"]
    if version > FORMAT_VERSION:
        raise _NewerFormatError(
            f"training state of format {version}, this litebert reads up to {FORMAT_VERSION}; "
            f"install litebert {body['litebert_version']} or newer",
            path=folder,
        )
    if folder.name != f"step-{body['step']:08d}":
        raise CheckpointError(f"holds the state of step {body['step']}", path=folder)
    for name, stamp in body["files"].items():
        path = folder / name
        if not path.is_file():
            raise CheckpointError(f"{name} is missing", path=folder)
        size = path.stat().st_size
        if size != stamp["size"]:
            raise CheckpointError(
                f"{name} has {size} bytes, {stamp['size']} were written", path=folder
            )
        if _file_hash(path) != stamp["sha256"]:
            raise CheckpointError(f"{name} does not match its checksum", path=folder)


def _file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _to_json(values: Mapping[str, Any], path: Path) -> bytes:
    try:
        return json.dumps(values, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the scalars are not strict JSON: {error}", path=path) from error
