"""The constant answer is the best constant; the bag of words learns what words can tell."""

from __future__ import annotations

import builtins
import importlib
from pathlib import Path

import numpy as np
import pytest

from litebert.data.examples import Example
from litebert.errors import DataError, MissingDependencyError
from litebert.tasks.bag_of_words import TextFeatures
from litebert.tasks.baselines import majority_baseline, tfidf_baseline
from litebert.tasks.classification import SequenceClassification

GOOD = ["the soup was lovely", "lovely quiet room", "friendly waiter, lovely soup",
        "warm bread and lovely tea", "a friendly, quiet place"]  # fmt: skip
BAD = ["the soup was cold", "cold noisy room", "rude waiter, cold soup",
       "stale bread and cold tea", "a rude, noisy place"]  # fmt: skip


def examples(texts, labels, pairs=None):
    pairs = pairs or [None] * len(texts)
    return [
        Example(text=t, pair=p, label=y, path=Path("menu.csv"), line=i + 2)
        for i, (t, p, y) in enumerate(zip(texts, pairs, labels, strict=True))
    ]


def made(kind, train, **options):
    return SequenceClassification.from_examples(kind, train, **options)


REVIEWS = examples(GOOD + BAD, ["good"] * 5 + ["bad"] * 5)


def test_the_most_frequent_class_is_answered():
    train = examples(["x"] * 4, ["b", "b", "a", "b"])
    evaluation = examples(["x"] * 4, ["b", "a", "a", "b"])
    got = majority_baseline(made("binary", train), train, evaluation)
    assert got.scores["accuracy"] == 0.5
    assert got.scores["matthews"] == 0.0
    # The entropy of the training shares, seen from the evaluation labels.
    assert got.scores["log_loss"] == pytest.approx(-np.log([0.75, 0.25]).mean())
    assert got.method == "always the most frequent class" and got.seconds >= 0


def test_the_mean_is_answered_in_regression():
    train, evaluation = examples(["x"] * 2, [1.0, 3.0]), examples(["x"] * 2, [2.0, 4.0])
    got = majority_baseline(made("regression", train), train, evaluation)
    assert got.scores["mae"] == pytest.approx(1.0)
    assert got.scores["pearson"] == 0.0


def test_several_labels_answer_the_best_constant_set():
    labels = [("a", "b"), ("a",), ("a", "b"), ("c",)]
    train = examples(["x"] * 4, labels)
    task = made("multilabel", train)
    got = majority_baseline(task, train, train)
    assert {p.label for p in task.decode(got.logits)} == {("a", "b")}
    assert got.scores["f1_micro"] == pytest.approx(2 * 5 / (8 + 6))


def test_a_frequent_label_keeps_its_share_as_probability():
    train = examples(["x"] * 4, [("a",), ("a",), ("a",), ("b",)])
    got = majority_baseline(made("multilabel", train), train, train)
    assert 1 / (1 + np.exp(-got.logits[0, 0])) == pytest.approx(0.75)


@pytest.mark.parametrize("kind", ["binary", "multilabel", "regression"])
def test_words_are_learned(kind):
    value = {
        "binary": ("good", "bad"),
        "multilabel": (("good",), ("bad", "complaint")),
        "regression": (5.0, 1.0),
    }[kind]
    train = examples(GOOD + BAD, [value[0]] * 5 + [value[1]] * 5)
    evaluation = examples(["lovely place", "cold and rude"], list(value))
    task = made(kind, train)
    got = tfidf_baseline(task, train, evaluation)
    assert got.scores[task.metric] == pytest.approx(1.0)
    assert set(got.scores) == set(majority_baseline(task, train, evaluation).scores)


def test_texts_without_spaces_are_learned():
    train = examples(["とても美味しい料理でした", "美味しい", "対応が悪いです", "味が悪い"],
                     ["良", "良", "否", "否"])  # fmt: skip
    evaluation = examples(["美味しい寿司", "店員が悪い"], ["良", "否"])
    got = tfidf_baseline(made("binary", train), train, evaluation)
    assert got.scores["accuracy"] == 1.0


def test_pairs_are_compared():
    same = [(t, t) for t in GOOD + BAD]
    other = list(zip(GOOD + BAD, BAD[::-1] + GOOD[::-1], strict=True))
    both = same + other
    train = examples([a for a, _ in both], ["same"] * 10 + ["other"] * 10, [b for _, b in both])
    new = [("green apples", "green apples"), ("green apples", "a slow train")]
    evaluation = examples([a for a, _ in new], ["same", "other"], [b for _, b in new])
    task = made("binary", train, text_columns=("a", "b"))
    assert tfidf_baseline(task, train, evaluation).scores["accuracy"] == 1.0


def test_the_same_seed_gives_the_same_answers():
    task = made("binary", REVIEWS)
    first, second = (tfidf_baseline(task, REVIEWS, REVIEWS, seed=3).logits for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_the_temperature_of_the_model_is_not_applied():
    task = made("binary", REVIEWS)
    hot = task.model_copy(update={"temperature": 9.0})
    for run in (majority_baseline, tfidf_baseline):
        assert run(hot, REVIEWS, REVIEWS).scores == run(task, REVIEWS, REVIEWS).scores


def test_classes_without_training_examples_are_never_answered():
    task = made("multiclass", REVIEWS, labels=("bad", "good", "unseen"))
    got = tfidf_baseline(task, REVIEWS, examples(["lovely"], ["unseen"]))
    assert got.scores["accuracy"] == 0.0 and np.isfinite(got.scores["log_loss"])


def test_labels_that_all_or_no_examples_carry():
    train = examples(GOOD, [("always",)] * 4 + [("always", "rare")])
    task = made("multilabel", train, labels=("always", "never", "rare"))
    got = tfidf_baseline(task, train, train)
    assert all("always" in p.label and "never" not in p.label for p in task.decode(got.logits))


@pytest.mark.parametrize(
    ("texts", "labels", "reason"),
    [(["", " ", ""], ["a", "b", "a"], "no words"), (GOOD[:3], ["a", "a", "a"], "one class only")],
)
def test_nothing_to_learn_falls_back_to_the_constant(texts, labels, reason):
    train = examples(texts, labels)
    task = made("multiclass", examples(["x"] * 2, ["a", "b"]))
    got = tfidf_baseline(task, train, train)
    assert reason in got.method
    assert got.scores == majority_baseline(task, train, train).scores


def test_enormous_texts_are_cut():
    train = examples(["spam " * 100_000, "ham " * 100_000], ["spam", "ham"])
    got = tfidf_baseline(made("binary", train), train, train)
    assert got.scores["accuracy"] == 1.0


def test_examples_without_labels_are_refused():
    task = made("binary", REVIEWS)
    unlabelled = examples(["x", "y"], ["good", None])
    with pytest.raises(DataError, match="1 of 2 evaluation examples have no label"):
        majority_baseline(task, REVIEWS, unlabelled)
    with pytest.raises(DataError, match="0 of 0 training examples"):
        tfidf_baseline(task, [], REVIEWS)


def test_a_missing_scikit_learn_names_the_extra(monkeypatch):
    def absent(name, package=None):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingDependencyError, match=r"litebert\[train\]"):
        TextFeatures().fit(["a"])


def test_tasks_do_not_import_scikit_learn_at_the_top(monkeypatch):
    real = builtins.__import__

    def guarded(name, *args, **kwargs):
        assert name.partition(".")[0] not in {"sklearn", "scipy", "torch"}, name
        return real(name, *args, **kwargs)

    import litebert.tasks.bag_of_words as module

    monkeypatch.setattr(builtins, "__import__", guarded)
    importlib.reload(module)
