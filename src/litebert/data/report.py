"""The result of a data check: numbers, problems by severity, and both as text and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row is.

    Attributes:
        path: file.
        line: 1-based line or record number.
        detail: what is wrong there.
    """

    path: str
    line: int
    detail: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a person should know about the data.

    Attributes:
        severity: "error" (results cannot be trusted), "warning" or "note".
        code: stable short name.
        message: what was found and what to do.
        count: rows (or classes) concerned.
        places: some of them.
    """

    severity: Severity
    code: str
    message: str
    count: int
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Lengths:
    """Token lengths of the examples, special tokens included.

    Attributes:
        sampled: examples that were tokenized.
        mean: mean number of tokens before cutting.
        median: median of the same.
        p95: 95th percentile.
        longest: largest.
        max_length: tokens kept of one example.
        truncated_fraction: fraction of examples that are cut, in [0, 1].
        lost_fraction: fraction of all tokens that are cut off, in [0, 1].
        unknown_fraction: fraction of kept pieces that are unknown, in [0, 1].
    """

    sampled: int
    mean: float
    median: float
    p95: float
    longest: int
    max_length: int
    truncated_fraction: float
    lost_fraction: float
    unknown_fraction: float


@dataclass(frozen=True, slots=True)
class DataReport:
    """What `check_data` found.

    Attributes:
        kind: kind of task.
        reasons: why columns and kind were chosen.
        num_train: usable training rows.
        num_eval: usable evaluation rows.
        eval_is_split: the evaluation rows were split off the training rows.
        class_counts: label -> training rows (labels of a multi-label row count each).
        eval_class_counts: the same for evaluation rows.
        num_unreadable: rows that cannot be used, both files together.
        num_empty: those of them whose text is empty.
        num_duplicates: training rows whose texts occurred before, exactly.
        num_normalised_duplicates: the same up to case and spacing, exact ones included.
        num_conflicts: training rows whose texts occur with another label too.
        num_leaked: evaluation rows whose texts are in train, up to case and spacing.
        num_near_leaked: further evaluation rows that are almost in train.
        majority_baseline: score of always answering the same; metric -> value.
        lengths: token lengths, None without a tokenizer.
        problems: worst first.
    """

    kind: str
    reasons: tuple[str, ...]
    num_train: int
    num_eval: int
    eval_is_split: bool
    class_counts: dict[str, int]
    eval_class_counts: dict[str, int]
    num_unreadable: int
    num_empty: int
    num_duplicates: int
    num_normalised_duplicates: int
    num_conflicts: int
    num_leaked: int
    num_near_leaked: int
    majority_baseline: dict[str, float]
    lengths: Lengths | None = None
    problems: tuple[Problem, ...] = field(default=())

    @property
    def is_clean(self) -> bool:
        """Whether no problem is an error."""
        return not any(problem.severity == "error" for problem in self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able mapping with a format version."""
        return {"format_version": 1, "is_clean": self.is_clean, **asdict(self)}

    def to_text(self) -> str:
        """Return the report for a person, in lines."""
        lines = [f"because    {reason}" for reason in self.reasons]
        lines += [
            f"rows       {self.num_train:,} to train on, {self.num_eval:,} to score on"
            + (" (split off)" if self.eval_is_split else ""),
            f"unreadable {self.num_unreadable:,} ({self.num_empty:,} without text)",
            f"duplicates {self.num_duplicates:,} exact, {self.num_normalised_duplicates:,} up to "
            f"case and spacing; {self.num_conflicts:,} rows with conflicting labels",
            f"leakage    {self.num_leaked:,} scored rows are in train, {self.num_near_leaked:,} "
            "more almost",
        ]
        lines += [
            f"baseline   {name} {value:.3f}" for name, value in self.majority_baseline.items()
        ]
        if self.class_counts:
            ranked = sorted(self.class_counts.items(), key=lambda item: (-item[1], item[0]))
            shown = ranked if len(ranked) <= 12 else [*ranked[:6], ("...", 0), *ranked[-5:]]
            width = max(len(name) for name, _ in shown)
            lines.append(f"classes    {len(ranked):,}")
            for name, count in shown:
                lines.append(f"  {name:<{width}} {count:>8,}" if name != "..." else "  ...")
        if self.lengths is not None:
            size = self.lengths
            lines.append(
                f"tokens     median {size.median:.0f}, 95 % up to {size.p95:.0f}, longest "
                f"{size.longest:,}; at {size.max_length} tokens {size.truncated_fraction:.1%} of "
                f"the texts and {size.lost_fraction:.1%} of the tokens are cut; "
                f"{size.unknown_fraction:.2%} of the pieces are unknown"
            )
        for problem in self.problems:
            lines.append(f"{problem.severity:<10} {problem.message}")
            lines += [f"  {p.path}:{p.line}: {p.detail}" for p in problem.places]
        lines.append("no errors" if self.is_clean else "errors were found")
        return "\n".join(lines)
