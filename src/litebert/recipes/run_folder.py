"""The run folder: where a training keeps its settings, scores, models and report.

config.toml, command.txt, env.json, data.json, metrics.jsonl, log.txt, checkpoints/, model-best/,
model-last/, predictions.jsonl, plots/, report.html, README.md; described in docs/reference/run-folder.md.
"""

from __future__ import annotations

import errno
import importlib.metadata
import json
import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litebert.checkpoint.fs import make_folder, write_atomic
from litebert.errors import CheckpointError, SettingsError
from litebert.models import locate
from litebert.runtime.threads import usable_cpus
from litebert.settings import Settings, dump_toml

__all__ = [
    "START_FILES",
    "RunFolder",
    "clear_unfinished_start",
    "environment",
    "model_folder",
    "newest_folder",
    "next_folder",
    "require_free",
    "resume_command",
]

BEST: Final = "model-best"
LAST: Final = "model-last"
CONFIG: Final = "config.toml"
START_FILES: Final = ("command.txt", "env.json", "data.json")
"""What a run folder holds before its settings, in this order."""
_STARTED: Final = re.compile(
    "|".join(re.escape(name) for name in START_FILES)
    + "|"
    + "|".join(rf"\.{re.escape(name)}\.tmp-\d+" for name in (*START_FILES, CONFIG))
)
_RUNS: Final = Path("runs")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths inside one run folder."""

    path: Path

    @classmethod
    def create(cls, out: Path | None, *, name: str) -> RunFolder:
        """Return a new, empty run folder: `out`, or the next `runs/NAME-N`.

        Raises:
            SettingsError: `out` holds something already.
            CheckpointError: it cannot be created.
        """
        path = next_folder(name) if out is None else out
        require_free(path)
        make_folder(path)
        return cls(path)

    @classmethod
    def start(
        cls,
        out: Path | None,
        *,
        name: str,
        command: str,
        settings: Settings,
        facts: Mapping[str, Any] | None = None,
    ) -> RunFolder:
        """Create a run folder with all that is known before training; the settings come last.

        Args:
            out: as of `create`.
            name: as of `create`.
            command: the command line.
            settings: resolved, with absolute paths: what the run goes on with.
            facts: what is known of the data.

        Raises:
            SettingsError: `out` holds something already.
            CheckpointError: it cannot be written.
        """
        folder = cls.create(out, name=name)
        command_file, env_file, data_file = START_FILES
        folder.write_text(command_file, command + "\n")
        folder.write_json(env_file, environment())
        if facts is not None:
            folder.write_json(data_file, facts)
        folder.write_text(CONFIG, dump_toml(settings))
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return an existing run folder.

        Raises:
            CheckpointError: it has no settings, so it is no run.
        """
        if not path.exists():
            raise CheckpointError("there is no such run folder", path=path) from _not_found(path)
        if not (path / CONFIG).is_file():
            raise CheckpointError(f"there is no {CONFIG}, so this is no run folder", path=path)
        return cls(path)

    @property
    def config(self) -> Path:
        """The resolved settings."""
        return self.path / CONFIG

    @property
    def best(self) -> Path:
        """The model folder of the best evaluation."""
        return self.path / BEST

    @property
    def last(self) -> Path:
        """The model folder after the last step."""
        return self.path / LAST

    @property
    def plots(self) -> Path:
        """Folder of the plots."""
        return self.path / "plots"

    def checkpoints(self, seed: int) -> Path:
        """Folder of the training states of one seed."""
        return self.path / "checkpoints" / f"seed-{seed}"

    def write_text(self, name: str, text: str) -> Path:
        """Write one text file whole."""
        write_atomic(self.path / name, text.encode("utf-8", errors="backslashreplace"))
        return self.path / name

    def write_json(self, name: str, values: Mapping[str, Any] | Sequence[Any]) -> Path:
        """Write one JSON file whole."""
        return self.write_text(name, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def clear_unfinished_start(path: Path) -> None:
    """Take away what the start of a run wrote, if it was killed before its last file, the settings.

    A folder that holds anything else, or files of these names that no run wrote, is left alone.
    """
    if not path.is_dir() or (path / CONFIG).exists():
        return
    entries = list(path.iterdir())
    if not all(_STARTED.fullmatch(entry.name) and entry.is_file() for entry in entries):
        return
    first = path / START_FILES[0]
    if any(entry.name in START_FILES for entry in entries) and not _is_command(first):
        return
    for entry in entries:
        entry.unlink()


def _is_command(path: Path) -> bool:
    try:
        return path.read_bytes()[:9] == b"litebert "
    except OSError:
        return False


def require_free(path: Path) -> None:
    """Refuse a place that holds something already.

    Raises:
        SettingsError: it does; if that is a run, the message says how to continue it.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    is_run = (path / CONFIG).exists()
    hint = f"continue it with: {resume_command(path)}; or " if is_run else ""
    raise SettingsError(f"{path} exists and is not empty; {hint}choose another --out")


def resume_command(path: Path) -> str:
    """Return the command that goes on with the fine-tuning run in `path`."""
    return f"litebert train --resume {shlex.quote(str(path))}"


def model_folder(path: Path) -> Path:
    """Return the model folder that `path` means: itself, or the best model of a run folder.

    Args:
        path: of a folder, or the name of an encoder that comes with litebert.

    Raises:
        CheckpointError: neither.
    """
    path = locate(path)
    if (path / "config.json").exists():
        return path
    for name in (BEST, LAST):
        if (path / name / "config.json").exists():
            return path / name
    if not path.exists():
        raise CheckpointError(
            "there is no such folder; give a model folder or a run folder", path=path
        ) from _not_found(path)
    if (path / CONFIG).exists():
        raise CheckpointError(
            f"the run has not finished, so it has no model; continue it with: {resume_command(path)}",
            path=path,
        )
    raise CheckpointError(
        "neither a model folder (no config.json) nor a finished run (no model-best)", path=path
    )


def environment() -> dict[str, Any]:
    """Return versions and machine facts that a result depends on; nothing personal."""
    packages = (
        "litebert",
        "torch",
        "numpy",
        "sentencepiece",
        "tokenizers",
        "safetensors",
        "pyarrow",
    )
    versions: dict[str, str] = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": usable_cpus(),
        "packages": versions,
    }


def next_folder(name: str) -> Path:
    """Return the next free `runs/NAME-N`."""
    slug = _slug(name)
    return _RUNS / f"{slug}-{1 + max(_numbers(slug), default=0)}"


def newest_folder(name: str) -> Path | None:
    """Return the `runs/NAME-N` with the largest number, None without one."""
    slug = _slug(name)
    numbers = _numbers(slug)
    return _RUNS / f"{slug}-{max(numbers)}" if numbers else None


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"


def _numbers(slug: str) -> list[int]:
    pattern = re.compile(re.escape(slug) + r"-(\d+)")
    entries = _RUNS.iterdir() if _RUNS.is_dir() else ()
    return [int(match.group(1)) for entry in entries if (match := pattern.fullmatch(entry.name))]


def _not_found(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
