from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import litebert
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.recipes.loading import load
from litebert.recipes.predictor import Predictor

SAME = 2e-6
"""Float32 sums in another order, as batches of another size make them."""

texts = st.lists(
    st.text(st.characters(codec=None), max_size=40) | st.just("the broken lamp is fine"),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def predictor(model_dir: Path) -> Predictor:
    return Predictor.load(model_dir)


@settings(max_examples=25)
@given(texts=texts, batch_tokens=st.integers(1, 200))
def test_an_answer_does_not_depend_on_its_company(
    predictor: Predictor, texts: list[str], batch_tokens: int
) -> None:
    together = predictor.predict(texts, batch_tokens=batch_tokens)
    alone = [predictor.predict(text)[0] for text in texts]
    vectors = predictor.embed(texts, batch_tokens=batch_tokens)
    for answer, single, text, vector in zip(together, alone, texts, vectors, strict=True):
        assert answer.label == single.label or abs(answer.score - single.score) < SAME
        assert answer.scores == pytest.approx(single.scores, abs=SAME)
        np.testing.assert_allclose(vector, predictor.embed(text)[0], atol=SAME)


@settings(max_examples=10)
@given(order=st.permutations(range(6)))
def test_answers_come_in_the_order_of_the_texts(predictor: Predictor, order: list[int]) -> None:
    known = ["", "fine", "the lamp", "the dented lamp is late", "quiet " * 9, "chair " * 60]
    answers = predictor.predict(known)
    shuffled = predictor.predict([known[i] for i in order])
    for index, answer in zip(order, shuffled, strict=True):
        assert answer.scores == pytest.approx(answers[index].scores, abs=SAME)


def test_one_text_is_a_list_of_one(predictor: Predictor) -> None:
    assert len(predictor.predict("the lamp is fine")) == 1
    assert predictor.predict([]) == []
    assert predictor.embed([]).shape == (0, 32)


@pytest.mark.parametrize(
    "text", ["", " \n", "a" * 1_000_000, "\ud800 lone", "\x00\x1b[31m", "é\u0301" * 500, "😀" * 99]
)
def test_any_string_gets_an_answer(predictor: Predictor, text: str) -> None:
    answer = predictor.predict(text)[0]
    assert answer.label in ("bad", "good", "so-so")
    assert sum(answer.scores.values()) == pytest.approx(1)
    assert np.linalg.norm(predictor.embed(text)[0]) == pytest.approx(1, abs=1e-5)


def test_vectors(predictor: Predictor) -> None:
    both = ["the lamp is fine", ("the lamp", "is fine")]
    mean, first = predictor.embed(both), predictor.embed(both, pooling="cls")
    assert mean.dtype == np.float32
    assert mean.shape == first.shape == (2, 32)
    assert not np.allclose(mean, first)
    raw = predictor.embed(both, normalize=False)
    np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1)[:, None], mean, atol=SAME)
    assert not np.allclose(predictor.embed(both, max_length=3), mean)


def test_settings_that_cannot_be(predictor: Predictor) -> None:
    for length in (0, 2, 65):
        with pytest.raises(SettingsError, match=r"allowed: 3\.\.64"):
            predictor.embed("text", max_length=length)
    with pytest.raises(SettingsError, match="'mean', 'cls'"):
        predictor.embed("text", pooling="max")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="batch_tokens is 0"):
        predictor.predict("text", batch_tokens=0)


@pytest.mark.parametrize("wrong", [[3], [None], [("a", "b", "c")], [("a", 1)], [b"bytes"]])
def test_what_is_no_text_is_named(predictor: Predictor, wrong: list[object]) -> None:
    with pytest.raises(DataError, match="give strings, or tuples of two strings"):
        predictor.predict(["fine", *wrong])  # type: ignore[list-item]


def test_pairs_go_to_models_of_pairs(predictor: Predictor, pair_dir: Path) -> None:
    with pytest.raises(DataError):
        predictor.predict([("first", "second")])
    pairs = load(pair_dir)
    assert pairs.predict([("the lamp", "is fine")])[0].label in ("no", "yes")
    with pytest.raises(DataError):
        pairs.predict("only one")


def test_other_kinds_of_answers(make_model: Callable[..., Path]) -> None:
    number = load(make_model("regression", target_mean=3.0)).predict("the lamp")[0]
    assert isinstance(number.label, float)
    assert number.scores == {}
    several = load(make_model("multilabel")).predict("the lamp")[0]
    assert isinstance(several.label, tuple)
    assert set(several.label) <= {"bad", "good", "so-so"}


def test_a_folder_without_task_embeds_only(model_dir: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(model_dir, tmp_path / "bare")
    (bare / "task.json").unlink()
    model = load(bare)
    np.testing.assert_allclose(model.embed("fine"), load(model_dir).embed("fine"), atol=SAME)
    with pytest.raises(CheckpointError, match=r"no task\.json"):
        model.predict("fine")


def test_a_task_of_another_model_is_refused(model_dir: Path, tmp_path: Path) -> None:
    def changed(**values: object) -> Path:
        folder = shutil.copytree(model_dir, tmp_path / "-".join(values))
        task = json.loads((folder / "task.json").read_text())
        (folder / "task.json").write_text(json.dumps(task | values))
        return folder

    with pytest.raises(CheckpointError, match=r"2 outputs, config\.json has 3"):
        load(changed(labels=["no", "yes"]))
    with pytest.raises(CheckpointError, match="max_length 65, but the model has 64 positions"):
        load(changed(max_length=65))


def test_the_callers_number_of_threads_stays(predictor: Predictor) -> None:
    before = torch.get_num_threads()
    predictor.predict("fine")
    assert torch.get_num_threads() == before


def test_load_is_public(model_dir: Path) -> None:
    assert litebert.load is load
    assert isinstance(litebert.load(str(model_dir)), litebert.Predictor)
