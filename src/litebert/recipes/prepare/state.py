"""`progress.json`: how far an unfinished preparation has come, and what it must be continued with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from litebert.checkpoint.fs import write_atomic
from litebert.data.corpus import Position
from litebert.data.shards import ShardInfo
from litebert.errors import DataError, SettingsError
from litebert.recipes.prepare.settings import PrepareSettings
from litebert.recipes.prepare.tally import Tally
from litebert.small_files import read_small
from litebert.text.tokenizer import Tokenizer

__all__ = [
    "PROGRESS_FILE",
    "InputList",
    "State",
    "list_inputs",
    "options_of",
    "read_state",
    "refuse_changes",
]

PROGRESS_FILE: Final = "progress.json"
_FORMAT_VERSION: Final = 1
_MAX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class InputList:
    """The files of a corpus.

    Attributes:
        files: number of files.
        num_bytes: their sizes on disk added up.
        names_sha256: over their names and sizes.
        times_sha256: over their times of change: tells an edit that keeps the size.
    """

    files: int
    num_bytes: int
    names_sha256: str
    times_sha256: str


@dataclass(slots=True)
class State:
    """What is known when a round of shards is on disk.

    Attributes:
        options: all that decides the result, see `options_of`.
        inputs: the files as they were.
        position: where to read on.
        documents: documents read before that.
        tally: counts so far.
        train: finished shards.
        eval: finished shards of held-out documents.
    """

    options: dict[str, Any]
    inputs: InputList
    position: Position = field(default_factory=lambda: Position(0, 0))
    documents: int = 0
    tally: Tally = field(default_factory=Tally)
    train: list[ShardInfo] = field(default_factory=list[ShardInfo])
    eval: list[ShardInfo] = field(default_factory=list[ShardInfo])

    def save(self, folder: Path) -> None:
        """Write it atomically.

        Raises:
            StorageError: the disk refused.
        """
        values = {
            "format_version": _FORMAT_VERSION,
            "options": self.options,
            "input_times_sha256": self.inputs.times_sha256,
            "position": [self.position.file, self.position.document],
            "documents": self.documents,
            "tally": self.tally.to_json(),
            "train": [info.to_json() for info in self.train],
            "eval": [info.to_json() for info in self.eval],
        }
        text = json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True)
        write_atomic(folder / PROGRESS_FILE, text.encode("utf-8", "backslashreplace"))


def read_state(folder: Path, dtype: str) -> State | None:
    """Return the state of an unfinished preparation, or None where there is none.

    Raises:
        DataError: damaged, or of a newer version.
    """
    path = folder / PROGRESS_FILE
    try:
        values = cast(dict[str, Any], json.loads(read_small(path, _MAX_BYTES)))
        if values["format_version"] != _FORMAT_VERSION:
            raise ValueError(f"its version is {values['format_version']!r:.40}")
        old = InputList(0, 0, "", str(values["input_times_sha256"]))
        state = State(
            options=dict(values["options"]),
            inputs=old,
            position=Position(int(values["position"][0]), int(values["position"][1])),
            documents=int(values["documents"]),
            tally=Tally.from_json(values["tally"]),
            train=_infos(values["train"], dtype),
            eval=_infos(values["eval"], dtype),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise DataError(
            f"the state of the unfinished preparation cannot be read ({error}); delete the folder "
            "and prepare anew",
            path=path,
        ) from error
    return state


def refuse_changes(known: dict[str, Any], told: dict[str, Any], folder: Path, what: str) -> None:
    """Refuse to go on with other options, another tokenizer, or other files.

    Args:
        known: options that the folder was begun with.
        told: options now.
        folder: the folder.
        what: "half-finished" or "finished".

    Raises:
        SettingsError: names the first difference.
    """
    for name in sorted({*known, *told}):
        before, now = known.get(name), told.get(name)
        if before != now:
            raise SettingsError(
                f"the folder holds a {what} preparation with {name} = {_shown(before)}, now it is "
                f"{_shown(now)}; give the same command again, or choose another --out",
                path=folder,
            )


def list_inputs(files: Sequence[Path]) -> InputList:
    """Return sizes and hashes of the names, sizes and times of files."""
    names, times, total = hashlib.sha256(), hashlib.sha256(), 0
    for path in files:
        status = path.stat()
        names.update(f"{path}\0{status.st_size}\n".encode("utf-8", "surrogateescape"))
        times.update(f"{path}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
        total += status.st_size
    return InputList(len(files), total, names.hexdigest(), times.hexdigest())


def options_of(settings: PrepareSettings, inputs: InputList, pieces: Tokenizer) -> dict[str, Any]:
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


def _infos(values: list[Any], dtype: str) -> list[ShardInfo]:
    return [ShardInfo.from_json(item, index, dtype) for index, item in enumerate(values)]


def _shown(value: Any) -> str:
    return "not set" if value is None else f"{value!r:.100}"
