"""A new classifier begins as the linear head of the vectors, where that is meant."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tests.bert_folders import VOCABULARY
from tests.named_encoders import make_student

from litebert.checkpoint.folder import save_model
from litebert.data.batch import EncodedExample
from litebert.recipes.finetune.probe_start import fit_classes, fit_numbers, fit_probe, spread
from litebert.recipes.finetune.run import new_model
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.settings import build_settings
from litebert.text.tokenizer import Tokenizer
from litebert.train.evaluate import predict_logits

WORDS = [word for word in VOCABULARY[10:] if word.isalpha()][:12]


def plan_of(folder: Path, source: Path, *, count: int = 80, **data: Any) -> Any:
    """Texts of which the second word tells the class."""
    rows = [
        f"{WORDS[n % 5]} {WORDS[5 + n % 3]} {WORDS[8 + n % 4]},{'abc'[n % 3]}" for n in range(count)
    ]
    (folder / "t.csv").write_text("text,label\n" + "\n".join(rows) + "\n", "utf-8")
    values = {
        "data": {"train": str(folder / "t.csv"), "eval": str(folder / "t.csv")} | data,
        "model": {"source": str(source)},
        "few_shot": False,
    }
    return make_plan(build_settings(FinetuneSettings, values))


def right(model: Any, plan: Any) -> float:
    logits = predict_logits(model, plan.train.encoded)
    assert logits is not None
    labels = [example.label for example in plan.train.encoded]
    return float((logits.argmax(-1) == labels).mean())


def test_a_new_head_knows_before_training_what_the_vectors_tell(tmp_path: Path) -> None:
    make_student(tmp_path / "student")
    plan = plan_of(tmp_path, tmp_path / "student")
    assert plan.settings.train.learning_rate == 2e-4
    assert "the classifier begins as the linear head" in "\n".join(plan.describe())
    torch.manual_seed(3)
    model = new_model(plan, None)
    assert right(model, plan) > 0.9
    torch.manual_seed(3)
    again = new_model(plan, None)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True)
    )


def test_a_head_of_the_same_labels_goes_on_and_a_few_examples_fit_nothing(tmp_path: Path) -> None:
    make_student(tmp_path / "student")
    plan = plan_of(tmp_path, tmp_path / "student")
    model = new_model(plan, None)
    with torch.no_grad():
        model.get_parameter("heads.sequence.classifier.weight").fill_(0.25)
    save_model(model, tmp_path / "done", Tokenizer.from_pretrained(tmp_path / "student"))
    known = new_model(plan_of(tmp_path, tmp_path / "done"), None)
    assert (known.get_parameter("heads.sequence.classifier.weight") == 0.25).all()
    few = new_model(plan_of(tmp_path, tmp_path / "student", count=12), None)
    weight = few.get_parameter("heads.sequence.classifier.weight")
    assert float(weight.detach().abs().max()) < 0.1  # as the official code starts it
    assert (few.get_parameter("heads.sequence.classifier.bias") == 0).all()


def test_encoders_of_words_alone_begin_as_published(tmp_path: Path) -> None:
    make_student(tmp_path / "student", has_pooler=True, pooling="cls")
    plan = plan_of(tmp_path, tmp_path / "student")
    assert plan.settings.train.learning_rate == 1e-3
    assert (new_model(plan, None).get_parameter("heads.sequence.classifier.bias") == 0).all()


def test_numbers_begin_as_the_ridge_that_fits_them(tmp_path: Path) -> None:
    make_student(tmp_path / "student")
    rows = "".join(f"{WORDS[n % 9]} {WORDS[n % 7]},{n % 9 + 0.5}\n" for n in range(40))
    (tmp_path / "n.csv").write_text("text,label\n" + rows, "utf-8")
    values = {
        "data": {"train": str(tmp_path / "n.csv"), "eval": str(tmp_path / "n.csv")},
        "model": {"source": str(tmp_path / "student")},
    }
    plan = make_plan(build_settings(FinetuneSettings, values))
    assert plan.task.problem_type == "regression"
    model = new_model(plan, None)
    examples = plan.train.encoded
    answers = predict_logits(model, examples)
    assert answers is not None
    targets = np.array([example.label for example in examples])
    assert np.square(answers[:, 0] - targets).mean() < 0.9 * targets.var()  # better than the mean


def test_one_target_for_all_is_warned_of(tmp_path: Path) -> None:
    rows = "".join(f"{WORDS[n % 9]} {WORDS[n % 7]},{{}}\n" for n in range(40))
    for numbers, is_warned in (([1.5] * 40, True), ([n % 9 + 0.5 for n in range(40)], False)):
        (tmp_path / "n.csv").write_text("text,label\n" + rows.format(*numbers), "utf-8")
        values = {
            "data": {"train": str(tmp_path / "n.csv"), "kind": "regression"},
            "model": {"source": "scratch"},
        }
        plan = make_plan(build_settings(FinetuneSettings, values))
        assert any("every training row has the target 1.5" in w for w in plan.warnings) == is_warned


def test_numbers_are_fitted_at_the_strength_that_answers_held_out_ones_best() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(300, 4))
    targets = vectors @ np.array([3.0, -2.0, 0.0, 1.0]) + 5.0
    weights, biases = fit_probe(vectors, targets, fit_numbers())
    np.testing.assert_allclose(weights, [[3.0, -2.0, 0.0, 1.0]], atol=1e-2)
    np.testing.assert_allclose(biases, [5.0], atol=1e-2)


def test_the_fit_is_that_of_scikit_learn_at_the_best_strength() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    vectors = rng.normal(size=(200, 6)).astype(np.float32)
    vectors[:, :3] += 2 * np.eye(3)[labels]
    weights, biases = fit_probe(vectors, labels, fit_classes(3))
    found = (vectors @ weights.T + biases).argmax(-1)
    theirs = [
        LogisticRegression(C=c, max_iter=5000).fit(vectors, labels).predict(vectors)
        for c in (0.03, 0.3, 3.0, 30.0)
    ]
    assert any((found == answers).mean() > 0.99 for answers in theirs)
    assert (found == labels).mean() > 0.7


@pytest.mark.parametrize(("count", "most", "kept"), [(10, 1000, 10), (10, 50, 5), (10, 1, 1)])
def test_long_data_are_read_in_even_steps(count: int, most: int, kept: int) -> None:
    ids = np.zeros(10, np.int32)
    examples = [EncodedExample(ids, ids, n, n) for n in range(count)]
    chosen = spread(examples, most)
    assert len(chosen) == kept
    assert len({b.index - a.index for a, b in itertools.pairwise(chosen)}) <= 1
