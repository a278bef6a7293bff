"""Few examples: when pairs are learnt from, which, and what is saved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.checkpoint.saving import save_model
from litebert.data.examples import Example
from litebert.errors import DataError
from litebert.recipes.finetune.few_shot import (
    FewShotSettings,
    label_pairs,
    pair_schedule,
    run_few_shot,
    wants_few_shot,
)
from litebert.recipes.predictor import Predictor
from litebert.tasks.classification import SequenceClassification
from litebert.text.tokenizer import Tokenizer
from litebert.train.settings import TrainSettings
from litebert.train.stop import StopRequest

GOOD = ("fine", "lovely", "quiet", "green")
BAD = ("broken", "late", "dented", "heavy")
THINGS = ("kettle", "lamp")
HERE = Path("few.csv")
EXAMPLES = [
    Example(f"the {word} {thing}", None, label, HERE, 1)
    for label, words in (("good", GOOD), ("bad", BAD))
    for word in words
    for thing in THINGS
]
TASK = SequenceClassification(
    kind="binary", labels=("bad", "good"), metric="accuracy", max_length=16
)
FACTS = {
    "kind": "multiclass", "is_pair": False, "label_counts": (8, 8, 7), "is_pretrained": True,
    "hidden_size": 128,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "multilabel"}, {"kind": "regression"}, {"is_pair": True}, {"is_pretrained": False},
        {"label_counts": (8, 65)}, {"label_counts": (8,)}, {"label_counts": (8, 0)},
        {"label_counts": (1, 1)}, {"label_counts": ()}, {"hidden_size": 3},
    ],
)  # fmt: skip
def test_pairs_are_chosen_for_tiny_tables_and_pretrained_models_only(
    change: dict[str, object],
) -> None:
    reason = wants_few_shot(**FACTS)
    assert reason is not None and "23 examples" in reason
    assert wants_few_shot(**(FACTS | change)) is None


@given(st.lists(st.integers(0, 3), min_size=2, max_size=24), st.integers(1, 5))
def test_pairs_are_even_and_true(labels: list[int], rounds: int) -> None:
    counts = Counter(labels)
    settings = FewShotSettings(pairs_per_example=rounds)
    array = np.array(labels)
    if len(counts) < 2 or max(counts.values()) < 2:
        with pytest.raises(DataError, match="make no pairs"):
            label_pairs(array, settings, np.random.default_rng(0))
        return
    pairs = label_pairs(array, settings, np.random.default_rng(0))
    for pair in pairs:
        assert len(set(pair)) == len(pair) == min(2, counts[labels[pair[0]]])
        assert len({labels[member] for member in pair}) == 1
    assert Counter(pair[0] for pair in pairs) == dict.fromkeys(range(len(labels)), rounds)


def test_many_examples_make_no_more_pairs_than_allowed() -> None:
    labels = np.arange(100) % 2
    settings = FewShotSettings(pairs_per_example=20, max_pairs=1000)
    assert len(label_pairs(labels, settings, np.random.default_rng(0))) == 1000
    few = FewShotSettings(pairs_per_example=20, max_pairs=100)  # three rounds at least
    assert len(label_pairs(labels, few, np.random.default_rng(0))) == 300


def test_a_model_learns_from_few_examples_and_predicts_from_its_folder(
    model_dir: Path, tmp_path: Path
) -> None:
    tokenizer = Tokenizer.from_pretrained(model_dir)
    train = TrainSettings(threads=1, precision="fp32")
    settings = FewShotSettings(pairs_per_example=24, learning_rate=3e-3)
    found = run_few_shot(model_dir, tokenizer, TASK, EXAMPLES, settings=settings, train=train)
    assert found is not None and found.pairs == 24 * len(EXAMPLES)
    save_model(found.model, tmp_path / "model", tokenizer, found.task.to_json())
    predictor = Predictor.load(tmp_path / "model")
    answers = predictor.predict([example.text for example in EXAMPLES])
    right = [a.label == e.label for a, e in zip(answers, EXAMPLES, strict=True)]
    assert np.mean(right) > 0.9
    assert set(answers[0].scores) == {"good", "bad"}
    again = run_few_shot(model_dir, tokenizer, TASK, EXAMPLES, settings=settings, train=train)
    assert again is not None and again.task == found.task
    assert predictor.embed("a lamp").shape == (1, predictor.model.config.hidden_size)


def test_a_stop_and_missing_labels_are_told(model_dir: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(model_dir)
    stop = StopRequest()
    stop.request()
    assert run_few_shot(model_dir, tokenizer, TASK, EXAMPLES, stop=stop) is None
    for examples in ([], [Example("a lamp", None, None, HERE, 1)]):
        with pytest.raises(DataError, match="labelled examples"):
            run_few_shot(model_dir, tokenizer, TASK, examples)


@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5).filter(lambda sizes: max(sizes) > 1),
    st.integers(1, 30),
    st.integers(2, 400),
)
def test_the_schedule_knows_the_pairs_before_they_are_drawn(
    sizes: list[int], each: int, most: int
) -> None:
    settings = FewShotSettings(pairs_per_example=each, max_pairs=most, batch_size=7)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    pairs = label_pairs(labels, settings, np.random.default_rng(0))
    schedule = pair_schedule(sizes, 128, settings)
    assert schedule.pairs == len(pairs) and schedule.batch_size == 7
    assert (schedule.steps - 1) * 7 < len(pairs) <= schedule.steps * 7
    assert schedule.learning_rate == 2e-4
    assert pair_schedule(sizes, 768, settings).learning_rate == 2e-5
