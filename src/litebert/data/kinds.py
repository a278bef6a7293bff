"""Label values to the kind of task: classes, several labels a row, or a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from litebert.data.labels import UNLABELLED, is_no_number, label_number, label_parts, label_text

Kind = Literal["binary", "multiclass", "multilabel", "regression"]
SEPARATORS = ("|", ";", ",")
MAX_INTEGER_CLASSES = 20
"""Up to this many different integers are always classes."""
MIN_ROWS_A_CLASS = 5
"""Integer ids 0..n or 1..n are classes when each has this many rows on average."""
MIN_ROWS_A_NUMBER = 20
"""More integers than `MAX_INTEGER_CLASSES` are classes when each has this many rows on average."""


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """What the cells of a label column look like.

    Attributes:
        counts: label text -> rows that have it (lists are left out).
        num_labelled: rows with a label.
        num_lists: rows whose cell is a list.
        is_numeric: every label is a finite number; nan and inf among them are faults.
        has_fraction: some label is not a whole number.
    """

    counts: Counter[str]
    num_labelled: int
    num_lists: int
    is_numeric: bool
    has_fraction: bool

    @classmethod
    def of(cls, values: Sequence[Any]) -> LabelFacts:
        """Gather the facts of a column."""
        lists = sum(isinstance(value, list | tuple) for value in values)
        plain = [value for value in values if not isinstance(value, list | tuple)]
        counts = Counter(text for text in map(label_text, plain) if text not in UNLABELLED)
        numbers = [label_number(text) for text in counts if not is_no_number(text)]
        numeric = bool(numbers) and all(number is not None for number in numbers) and not lists
        fraction = numeric and any(not cast(float, number).is_integer() for number in numbers)
        return cls(counts, counts.total() + lists, lists, numeric, fraction)


def infer_kind(
    facts: LabelFacts, *, kind: Kind | None = None, separator: str | None = None
) -> tuple[Kind, str, str | None]:
    """Return the kind, the reason in words, and the separator of several labels in one cell."""
    found = len(facts.counts)
    size = f"{facts.num_labelled:,} rows"
    if kind is not None:
        guess = separator or (find_separator(facts.counts) if kind == "multilabel" else None)
        return kind, f"{found:,} different values in {size}, {kind} as told", guess
    if facts.num_lists:
        return "multilabel", f"lists of labels in {facts.num_lists:,} of {size} -> multilabel", None
    guess = separator or (None if facts.is_numeric else find_separator(facts.counts))
    if guess is not None:
        several = sum(n for text, n in facts.counts.items() if guess in text)
        reason = f"several labels joined by {guess!r} in {several:,} of {size} -> multilabel"
        return "multilabel", reason, guess
    classes: Kind = "binary" if found == 2 else "multiclass"
    if not facts.is_numeric:
        return classes, f"{found:,} strings in {size} -> {classes}", None
    if facts.has_fraction:
        return "regression", f"{found:,} numbers with fractions in {size} -> regression", None
    if _are_classes(facts):
        return classes, f"{found:,} whole numbers in {size} -> {classes}", None
    reason = (
        f"{found:,} whole numbers in {size}, too many for classes -> regression "
        "(tell --kind multiclass if they are class ids)"
    )
    return "regression", reason, None


def find_separator(counts: Counter[str]) -> str | None:
    """Return the separator of cells that hold several labels, or None.

    A bar in any label is enough when parts occur again elsewhere; semicolon and comma must leave
    fewer parts than there are cells of different text, and every part must occur again.
    """
    for separator in SEPARATORS:
        joined = [text for text in counts if separator in text]
        if not joined:
            continue
        uses = Counter(part for text in counts for part in label_parts(text, separator))
        rows = Counter[str]()
        for text, number in counts.items():
            rows.update(dict.fromkeys(label_parts(text, separator), number))
        shared = [text for text in joined if any(uses[p] > 1 for p in label_parts(text, separator))]
        if separator == "|":
            if shared or all(rows[part] > 1 for part in rows):
                return separator
        elif (
            len(uses) < len(counts)
            and all(uses[p] > 1 for text in joined for p in label_parts(text, separator))
        ):  # fmt: skip
            return separator
    return None


def _are_classes(facts: LabelFacts) -> bool:
    found = len(facts.counts)
    if found <= MAX_INTEGER_CLASSES:
        return True
    each = facts.num_labelled / found
    if each >= MIN_ROWS_A_NUMBER:
        return True
    ids = {int(float(text)) for text in facts.counts if not is_no_number(text)}
    return min(ids) in (0, 1) and max(ids) - min(ids) + 1 == found and each >= MIN_ROWS_A_CLASS
