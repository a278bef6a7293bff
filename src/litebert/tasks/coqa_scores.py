"""The official scores of CoQA, as shares in [0, 1] instead of percent.

Source: the published `evaluate-v1.0.py` of CoQA, in words in many places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from litebert.tasks.squad_scores import best_over, exact, f1_or_empty

__all__ = ["DOMAINS", "coqa_scores", "turn_score"]

DOMAINS: Final = {
    "mctest": "children_stories",
    "gutenberg": "literature",
    "race": "mid-high_school",
    "cnn": "news",
    "wikipedia": "wikipedia",
    "science": "science",
    "reddit": "reddit",
}
"""Source of a story -> name of its domain in the scores."""
OUT_OF_DOMAIN: Final = frozenset({"science", "reddit"})
"""Sources that no training story comes from."""


def turn_score(score: Callable[[str, str], float], golds: Sequence[str], prediction: str) -> float:
    """Return the mean, over references left out, of the best score against the others.

    With one reference it is the score against that.
    """
    if len(golds) <= 1:
        return best_over(score, golds, prediction)
    scores = [score(gold, prediction) for gold in golds]
    best = [max(scores[:i] + scores[i + 1 :]) for i in range(len(scores))]
    return sum(best) / len(best)


def coqa_scores(
    golds: Sequence[Sequence[str]], predictions: Sequence[str], sources: Sequence[str]
) -> dict[str, float]:
    """Return the scores of CoQA: overall, in and out of domain, and F1 of each domain there is.

    Args:
        golds: reference answers of each turn.
        predictions: one for each turn.
        sources: source of each turn's story, such as the keys of `DOMAINS`.
    """
    f1 = [turn_score(f1_or_empty, g, p) for g, p in zip(golds, predictions, strict=True)]
    same = [turn_score(exact, g, p) for g, p in zip(golds, predictions, strict=True)]
    result = {"f1": _mean(f1), "exact": _mean(same)}
    inside = [x for x, source in zip(f1, sources, strict=True) if source not in OUT_OF_DOMAIN]
    outside = [x for x, source in zip(f1, sources, strict=True) if source in OUT_OF_DOMAIN]
    for name, values in (("in_domain_f1", inside), ("out_domain_f1", outside)):
        if values:
            result[name] = _mean(values)
    for source, domain in DOMAINS.items():
        values = [x for x, other in zip(f1, sources, strict=True) if other == source]
        if values:
            result[f"{domain}_f1"] = _mean(values)
    return result


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
