"""Tagging schemes: which one a file uses, and tags to entities.

| scheme | entity of one word | of three words |
|---|---|---|
| IO | `I` (or the bare type) | `I I I` |
| IOB1 | `I`, but `B` right behind an entity of the same type | `I I I` |
| IOB2 | `B` | `B I I` |
| IOBES | `S` | `B I E` (`M` for `I` in BMES) |
| BILOU | `U` | `B I L` |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["ONLY_TYPE", "SchemeFinding", "SchemeName", "Slip", "entities", "find_scheme"]

SchemeName = Literal["IO", "IOB1", "IOB2", "IOBES", "BILOU"]

ONLY_TYPE: Final = "ENTITY"
"""Type of entities whose tags are bare `B` and `I`."""

MAX_SLIP_FRACTION: Final = 0.02
"""Entities that may begin against the scheme; official files have a few slips of the pen."""

_PREFIXED = re.compile(r"([BIESLUM])[-_](.+)", re.DOTALL)
_ANY_CASE = re.compile(_PREFIXED.pattern, re.DOTALL | re.IGNORECASE)
_BARE: Final = frozenset("BIESLUM")


@dataclass(frozen=True, slots=True)
class Slip:
    """A tag that contradicts the others.

    Attributes:
        sentence: index of the sentence.
        word: index of the word in it.
        reason: what is wrong and what to do.
    """

    sentence: int
    word: int
    reason: str


@dataclass(frozen=True, slots=True)
class SchemeFinding:
    """The scheme of a file.

    Attributes:
        name: the scheme; IO where there is no entity at all.
        parts: (prefix, type) of each word of each sentence; `("O", "")` outside.
        reason: why this scheme, in words.
        slips: sentences that contradict it too often to be forgiven; empty where all is well.
    """

    name: SchemeName
    parts: list[list[tuple[str, str]]]
    reason: str
    slips: tuple[Slip, ...] = ()


def find_scheme(sentences: Sequence[Sequence[str]]) -> SchemeFinding:
    """Find the scheme that the tags of all sentences follow.

    A few entities that begin against the scheme (up to 2 %) are read as the official CoNLL script
    reads them: a new entity. More are returned as slips.
    """
    tags = Counter(tag for sentence in sentences for tag in sentence)
    split, reason, wrong = _splitter(tags)
    parts = [[split[tag] for tag in sentence] for sentence in sentences]
    if wrong:
        slips = [
            Slip(number, word, wrong[tag])
            for number, sentence in enumerate(sentences)
            for word, tag in enumerate(sentence)
            if tag in wrong
        ]
        return SchemeFinding("IO", parts, reason, tuple(slips))
    prefixes = Counter[str]()
    for tag, count in tags.items():
        prefixes[split[tag][0]] += count
    used = set(prefixes) - {"O"}
    if reason:
        return SchemeFinding("IO", parts, reason)
    if used <= {"I"}:
        return SchemeFinding(
            "IO", parts, "IO: only I- tags (IOB1 without neighbours looks the same)"
        )
    closing = [pair for pair in (("ES", "IOBES"), ("LU", "BILOU")) if used & set(pair[0])]
    if len(closing) == 2:
        rare = min((prefixes[p], p) for p in used if p in "ESLU")[1]
        return SchemeFinding(
            "IOBES", parts, "IOBES and BILOU mixed",
            tuple(
                Slip(s, w, f"the prefix {rare}- does not go with the others in this file "
                     f"({', '.join(sorted(used))}): IOBES has E and S, BILOU has L and U; convert "
                     "the file to one scheme")
                for s, sentence in enumerate(parts) for w, part in enumerate(sentence)
                if part[0] == rare
            ),
        )  # fmt: skip
    if closing:
        return _closing_scheme(parts, "IOBES" if closing[0][1] == "IOBES" else "BILOU", used)
    return _opening_scheme(parts)


def entities(parts: Iterable[tuple[str, str]]) -> list[tuple[int, int, str]]:
    """Return the (first word, last word + 1, type) of the entities of one sentence.

    Never fails: what contradicts the scheme is read as the official CoNLL script reads it.
    """
    found: list[tuple[int, int, str]] = []
    start, current = 0, None
    count = 0
    for position, (prefix, kind) in enumerate(parts):
        count = position + 1
        if current is not None and (prefix in "OBSU" or kind != current):
            found.append((start, position, current))
            current = None
        if prefix == "O":
            continue
        if current is None:
            start, current = position, kind
        if prefix in "ESLU":
            found.append((start, count, current))
            current = None
    if current is not None:
        found.append((start, count, current))
    return found


def _splitter(
    tags: Counter[str],
) -> tuple[dict[str, tuple[str, str]], str, dict[str, str]]:
    """Return tag -> (prefix, type), the reason if the scheme is plain IO, and tag -> fault."""
    split: dict[str, tuple[str, str]] = {"O": ("O", "")}
    named = [tag for tag in tags if tag != "O"]
    bare = [tag for tag in named if tag in _BARE]
    pattern = _ANY_CASE if all(map(_ANY_CASE.fullmatch, named)) else _PREFIXED
    if named and len(bare) == len(named):
        split |= {tag: ("I" if tag == "M" else tag, ONLY_TYPE) for tag in named}
        return split, "", {}
    if any(map(pattern.fullmatch, named)):
        wrong: dict[str, str] = {}
        for tag in named:
            match = pattern.fullmatch(tag)
            if match is None:
                split[tag] = ("I", tag)
                wrong[tag] = (
                    f"the tag {tag!r:.60} is no O and has none of the prefixes B- I- E- S- L- U- M-, "
                    "which the other tags of this file have; correct it, or name the right column"
                )
            else:
                prefix = match[1].upper()
                split[tag] = ("I" if prefix == "M" else prefix, match[2])
        return split, "", wrong
    split |= {tag: ("I", tag) for tag in named}
    return split, "IO: the tags are bare types without B- or I-" if named else "no entities", {}


def _opening_scheme(parts: list[list[tuple[str, str]]]) -> SchemeFinding:
    """Tell IOB1 from IOB2 by how entities begin."""
    free_b: list[tuple[int, int]] = []
    free_i: list[tuple[int, int]] = []
    follows = 0
    for number, sentence in enumerate(parts):
        before = ("O", "")
        for position, (prefix, kind) in enumerate(sentence):
            goes_on = before[0] != "O" and before[1] == kind
            if prefix == "B":
                if goes_on:
                    follows += 1
                else:
                    free_b.append((number, position))
            elif prefix == "I" and not goes_on:
                free_i.append((number, position))
            before = (prefix, kind)
    total = len(free_b) + len(free_i) + follows
    if not free_i:
        return SchemeFinding("IOB2", parts, f"IOB2: all {total:,} entities begin with B-")
    if not free_b:
        text = f"IOB1: entities begin with I-, and {follows:,} right behind another with B-"
        return SchemeFinding("IOB1", parts, text)
    is_iob2 = len(free_b) >= len(free_i)
    odd = free_i if is_iob2 else free_b
    name: SchemeName = "IOB2" if is_iob2 else "IOB1"
    wrong, right = ("I-", "B-") if is_iob2 else ("B-", "I-")
    if len(odd) <= MAX_SLIP_FRACTION * total:
        text = (
            f"{name}: {total - len(odd):,} of {total:,} entities begin so; the others too are kept"
        )
        return SchemeFinding(name, parts, text)
    reason = (
        f"this entity begins with {wrong} behind a word that is no part of it, while "
        f"{total - len(odd):,} of {total:,} entities of this file follow {name}, where it would "
        f"begin with {right}; the file mixes schemes: correct the tag, or convert all to IOB2"
    )
    return SchemeFinding(name, parts, f"{name}, mixed", tuple(Slip(s, w, reason) for s, w in odd))


def _closing_scheme(
    parts: list[list[tuple[str, str]]], name: SchemeName, used: set[str]
) -> SchemeFinding:
    """Check tags whose scheme marks the last word too."""
    last, single = ("E", "S") if name == "IOBES" else ("L", "U")
    odd: list[Slip] = []
    total = 0
    for number, sentence in enumerate(parts):
        before = ("O", "")
        for position, part in enumerate([*sentence, ("O", "")]):
            is_inside = part[0] in ("I", last)
            was_open = before[0] in ("B", "I")
            total += part[0] in ("B", single)
            if was_open != is_inside or (is_inside and before[1] != part[1]):
                where = min(position, len(sentence) - 1)
                odd.append(
                    Slip(number, where,
                         f"{_spell(before)} is followed by {_spell(part)}, which {name} does not "
                         f"allow (B- begins, {last}- ends, {single}- stands alone); the file mixes "
                         "schemes: correct the tag, or convert all to IOB2")
                )  # fmt: skip
            before = part
    marks = ", ".join(f"{prefix}-" for prefix in sorted(used))
    if len(odd) <= MAX_SLIP_FRACTION * total:
        kept = f"; {len(odd)} tags against it are read as new entities" if odd else ""
        return SchemeFinding(name, parts, f"{name}: the tags have {marks}{kept}")
    return SchemeFinding(name, parts, f"{name}, mixed", tuple(odd))


def _spell(part: tuple[str, str]) -> str:
    return part[0] if part[0] == "O" else f"{part[0]}-{part[1]}"[:40]
