"""The official scores of SQuAD 1.1 and 2.0, as shares in [0, 1] instead of percent.

Source: the published `evaluate-v1.1.py` and `evaluate-v2.0.py`, in words in many places.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

__all__ = [
    "answer_words",
    "best_over",
    "best_threshold",
    "character_f1",
    "exact",
    "f1_or_empty",
    "normalize_answer",
    "squad_scores",
    "squad_v2_scores",
    "word_f1",
]

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=1 << 16)
def normalize_answer(text: str) -> str:
    """Return a text in lower case without ASCII punctuation, articles and needless white space."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def answer_words(text: str) -> list[str]:
    """Return the words of a normalised answer."""
    return normalize_answer(text).split()


def exact(gold: str, prediction: str) -> float:
    """Return whether both are the same when normalised."""
    return float(normalize_answer(gold) == normalize_answer(prediction))


def word_f1(gold: str, prediction: str) -> float:
    """Return the F1 of the words in common; 0 if there are none, also for two empty texts."""
    return _bag_f1(answer_words(gold), answer_words(prediction))


def f1_or_empty(gold: str, prediction: str) -> float:
    """Return the F1 of SQuAD 2.0: 1 for two texts without words, 0 if only one is without."""
    a, b = answer_words(gold), answer_words(prediction)
    return float(a == b) if not a or not b else _bag_f1(a, b)


def character_f1(gold: str, prediction: str) -> float:
    """Return the F1 of the characters in common, for scripts without blanks between words."""
    a, b = normalize_answer(gold).replace(" ", ""), normalize_answer(prediction).replace(" ", "")
    return float(a == b) if not a or not b else _bag_f1(list(a), list(b))


def _bag_f1(gold: list[str], prediction: list[str]) -> float:
    common = sum((Counter(gold) & Counter(prediction)).values())
    if not common:
        return 0.0
    precision, recall = common / len(prediction), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def best_over(score: Callable[[str, str], float], golds: Sequence[str], prediction: str) -> float:
    """Return the best score over the reference answers; 0 if there are none."""
    return max((score(gold, prediction) for gold in golds), default=0.0)


def squad_scores(golds: Sequence[Sequence[str]], predictions: Sequence[str]) -> dict[str, float]:
    """Return exact match and F1 of SQuAD 1.1, means over all questions.

    Args:
        golds: reference answers of each question.
        predictions: one for each question.
    """
    pairs = list(zip(golds, predictions, strict=True))
    return {
        "exact": _mean([best_over(exact, several, text) for several, text in pairs]),
        "f1": _mean([best_over(word_f1, several, text) for several, text in pairs]),
    }


def squad_v2_scores(
    golds: Sequence[Sequence[str]],
    predictions: Sequence[str],
    null_scores: Sequence[float],
    threshold: float,
) -> dict[str, float]:
    """Return the scores of SQuAD 2.0.

    Args:
        golds: reference answers of each question, none where there is no answer.
        predictions: the best answer that is not empty, for each question.
        null_scores: how likely it is that there is no answer; any scale.
        threshold: above it a prediction counts as no answer.

    Returns:
        exact, f1, both for questions with (HasAns_) and without an answer (NoAns_), if there are
        such, and the best over all thresholds (best_exact, best_f1) with their thresholds.
    """
    has_answer = [bool(several) for several in golds]
    known = [[gold for gold in several if normalize_answer(gold)] or [""] for several in golds]
    scores: dict[str, float] = {}
    best: dict[str, float] = {}
    for name, score in (("exact", exact), ("f1", f1_or_empty)):
        raw = [best_over(score, g, text) for g, text in zip(known, predictions, strict=True)]
        final = [
            float(not has) if null > threshold else value
            for value, null, has in zip(raw, null_scores, has_answer, strict=True)
        ]
        scores[name] = _mean(final)
        for prefix, wanted in (("HasAns", True), ("NoAns", False)):
            part = [value for value, has in zip(final, has_answer, strict=True) if has is wanted]
            if part:
                scores[f"{prefix}_{name}"] = _mean(part)
        top, where = best_threshold(raw, null_scores, has_answer, predictions)
        best |= {f"best_{name}": top, f"best_{name}_thresh": where}
    return scores | best


def best_threshold(
    scores: Sequence[float],
    null_scores: Sequence[float],
    has_answer: Sequence[bool],
    predictions: Sequence[str],
) -> tuple[float, float]:
    """Return the best mean score over thresholds, and the first threshold that gives it.

    Args:
        scores: of each prediction, taken as an answer.
        null_scores: how likely it is that there is no answer.
        has_answer: whether there is one.
        predictions: the predictions.

    The threshold is 0 where to answer nothing is best. As officially, questions of equal null score
    are counted one after the other.
    """
    current = best = float(sum(not has for has in has_answer))
    threshold = 0.0
    for i in sorted(range(len(scores)), key=lambda k: null_scores[k]):
        if has_answer[i]:
            current += scores[i]
        elif predictions[i]:
            current -= 1.0
        if current > best:
            best, threshold = current, float(null_scores[i])
    return best / max(1, len(scores)), threshold


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
