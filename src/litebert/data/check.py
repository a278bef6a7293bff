"""Everything that can be said about labelled data before training on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from litebert.data.examples import Example, Label, make_examples
from litebert.data.near_duplicates import find_near_duplicates
from litebert.data.report import DataReport, Lengths, Place, Problem, Severity
from litebert.data.rows import SkippedRow
from litebert.data.schema import Schema
from litebert.data.split import normalise_text, split_examples, text_key
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

RARE_ROWS = 10
"""A class with fewer training rows than this is rare."""
NEAR_SIMILARITY = 0.8
_MAX_TOKENIZED = 5000
_MAX_PLACES = 5
_MANY_FRACTION = 0.05
_SOME_FRACTION = 0.01
_DOMINANT_FRACTION = 0.95
_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


class EncodingLike(Protocol):
    """What is needed of an encoding."""

    ids: list[int]
    truncated: int


class TokenizerLike(Protocol):
    """What is needed of a tokenizer."""

    unk_id: int

    def encode_batch(
        self, texts: Sequence[str | tuple[str, str]], max_length: int | None = None
    ) -> Sequence[EncodingLike]:
        """Encode texts or pairs."""
        ...


def check_data(
    train: Table,
    evaluation: Table | None = None,
    *,
    schema: Schema,
    tokenizer: TokenizerLike | None = None,
    max_length: int = 128,
    eval_fraction: float = 0.1,
    split_seed: int = 0,
) -> DataReport:
    """Check labelled data: classes, duplicates, conflicts, leakage, truncation, unreadable rows.

    Args:
        train: training rows; read them with on_bad_row="skip" to have bad ones reported.
        evaluation: evaluation rows, or None to check the automatic split.
        schema: columns, kind and labels.
        tokenizer: measures lengths and unknown pieces; None leaves them out.
        max_length: tokens kept of one example, special ones included; 3 and above.
        eval_fraction: fraction that is split off without `evaluation`, in (0, 1).
        split_seed: seed of that split.

    Raises:
        DataError: no usable training row.
        SettingsError: `max_length` too small, or a column is missing.
    """
    if max_length < 3:
        raise SettingsError(f"max_length is {max_length}; allowed: 3 and above")
    skipped = [*train.skipped, *(evaluation.skipped if evaluation else ())]
    examples = make_examples(train, schema, "skip", skipped=skipped)
    if not examples:
        raise DataError(
            f"no usable rows; the first: {skipped[0].reason}", path=train.path, line=skipped[0].line
        )
    problems: list[Problem] = []
    all_examples = examples
    if evaluation is not None:
        held_out = make_examples(evaluation, schema, "skip", skipped=skipped)
    else:
        examples, held_out = _try_split(examples, eval_fraction, split_seed)
    _add_unreadable(skipped, problems)
    counts, eval_counts = _count(all_examples, schema), _count(held_out, schema)
    _add_classes(counts, eval_counts if evaluation else {}, len(all_examples), problems)
    exact, normalised, conflicts = _add_duplicates(all_examples, problems)
    leaked, near = _add_leakage(examples, held_out, problems)
    lengths = None
    if tokenizer is not None:
        lengths = _measure(all_examples, tokenizer, max_length)
        _add_lengths(lengths, problems)
    problems.sort(key=lambda problem: _RANK[problem.severity])
    return DataReport(
        kind=schema.kind,
        reasons=schema.reasons,
        num_train=len(examples),
        num_eval=len(held_out),
        eval_is_split=evaluation is None,
        class_counts=counts,
        eval_class_counts=eval_counts,
        num_unreadable=len(skipped),
        num_empty=sum("the text is empty" in row.reason for row in skipped),
        num_duplicates=exact,
        num_normalised_duplicates=normalised,
        num_conflicts=conflicts,
        num_leaked=leaked,
        num_near_leaked=near,
        majority_baseline=_majority(examples, held_out, schema),
        lengths=lengths,
        problems=tuple(problems),
    )


def _try_split(
    examples: list[Example], fraction: float, seed: int
) -> tuple[list[Example], list[Example]]:
    if len({text_key(example) for example in examples}) < 2:
        return examples, []
    return split_examples(examples, fraction, seed)


def _place(example: Example, detail: str) -> Place:
    return Place(str(example.path), example.line, detail)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _labels(label: Label | None) -> tuple[str, ...]:
    return label if isinstance(label, tuple) else (str(label),)


def _add_unreadable(skipped: Sequence[SkippedRow], problems: list[Problem]) -> None:
    if skipped:
        places = tuple(Place(str(r.path), r.line, r.reason) for r in skipped[:_MAX_PLACES])
        message = f"{len(skipped):,} rows cannot be used; fix them or train with --on-bad-row skip"
        problems.append(Problem("error", "unreadable_rows", message, len(skipped), places))


def _count(examples: Sequence[Example], schema: Schema) -> dict[str, int]:
    if schema.kind == "regression":
        return {}
    counts = dict.fromkeys(schema.labels, 0)
    for example in examples:
        for name in _labels(example.label):
            counts[name] += 1
    return counts


def _add_classes(
    counts: dict[str, int], eval_counts: dict[str, int], num_rows: int, problems: list[Problem]
) -> None:
    def add(severity: Severity, code: str, names: list[str], message: str) -> None:
        if names:
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            problems.append(Problem(severity, code, f"{message}: {shown}", len(names)))

    untrained = [name for name, count in counts.items() if not count]
    rare = [f"{name} ({count})" for name, count in counts.items() if 0 < count < RARE_ROWS]
    unscored = [name for name, count in eval_counts.items() if not count and counts[name]]
    dominant = [n for n, count in counts.items() if count > _DOMINANT_FRACTION * num_rows]
    spellings: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        spellings[normalise_text(name)].append(name)
    similar = [" = ".join(names) for names in spellings.values() if len(names) > 1]
    add("warning", "similar_labels", similar, "labels that differ in case or spacing only")
    add("error", "untrained_classes", untrained, "classes without a training row")
    add("warning", "rare_classes", rare, f"classes with fewer than {RARE_ROWS} training rows")
    add("warning", "unscored_classes", unscored, "classes that the evaluation rows never have")
    add("warning", "dominant_class", dominant, "nearly all training rows have one label")


def _add_duplicates(examples: Sequence[Example], problems: list[Problem]) -> tuple[int, int, int]:
    exact = len(examples) - len({(example.text, example.pair) for example in examples})
    groups: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for example in examples:
        groups[text_key(example)].append(example)
    normalised = len(examples) - len(groups)
    clashing = [g for g in groups.values() if len({example.label for example in g}) > 1]
    conflicts = sum(map(len, clashing))
    if clashing:
        places = tuple(
            _place(g[0], f"{_short(g[0].text)!r} is {_show_labels(g)}")
            for g in clashing[:_MAX_PLACES]
        )
        many = conflicts > _MANY_FRACTION * len(examples)
        message = f"{conflicts:,} rows have the same text as another row but another label"
        severity: Severity = "error" if many else "warning"
        problems.append(Problem(severity, "conflicting_labels", message, conflicts, places))
    if normalised:
        repeated = [g for g in groups.values() if len(g) > 1][:_MAX_PLACES]
        places = tuple(
            _place(g[1], f"as line {g[0].line}: {_short(g[0].text)!r}") for g in repeated
        )
        message = f"{normalised:,} training rows repeat an earlier text"
        severity = "warning" if normalised > _SOME_FRACTION * len(examples) else "note"
        problems.append(Problem(severity, "duplicates", message, normalised, places))
    return exact, normalised, conflicts


def _show_labels(group: Sequence[Example]) -> str:
    seen: dict[str, int] = {}
    for example in group:
        seen.setdefault("+".join(_labels(example.label)) or "no label", example.line)
    return ", ".join(f"{name!r} in line {line}" for name, line in list(seen.items())[:3])


def _add_leakage(
    train: Sequence[Example], held_out: Sequence[Example], problems: list[Problem]
) -> tuple[int, int]:
    first: dict[tuple[str, str], Example] = {}
    for example in train:
        first.setdefault(text_key(example), example)
    leaked = [example for example in held_out if text_key(example) in first]
    if leaked:
        places = tuple(
            _place(example, f"is training line {first[text_key(example)].line}")
            for example in leaked[:_MAX_PLACES]
        )
        message = f"{len(leaked):,} evaluation rows are also training rows; remove them from one"
        problems.append(Problem("error", "leakage", message, len(leaked), places))
    fresh = [example for example in held_out if text_key(example) not in first]
    references = list(first.values())
    near = find_near_duplicates(
        [" / ".join(text_key(example)) for example in fresh],
        [" / ".join(text_key(example)) for example in references],
        threshold=NEAR_SIMILARITY,
    )
    if near:
        near.sort(key=lambda found: (-found.similarity, found.index))
        places = tuple(
            _place(
                fresh[found.index],
                f"{found.similarity:.0%} as training line {references[found.other].line}: "
                f"{_short(references[found.other].text)!r}",
            )
            for found in near[:_MAX_PLACES]
        )
        severity: Severity = "error" if len(near) > _MANY_FRACTION * len(held_out) else "warning"
        message = (
            f"{len(near):,} evaluation rows are almost a training row "
            f"(similarity {NEAR_SIMILARITY} and above)"
        )
        problems.append(Problem(severity, "near_leakage", message, len(near), places))
    return len(leaked), len(near)


def _majority(
    train: Sequence[Example], held_out: Sequence[Example], schema: Schema
) -> dict[str, float]:
    """Score, on the evaluation rows, the constant answer that is best on the training rows."""
    scored = held_out or train
    if schema.kind == "regression":
        numbers = np.asarray([e.label for e in train], np.float64)
        truth = np.asarray([e.label for e in scored], np.float64)
        return {"mae": float(np.abs(truth - np.median(numbers)).mean())}
    top, _ = min(Counter(e.label for e in train).items(), key=lambda c: (-c[1], str(c[0])))
    score = sum(e.label == top for e in scored) / len(scored)
    return {"subset_accuracy" if schema.kind == "multilabel" else "accuracy": score}


def _measure(examples: Sequence[Example], tokenizer: TokenizerLike, max_length: int) -> Lengths:
    step = -(-len(examples) // _MAX_TOKENIZED)
    sample = examples[::step]
    texts = [e.text if e.pair is None else (e.text, e.pair) for e in sample]
    encodings = tokenizer.encode_batch(texts, max_length)
    kept = np.asarray([len(encoding.ids) for encoding in encodings])
    lost = np.asarray([encoding.truncated for encoding in encodings])
    unknown = sum(encoding.ids.count(tokenizer.unk_id) for encoding in encodings)
    whole = kept + lost
    return Lengths(
        sampled=len(sample),
        mean=float(whole.mean()),
        median=float(np.median(whole)),
        p95=float(np.quantile(whole, 0.95)),
        longest=int(whole.max()),
        max_length=max_length,
        truncated_fraction=float((lost > 0).mean()),
        lost_fraction=float(lost.sum() / whole.sum()),
        unknown_fraction=float(unknown / kept.sum()),
    )


def _add_lengths(lengths: Lengths, problems: list[Problem]) -> None:
    if lengths.truncated_fraction > _MANY_FRACTION:
        message = (
            f"{lengths.truncated_fraction:.1%} of the texts are longer than {lengths.max_length} "
            f"tokens; 95 % fit in {lengths.p95:.0f} (`litebert train --long-texts windows` reads all of them)"
        )
        count = round(lengths.truncated_fraction * lengths.sampled)
        problems.append(Problem("warning", "truncation", message, count))
    if lengths.unknown_fraction > _SOME_FRACTION:
        message = (
            f"{lengths.unknown_fraction:.1%} of the pieces are unknown to the tokenizer; "
            "train a vocabulary on this kind of text"
        )
        problems.append(Problem("warning", "unknown_pieces", message, lengths.sampled))
