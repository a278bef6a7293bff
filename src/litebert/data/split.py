"""A deterministic, stratified train/eval split that never puts one text on both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from litebert.data.examples import Example
from litebert.errors import DataError, SettingsError

_NUM_BINS = 10
"""Regression labels are stratified over this many quantiles."""


def split_examples(
    examples: Sequence[Example], eval_fraction: float, seed: int
) -> tuple[list[Example], list[Example]]:
    """Split examples into train and eval, both in the given order.

    Examples with the same texts (up to case and spacing) stay together. Each class (label set for
    multi-label, quantile for numbers) gives about `eval_fraction` of its examples to eval and
    keeps at least one in train, if it has two different texts. The result depends on the
    examples, the fraction and the seed only.

    Args:
        examples: at least two with different texts.
        eval_fraction: fraction of examples for eval, in (0, 1).
        seed: non-negative.

    Raises:
        DataError: fewer than two different texts.
        SettingsError: `eval_fraction` or `seed` out of range.
    """
    if not 0.0 < eval_fraction < 1.0:
        raise SettingsError(f"eval_fraction is {eval_fraction}; allowed: more than 0, less than 1")
    if seed < 0:
        raise SettingsError(f"seed is {seed}; allowed: 0 and above")
    groups = _group_by_text(examples)
    if len(groups) < 2:
        raise DataError(
            f"{len(groups)} different texts cannot be split; give more rows or an eval file",
            path=examples[0].path if examples else None,
        )
    strata = _strata(examples, groups)
    chosen: set[int] = set()
    carried = 0.0
    rng = np.random.default_rng(np.random.SeedSequence([seed, len(examples)]))
    for members in strata:
        order = rng.permutation(len(members))
        total = sum(len(groups[index]) for index in members)
        wanted = eval_fraction * total + carried
        taken = 0
        for position in order[:-1]:  # the last group always stays in train
            size = len(groups[members[position]])
            if taken + size / 2 > wanted:
                break
            chosen.update(groups[members[position]])
            taken += size
        # What rounding left over is owed to the next class, so that tiny classes add up.
        carried = min(max(wanted - taken, -1.0), 1.0)
    if not chosen:
        # From a class that keeps an example in train, where there is one.
        shared = [index for members in strata if len(members) > 1 for index in members]
        smallest = min(shared or range(len(groups)), key=lambda index: (len(groups[index]), index))
        chosen.update(groups[smallest])
    train = [example for index, example in enumerate(examples) if index not in chosen]
    evaluation = [example for index, example in enumerate(examples) if index in chosen]
    return train, evaluation


def normalise_text(text: str) -> str:
    """Return a text in case-folded form with single spaces, to recognise duplicates."""
    return " ".join(text.casefold().split())


def text_key(example: Example) -> tuple[str, str]:
    """Return what two duplicate examples have in common."""
    return normalise_text(example.text), normalise_text(example.pair or "")


def _group_by_text(examples: Sequence[Example]) -> list[list[int]]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, example in enumerate(examples):
        groups[text_key(example)].append(index)
    return list(groups.values())


def _strata(examples: Sequence[Example], groups: list[list[int]]) -> list[list[int]]:
    """Return group indices by class, largest class first (ties by first appearance)."""
    labels = [examples[members[0]].label for members in groups]
    numbers = [label for label in labels if isinstance(label, float | int)]
    edges = (
        np.unique(np.quantile(np.asarray(numbers), np.linspace(0, 1, _NUM_BINS + 1)[1:-1]))
        if numbers
        else np.empty(0)
    )
    strata: dict[Hashable, list[int]] = defaultdict(list)
    for index, label in enumerate(labels):
        key = int(np.searchsorted(edges, label)) if isinstance(label, float | int) else label
        strata[key].append(index)
    return sorted(strata.values(), key=lambda members: (-len(members), members[0]))
