"""What commands print: results on standard output, talk on standard error, both safe for a terminal."""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import typer

__all__ = ["is_color_wanted", "is_interactive", "prepare_streams", "say", "show", "show_json",
           "visible", "write_lines"]  # fmt: skip

_KEPT: Final = frozenset("\n\t")


def prepare_streams() -> None:
    """Make printing safe: a stream that is closed takes everything, no character is refused.

    A closed one (`2>&-`) is opened on the null device, or the next file that is opened would get
    its number and with it whatever a library prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def show(text: str = "") -> None:
    """Print one result on standard output."""
    typer.echo(visible(text))


def show_json(value: Any) -> None:
    """Print a result as JSON on standard output; a number that JSON lacks becomes null."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Print talk on standard error."""
    typer.echo(visible(text), err=True)


def write_lines(lines: Iterable[str]) -> None:
    """Write data to standard output as UTF-8, each line as soon as it is known.

    A lone surrogate, which UTF-8 cannot hold, is written as its escape.
    """
    buffer = sys.stdout.buffer
    for line in lines:
        buffer.write(line.encode("utf-8", errors="backslashreplace"))
        buffer.flush()


def visible(text: str) -> str:
    """Return text with control characters escaped, so that data cannot steer the terminal."""
    return "".join(
        character
        if character in _KEPT or unicodedata.category(character) != "Cc"
        else f"\\x{ord(character):02x}"
        for character in text
    )


def is_color_wanted() -> bool | None:
    """Return whether the environment wants colour; None leaves it to the stream."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def is_interactive() -> bool:
    """Return whether a person can be asked: keyboard and screen are both there."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast(list[Any], value)]
    return value
