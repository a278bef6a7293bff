"""Labels of examples: names, numbers, and the search for the one meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from litebert.data.labels import label_number, label_text
from litebert.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from litebert.data.examples import Example
    from litebert.data.kinds import Kind

__all__ = ["find_label", "label_names", "label_target"]


def find_label(
    label: str, ids: Mapping[str, int], *, path: Path | None = None, line: int | None = None
) -> int:
    """Return the id of a label.

    Raises:
        DataError: the label is not known; the message names the nearest one.
    """
    found = ids.get(label)
    if found is not None:
        return found
    near = get_close_matches(label, ids, n=1)
    known = ", ".join(repr(name) for name in list(ids)[:10]) + (", ..." if len(ids) > 10 else "")
    hint = f"did you mean {near[0]!r}?" if near else f"known: {known}"
    raise DataError(
        f"label {label!r:.80} does not occur in the training data; {hint} "
        "Correct the label or train with examples of it",
        path=path,
        line=line,
    )


def label_names(example: Example, kind: Kind) -> tuple[str, ...]:
    """Return the class names of a labelled example; exactly one unless `kind` is multilabel.

    Raises:
        DataError: several names where one is expected.
    """
    label = example.label
    if not isinstance(label, tuple):
        return (label_text(label),)
    if kind != "multilabel" and len(label) != 1:
        raise DataError(
            f"{len(label)} labels in one example, a {kind} task takes exactly one",
            path=example.path,
            line=example.line,
        )
    return label


def label_target(example: Example) -> float:
    """Return the number a labelled example carries.

    Raises:
        DataError: it is not a finite number.
    """
    number = label_number(example.label)
    if number is None:
        raise DataError(
            f"target {example.label!r:.80} is not a finite number; correct the row, or say that "
            "the labels are classes",
            path=example.path,
            line=example.line,
        )
    return number
