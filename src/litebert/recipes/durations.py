"""Lengths of time as people write and read them."""

from __future__ import annotations

import re
from typing import Final

from litebert.errors import SettingsError

__all__ = ["format_duration", "parse_duration"]

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?")
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, None: 1}


def parse_duration(text: str) -> float:
    """Return the seconds of `90`, `600s`, `45m`, `2h` or `1.5d`.

    Raises:
        SettingsError: none of these, or zero.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match.group(1)) * _UNITS[match.group(2)] if match else 0.0
    if seconds <= 0:
        raise SettingsError(
            f"time budget {text!r} is no time; allowed are numbers with s, m, h or d, such as 2h or 90m"
        )
    return seconds


def format_duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
