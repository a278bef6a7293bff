"""Turn errors into one short block and a documented exit code; anything unknown keeps its traceback."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
from collections.abc import Generator
from typing import Any, Final

import typer
from typer.core import TyperGroup

from litebert.cli.output import is_color_wanted, say, visible
from litebert.data.rows import BadRowError
from litebert.errors import LitebertError, MissingDependencyError

__all__ = ["EXIT_CODES", "FaultGroup", "report"]

EXIT_CODES: Final = {
    0: "success",
    1: "the command ran and its answer is no (a check failed, an export differs)",
    2: "wrong usage or settings, or a missing optional package",
    65: "bad data or model folder",
    66: "an input file is missing",
    69: "an address cannot be listened on",
    70: "training diverged",
    73: "an output cannot be created",
    74: "disk full or input/output error",
    75: "another process of the run died or hangs; the same command goes on",
    77: "permission denied",
    129: "hung up (SIGHUP) after saving",
    130: "interrupted (SIGINT) after saving",
    141: "the reader of the output went away",
    143: "terminated (SIGTERM) after saving",
}
_READ_CODES: Final = {
    errno.ENOENT: 66,
    errno.ENOTDIR: 66,
    errno.EISDIR: 66,
    errno.ENAMETOOLONG: 66,
    errno.EEXIST: 73,
    errno.EROFS: 73,
    errno.EACCES: 77,
    errno.EPERM: 77,
}
_WRITE_CODES: Final = dict.fromkeys(
    (
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.EEXIST,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
    ),
    73,
)
_IO_CODE: Final = 74
_EXTRAS: Final = {
    "torch": "train",
    "jaxtyping": "train",
    "sklearn": "train",
    "matplotlib": "train",
    "psutil": "train",
    "transformers": "hf",
    "optuna": "tune",
    "sqlalchemy": "tune",
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "h11": "serve",
}
"""Module -> extra that brings it."""


class FaultGroup(TyperGroup):
    """The command group whose `invoke` knows our errors."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command.

        Raises:
            Exit: with the code of the error, after printing it.
        """
        is_debug = bool(ctx.params.get("debug"))
        with _logging_to_stderr():
            try:
                return super().invoke(ctx)
            except LitebertError as error:
                if is_debug:
                    raise
                report(str(error) + self._way_out(ctx, error))
                raise typer.Exit(_exit_code(error)) from error
            except ModuleNotFoundError as error:
                package = (error.name or "").partition(".")[0]
                if is_debug or package not in _EXTRAS:
                    raise
                purpose = f"litebert {ctx.invoked_subcommand or ''}".rstrip()
                missing = MissingDependencyError(package, extra=_EXTRAS[package], purpose=purpose)
                report(str(missing))
                raise typer.Exit(missing.exit_code) from error
            except BrokenPipeError as error:
                _silence_streams()
                raise typer.Exit(141) from error
            except (KeyboardInterrupt, typer.Abort) as error:
                report("interrupted")
                raise typer.Exit(130) from error
            except OSError as error:
                if is_debug or error.errno is None:
                    raise
                place = f"{error.filename}: " if error.filename else ""
                report(f"{place}{error.strerror}")
                raise typer.Exit(_READ_CODES.get(error.errno, _IO_CODE)) from error

    def _way_out(self, ctx: Any, error: LitebertError) -> str:
        """What the command itself could do about a record: only some have the option."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        names = {option for part in getattr(command, "params", ()) for option in part.opts}
        if isinstance(error, BadRowError) and "--on-bad-row" in names:
            return " (or skip such rows with --on-bad-row skip)"
        return ""


def report(message: str) -> None:
    """Print one error block on standard error."""
    color = is_color_wanted()
    label = typer.style("error:", fg=typer.colors.RED, bold=True)
    typer.echo(f"{label} {visible(message)}", err=True, color=color)


def _exit_code(error: LitebertError) -> int:
    """The operating system's reason, where there is one, else that of the error's class."""
    number = getattr(error, "errno", None)  # StorageError: something could not be written
    if isinstance(number, int):
        return _WRITE_CODES.get(number, error.exit_code)
    cause = error.__cause__
    if isinstance(cause, OSError) and not isinstance(cause, LitebertError):
        return _READ_CODES.get(cause.errno or 0, error.exit_code)
    return error.exit_code


@contextlib.contextmanager
def _logging_to_stderr() -> Generator[None]:
    """Show warnings of libraries and of our own as single lines of talk."""
    handler = _TalkHandler(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)


class _TalkHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # a library's warning is not worth the run
            say(f"warning   {record.getMessage()}")


def _silence_streams() -> None:
    """Nobody reads any more: what Python still flushes at exit must not complain again."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
