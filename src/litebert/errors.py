"""The error tree: every fault a user can cause or meet is one of these.

LitebertError
├── SettingsError (ValueError)        wrong value, unknown key, contradiction
├── DataError (ValueError)            bad record, label, checksum
├── CheckpointError (RuntimeError)    missing or unexpected weights, foreign format
├── ExportError (RuntimeError)        unsupported operator, failed verification
├── DegradedError (RuntimeError)      a smaller model is worse than was allowed
├── TrainingDiverged (RuntimeError)   non-finite or collapsed training
├── RankLostError (RuntimeError)      another process of a parallel run died or hangs
└── MissingDependencyError (ImportError)

A message says what we got, what is allowed, and what to do. Each class carries the exit code
the command line ends with.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

__all__ = [
    "CheckpointError",
    "DataError",
    "DegradedError",
    "ExportError",
    "LitebertError",
    "MissingDependencyError",
    "RankLostError",
    "SettingsError",
    "TrainingDiverged",
]


class LitebertError(Exception):
    """Base of every error that litebert raises on purpose."""

    exit_code: ClassVar[int] = 1
    """Process exit code of the command line for this error (sysexits where one fits)."""


class SettingsError(LitebertError, ValueError):
    """A setting is wrong, unknown, or contradicts another one.

    Attributes:
        path: file the setting came from, if any.
        line: 1-based line in that file, if known.
    """

    exit_code = 2

    def __init__(self, message: str, *, path: Path | None = None, line: int | None = None) -> None:
        super().__init__(_located(message, path, line))
        self.path = path
        self.line = line


class DataError(LitebertError, ValueError):
    """A record, label, encoding or checksum cannot be used.

    Attributes:
        path: data file, if any.
        line: 1-based line or record number in that file, if known.
        column: column name, if one is to blame.
    """

    exit_code = 65

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        text = message if column is None else f"column {column!r}: {message}"
        super().__init__(_located(text, path, line))
        self.path = path
        self.line = line
        self.column = column


class CheckpointError(LitebertError, RuntimeError):
    """A model folder or training state cannot be used.

    Attributes:
        path: the folder or file to blame.
    """

    exit_code = 65

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        super().__init__(_located(message, path, None))
        self.path = path


class ExportError(LitebertError, RuntimeError):
    """An export failed or its result differs from the model.

    Attributes:
        path: output that failed.
        max_difference: largest absolute difference that was found, if any.
    """

    exit_code = 1

    def __init__(
        self, message: str, *, path: Path | None = None, max_difference: float | None = None
    ) -> None:
        super().__init__(_located(message, path, None))
        self.path = path
        self.max_difference = max_difference


class DegradedError(LitebertError, RuntimeError):
    """A smaller or faster model scores worse than the user allows; nothing was put in place.

    Attributes:
        metric: name of the score.
        drop: how much worse, > 0.
        allowed: how much was allowed.
    """

    exit_code = 1

    def __init__(self, message: str, *, metric: str, drop: float, allowed: float) -> None:
        super().__init__(message)
        self.metric = metric
        self.drop = drop
        self.allowed = allowed


class TrainingDiverged(LitebertError, RuntimeError):  # noqa: N818 - the name says what happened
    """Training produced non-finite numbers or collapsed to a constant answer.

    Attributes:
        step: optimizer step at which it was seen.
        evidence: name -> value pairs that show it.
    """

    exit_code = 70

    def __init__(
        self, message: str, *, step: int, evidence: dict[str, float | str] | None = None
    ) -> None:
        self.step = step
        self.evidence = dict(evidence or {})
        shown = ", ".join(f"{name}={value}" for name, value in self.evidence.items())
        super().__init__(f"step {step}: {message}" + (f" ({shown})" if shown else ""))


class RankLostError(LitebertError, RuntimeError):
    """Another process of a parallel training died or hangs; saved states are good."""

    exit_code = 75


class MissingDependencyError(LitebertError, ImportError):
    """An optional package is needed that is not installed.

    Attributes:
        extra: name of the extra that brings it.
    """

    exit_code = 2

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f'install it with: pip install "litebert[{extra}]"'
        )
        self.package = package
        self.extra = extra


def _located(message: str, path: Path | None, line: int | None) -> str:
    if path is None:
        return message if line is None else f"line {line}: {message}"
    return f"{path}: {message}" if line is None else f"{path}:{line}: {message}"
