"""Label cells to names, sets and numbers, and the order of names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

UNLABELLED = frozenset(("",))
"""Label texts that mean: no label."""

_DIGITS = re.compile(r"([0-9]+)")


def label_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct labels in the order of their ids.

    Numbers stand in numeric order when every label is one ("2" before "10", "-1" before "0");
    otherwise runs of digits inside names compare as numbers ("class2" before "class10").
    """
    distinct = sorted(set(labels))
    numbers = [number for label in distinct if (number := label_number(label)) is not None]
    if len(numbers) == len(distinct):
        return tuple(label for _, label in sorted(zip(numbers, distinct, strict=True)))
    return tuple(sorted(distinct, key=lambda label: (natural_key(label), label)))


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return what a name sorts by when the digits in it compare as numbers and case does not."""
    parts = _DIGITS.split(name.casefold())
    # int() refuses very long digit strings; those compare by length, then as text.
    return [
        (0, len(part.lstrip("0")), part.lstrip("0"))
        if part.isascii() and part.isdigit()
        else (1, 0, part)
        for part in parts
        if part
    ]


def label_text(value: Any) -> str:
    """Return the class name that a cell stands for; "" when it holds no label.

    A whole float is its integer (1.0 -> "1"), true and false are "true" and "false".
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()


def label_parts(value: Any, separator: str | None) -> tuple[str, ...]:
    """Return the sorted, distinct labels of a multi-label cell; empty for none."""
    if isinstance(value, list | tuple):
        parts = [label_text(item) for item in cast(Sequence[Any], value)]
    elif separator is not None:
        parts = [part.strip() for part in label_text(value).split(separator)]
    else:
        parts = [label_text(value)]
    return tuple(sorted({part for part in parts if part not in UNLABELLED}))


def label_number(value: Any) -> float | None:
    """Return the finite number a cell holds, or None."""
    if isinstance(value, bool) or value is None:
        return None
    if not isinstance(value, int | float | str):
        return None
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and ("_" in text or not text):
        return None
    try:
        number = float(text)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def is_no_number(text: str) -> bool:
    """Tell whether a label text spells a number that is not finite: nan, inf, infinity."""
    return text.strip().lstrip("+-").lower() in ("nan", "inf", "infinity")


def indicator(value: Any) -> bool | None:
    """Return the truth value of a 0/1 cell, or None when it is neither."""
    text = label_text(value).lower()
    return {"1": True, "true": True, "0": False, "false": False}.get(text)
