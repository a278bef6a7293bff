"""Score names: one spelling, checked against the kind, with a direction."""

from __future__ import annotations

import pytest

from litebert.errors import SettingsError
from litebert.tasks.scores import DEFAULT_SCORE, SCORES, canonical_score, is_better


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("Accuracy", "binary", "accuracy"),
        ("macro-F1", "multiclass", "f1_macro"),
        ("mcc", "binary", "matthews"),
        ("spearmanr", "regression", "spearman"),
        ("micro f1", "multilabel", "f1_micro"),
    ],
)
def test_other_spellings_are_understood(name, kind, expected):
    assert canonical_score(name, kind) == expected


def test_every_default_exists_for_its_kind():
    for kind, name in DEFAULT_SCORE.items():
        assert canonical_score(name, kind) == name


def test_a_score_of_another_kind_is_refused_with_the_known_ones():
    with pytest.raises(SettingsError, match="'pearson' does not exist for binary labels"):
        canonical_score("pearson", "binary")
    with pytest.raises(SettingsError, match="did you mean 'accuracy'"):
        canonical_score("acuracy", "multiclass")


def test_direction():
    assert is_better("accuracy", 0.9, 0.8) and not is_better("accuracy", 0.8, 0.8)
    assert is_better("mse", 0.1, 0.2) and not is_better("mse", 0.3, 0.2)
    with pytest.raises(SettingsError, match="unknown metric 'beauty'"):
        is_better("beauty", 1, 0)


def test_every_score_says_what_it_means():
    assert all(score.meaning for score in SCORES.values())
