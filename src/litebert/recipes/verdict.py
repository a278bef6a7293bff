"""A plain sentence about a score: does the model beat the simple ones, and by more than noise?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

from litebert.tasks.baselines import MAJORITY, TFIDF
from litebert.tasks.scores import SCORES, is_better

if TYPE_CHECKING:
    from litebert.recipes.summary import BaselineScore, RunSummary

__all__ = ["BASELINE_NAMES", "Verdict", "format_score", "judge", "readable", "score_noise"]

Level = Literal["good", "unclear", "bad", "unknown"]

BASELINE_NAMES: Final = {
    MAJORITY: "constant answer",
    TFIDF: "bag of words",
    "word_majority": "usual tag of each word",
    "first_sentence": "first sentence",
    "overlap": "overlap of words",
    "no_answer": "answer that there is none",
    "longest": "longest choice",
}
"""Simple answers in words; others go by their own name."""
_PERCENT: Final = frozenset(
    name
    for name, score in SCORES.items()
    if name not in ("pearson", "spearman", "pearson_spearman", "matthews", "r2", "ece")
    and score.higher_is_better
)
_SPOKEN: Final = {
    "ece": "Calibration error", "mse": "Squared error", "mae": "Absolute error", "r2": "R²",
    "pearson_spearman": "Pearson and Spearman",
}  # fmt: skip
_TWO_SIDED_95: Final = 1.96


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a run."""

    level: Level
    headline: str
    """A few words."""
    sentence: str
    """One or two sentences with the numbers."""


def format_score(name: str, value: float) -> str:
    """Return a score the way people write it: shares in percent, the rest with three decimals."""
    return f"{100 * value:.1f} %" if name in _PERCENT else f"{value:.3f}"


def score_noise(name: str, value: float, count: int) -> float | None:
    """Return half the 95 % interval of a share measured on `count` examples, in [0, 1].

    None for scores that are no plain share of examples, or without examples.
    """
    if name not in ("accuracy", "f1_micro", "subset_accuracy") or count < 1:
        return None
    return _TWO_SIDED_95 * math.sqrt(max(value * (1 - value), 0.25 / count) / count)


def judge(summary: RunSummary) -> Verdict:
    """Compare the main score with every baseline of the run."""
    name, count = summary.metric, summary.evaluated
    value = summary.scores.get(name)
    if value is None:
        return Verdict("unknown", "No score", f"The run has no {name}, so it cannot be judged.")
    score = f"{readable(name)} {format_score(name, value)} on {count:,} examples"
    if not _comparable(summary):
        return Verdict(
            "unknown",
            "Not compared",
            f"{score}. No baseline was computed, so it is not known whether that is good.",
        )
    lost = [item for item in summary.baselines if not _beats(summary, item)]
    higher = SCORES[name].higher_is_better
    *firsts, last = [_named(name, item) for item in summary.baselines]
    others = f"{', '.join(firsts)} and {last}" if firsts else last
    if any(item.name == MAJORITY for item in lost):
        return Verdict(
            "bad",
            "Learned nothing useful",
            f"{score}; {others}. An answer that never changes does as well: do not use this model. "
            "Check the labels, train longer, or lower the learning rate.",
        )
    if lost:
        is_tie = all(item.scores[name] == value for item in lost)
        winner = max(lost, key=lambda item: item.scores[name] if higher else -item.scores[name])
        spoken = BASELINE_NAMES.get(winner.name, winner.name)
        other = f"{'a' if winner.name == TFIDF else 'the'} {spoken}"
        return Verdict(
            "bad",
            f"No better than {other}" if is_tie else f"Loses to {other}",
            f"{score}; {others}. The simple model is {'as good' if is_tie else 'better'} and far "
            f"cheaper: use it, or {_remedy(summary)}.",
        )
    luck = _lost_by_median(summary)
    if luck is not None:
        return Verdict(
            "unclear",
            "Ahead with the best seed only",
            f"{score}; {others}. The median of {len(summary.seeds)} seeds gets "
            f"{format_score(name, luck)}, so the lead is the luck of one seed: "
            f"{_remedy(summary)}.",
        )
    noise = score_noise(name, value, count)
    strongest = min(abs(value - item.scores[name]) for item in _comparable(summary))
    if noise is not None and strongest <= noise:
        return Verdict(
            "unclear",
            "Ahead, within the noise",
            f"{score}; {others}. The lead is smaller than the uncertainty of {count:,} examples "
            f"(plus or minus {100 * noise:.1f} points): more evaluation data would tell.",
        )
    return Verdict("good", "Beats the baselines", f"{score}; {others}.")


def _remedy(summary: RunSummary) -> str:
    if summary.model.is_pretrained:
        return "train longer, or bring more data"
    return "start from pretrained weights, or bring more data"


def _comparable(summary: RunSummary) -> list[BaselineScore]:
    return [item for item in summary.baselines if summary.metric in item.scores]


def _beats(summary: RunSummary, item: BaselineScore) -> bool:
    other = item.scores.get(summary.metric)
    return other is None or is_better(summary.metric, summary.scores[summary.metric], other)


def _lost_by_median(summary: RunSummary) -> float | None:
    """Return the median of the seeds where it does not beat every baseline, else None."""
    if len(summary.seeds) < 2:
        return None
    typical = median(item.score for item in summary.seeds)
    others = [item.scores[summary.metric] for item in _comparable(summary)]
    is_ahead = all(is_better(summary.metric, typical, other) for other in others)
    return None if is_ahead else typical


def _named(metric: str, item: BaselineScore) -> str:
    value = item.scores.get(metric)
    shown = "no such score" if value is None else format_score(metric, value)
    return f"the {BASELINE_NAMES.get(item.name, item.name)} gets {shown}"


def readable(metric: str) -> str:
    """Return a score name for people: "f1_macro" becomes "F1 macro"."""
    if metric in _SPOKEN:
        return _SPOKEN[metric]
    text = metric.replace("_", " ").replace("f1", "F1")
    return text[:1].upper() + text[1:]
