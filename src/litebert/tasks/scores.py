"""The names of all scores: which kind of task has them, and whether higher is better."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from litebert.data.kinds import Kind
from litebert.errors import SettingsError

__all__ = ["DEFAULT_SCORE", "SCORES", "Score", "canonical_score", "is_better"]


@dataclass(frozen=True, slots=True)
class Score:
    """One score: what it says, for which kinds it exists, which direction is good."""

    meaning: str
    kinds: tuple[Kind, ...]
    higher_is_better: bool = True


_SINGLE: Final[tuple[Kind, ...]] = ("binary", "multiclass")
_CLASSES: Final[tuple[Kind, ...]] = ("binary", "multiclass", "multilabel")

SCORES: Final[dict[str, Score]] = {
    "accuracy": Score("share of examples answered right", _SINGLE),
    "balanced_accuracy": Score("mean recall over classes", _SINGLE),
    "f1": Score("F1 of the second class; of the words of answers, for questions", ("binary",)),
    "precision": Score("precision of the second class", ("binary",)),
    "recall": Score("recall of the second class", ("binary",)),
    "f1_macro": Score("mean F1 over classes", _CLASSES),
    "f1_micro": Score("F1 over all decisions together", _CLASSES),
    "f1_weighted": Score("F1 weighted by class size", _SINGLE),
    "f1_samples": Score("mean F1 over examples", ("multilabel",)),
    "precision_micro": Score("precision over all decisions together", ("multilabel",)),
    "recall_micro": Score("recall over all decisions together", ("multilabel",)),
    "subset_accuracy": Score("share of examples with every label right", ("multilabel",)),
    "label_accuracy": Score("share of single yes/no decisions right", ("multilabel",)),
    "matthews": Score("Matthews correlation", _SINGLE),
    "pearson": Score("linear correlation", ("regression",)),
    "spearman": Score("rank correlation", ("regression",)),
    "pearson_spearman": Score("mean of Pearson and Spearman", ("regression",)),
    "r2": Score("share of variance explained", ("regression",)),
    "mse": Score("mean squared error", ("regression",), higher_is_better=False),
    "mae": Score("mean absolute error", ("regression",), higher_is_better=False),
    "log_loss": Score("mean negative log-probability, nats", _CLASSES, higher_is_better=False),
    "ece": Score("expected calibration error", _CLASSES, higher_is_better=False),
    "accuracy_at_1": Score("share of anchors whose nearest text is a right one", ()),
    "mrr_at_10": Score("mean of 1 / rank of the right text, 0 beyond rank 10", ()),
    "accuracy_mismatched": Score("accuracy on texts of other sources than trained on (MNLI)", ()),
    "accuracy_middle": Score("accuracy on RACE's middle school questions", ()),
    "accuracy_high": Score("accuracy on RACE's high school questions", ()),
    "accuracy_challenge": Score("accuracy on ARC's challenge set", ()),
    "accuracy_easy": Score("accuracy on ARC's easy set", ()),
    "token_accuracy": Score("share of words with the right tag", ()),
    "entity_f1": Score("F1 of entities, start, end and type all right", ()),
    "entity_precision": Score("share of answered entities that are right", ()),
    "entity_recall": Score("share of true entities that were answered", ()),
    "entity_f1_macro": Score("mean F1 over entity types", ()),
    "entity_f1_weighted": Score("F1 of entity types weighted by their number", ()),
    "sentence_accuracy": Score("share of texts with intent and all slots right", ()),
    "intent_accuracy": Score("share of texts with the right intent", ()),
    "slot_f1": Score("F1 of slots, start, end and type all right", ()),
    "slot_precision": Score("share of answered slots that are right", ()),
    "slot_recall": Score("share of true slots that were answered", ()),
    "slot_f1_macro": Score("mean F1 over slot types", ()),
    "slot_f1_weighted": Score("F1 of slot types weighted by their number", ()),
    "slot_token_accuracy": Score("share of words with the right slot tag", ()),
    "exact": Score("share of answers that are right word for word", ()),
    "f1_characters": Score("F1 of the characters of answers", ()),
    "HasAns_exact": Score("exact, of questions that have an answer", ()),
    "HasAns_f1": Score("F1, of questions that have an answer", ()),
    "NoAns_exact": Score("share of questions without answer that got none", ()),
    "NoAns_f1": Score("share of questions without answer that got none", ()),
    "best_exact": Score("exact with the threshold that is best for it", ()),
    "best_f1": Score("F1 with the threshold that is best for it", ()),
    "unfiltered_f1": Score("F1, also of questions that people disagree on", ()),
    "human_f1": Score("F1 of one person's answers against the others'", ()),
    "heq_q": Score("share of questions answered no worse than by a person", ()),
    "heq_d": Score("share of dialogues with every question answered no worse than by a person", ()),
    "yes_no": Score("share of questions with the right yes, no or neither", ()),
    "followup": Score("share of questions with the right hint what to ask next", ()),
    "unanswerable_accuracy": Score("share of questions without answer that got none", ()),
    "in_domain_f1": Score("F1 on stories of the kinds that were trained on", ()),
    "out_domain_f1": Score("F1 on stories of other kinds", ()),
    "children_stories_f1": Score("F1 on stories for children", ()),
    "literature_f1": Score("F1 on literature", ()),
    "mid-high_school_f1": Score("F1 on school texts", ()),
    "news_f1": Score("F1 on news", ()),
    "wikipedia_f1": Score("F1 on articles of Wikipedia", ()),
    "science_f1": Score("F1 on texts about science", ()),
    "reddit_f1": Score("F1 on posts of Reddit", ()),
}

DEFAULT_SCORE: Final[dict[Kind, str]] = {
    "binary": "accuracy",
    "multiclass": "accuracy",
    "multilabel": "f1_micro",
    "regression": "pearson_spearman",
}

_ALIASES: Final = {
    "acc": "accuracy",
    "macro_f1": "f1_macro",
    "micro_f1": "f1_micro",
    "weighted_f1": "f1_weighted",
    "mcc": "matthews",
    "matthews_correlation": "matthews",
    "pearsonr": "pearson",
    "spearmanr": "spearman",
    "loss": "log_loss",
    "exact_match": "subset_accuracy",
}


def canonical_score(name: str, kind: Kind) -> str:
    """Return the one spelling of a score name, after checking that this kind of task has it.

    Raises:
        SettingsError: unknown score, or one that the kind does not have.
    """
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    plain = _ALIASES.get(plain, plain)
    allowed = [key for key, score in SCORES.items() if kind in score.kinds]
    if plain in allowed:
        return plain
    near = get_close_matches(plain, allowed, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise SettingsError(
        f"metric {name!r} does not exist for {kind} labels; {hint}known: {', '.join(allowed)}"
    )


def is_better(name: str, new: float, old: float) -> bool:
    """Return whether `new` is strictly better than `old` for the score called `name`.

    Raises:
        SettingsError: unknown score.
    """
    if name not in SCORES:
        raise SettingsError(f"unknown metric {name!r}; known: {', '.join(SCORES)}")
    return new > old if SCORES[name].higher_is_better else new < old
