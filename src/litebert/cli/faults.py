"""Turn errors into one short block and a documented exit code; anything unknown keeps its traceback."""

from __future__ import annotations

import errno
import logging
import os
import sys
from typing import Any, Final

import typer
from typer.core import TyperGroup

from litebert.errors import LitebertError

EXIT_CODES: Final = {
    0: "success",
    1: "the command ran and its answer is no (a check failed, an export differs)",
    2: "wrong usage or settings, or a missing optional package",
    65: "bad data or model folder",
    66: "an input file is missing",
    70: "training diverged",
    73: "an output cannot be created",
    74: "disk full or input/output error",
    77: "permission denied",
    130: "interrupted (SIGINT) after saving",
    141: "the reader of the output went away",
    143: "terminated (SIGTERM) after saving",
}
_OS_CODES: Final = {
    errno.ENOENT: 66,
    errno.EEXIST: 73,
    errno.ENOTDIR: 73,
    errno.EISDIR: 66,
    errno.EACCES: 77,
    errno.EPERM: 77,
    errno.EROFS: 73,
    errno.ENOSPC: 74,
    errno.EDQUOT: 74,
    errno.EIO: 74,
}


class FaultGroup(TyperGroup):
    """The command group whose `invoke` knows our errors."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command.

        Raises:
            Exit: with the code of the error, after printing it.
        """
        logging.captureWarnings(True)
        logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
        try:
            return super().invoke(ctx)
        except LitebertError as error:
            if ctx.params.get("debug"):
                raise
            code = _os_code(error.__cause__) or error.exit_code
            report(str(error))
            raise typer.Exit(code) from error
        except BrokenPipeError as error:
            # Later writes at interpreter exit would complain again; give them somewhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from error
        except KeyboardInterrupt as error:
            report("interrupted")
            raise typer.Exit(130) from error
        except OSError as error:
            code = _os_code(error)
            if code is None or ctx.params.get("debug"):
                raise
            place = f"{error.filename}: " if error.filename else ""
            report(f"{place}{error.strerror}")
            raise typer.Exit(code) from error


def report(message: str) -> None:
    """Print one error block on stderr."""
    typer.secho("error: ", fg=typer.colors.RED, bold=True, nl=False, err=True)
    typer.echo(message.replace("\x1b", "\\x1b"), err=True)


def _os_code(error: BaseException | None) -> int | None:
    return _OS_CODES.get(error.errno or 0) if isinstance(error, OSError) else None
