"""Head words: what each is made of, and whether its published model has the pooler. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from litebert.errors import SettingsError

__all__ = ["EXIT_WORDS", "HEADS", "HeadKind", "head_kind"]


@dataclass(frozen=True, slots=True)
class HeadKind:
    """What a head word means.

    Attributes:
        parts: names of the weights under `heads.`.
        has_pooler: whether the published model of this head has the pooler.
    """

    parts: tuple[str, ...]
    has_pooler: bool


HEADS: Final[dict[str, HeadKind]] = {
    "mlm": HeadKind(("mlm",), has_pooler=False),
    "sentence_order": HeadKind(("sentence_order",), has_pooler=True),
    "pretraining": HeadKind(("mlm", "sentence_order"), has_pooler=True),
    "sequence": HeadKind(("sequence",), has_pooler=True),
    "token": HeadKind(("token",), has_pooler=False),
    "span": HeadKind(("span",), has_pooler=False),
    "span_joint": HeadKind(("span_joint",), has_pooler=False),
    "choice": HeadKind(("choice",), has_pooler=True),
    "embedding": HeadKind((), has_pooler=True),
}
"""Head word -> what it is made of."""

EXIT_WORDS: Final = frozenset({"sequence", "token"})
"""Heads that each depth can have one of: one projection, of the pooled first token or of each token."""


def head_kind(head: str) -> HeadKind:
    """Return what a head word means.

    Raises:
        SettingsError: no such head.
    """
    if head not in HEADS:
        raise SettingsError(f"unknown head {head!r}; known: {', '.join(HEADS)}")
    return HEADS[head]
