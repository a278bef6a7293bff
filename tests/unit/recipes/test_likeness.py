"""Vectors that tell texts apart or not, and what a person is told of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from litebert.cli import app
from litebert.recipes.embed import Embedder
from litebert.recipes.likeness import ALIKE, FEWEST, SAMPLE, Likeness, likeness_hint

WORDS = ("kettle", "lamp", "chair", "parcel", "radio", "book")


@given(st.integers(0, 9999), st.integers(1, 12), st.integers(1, 4))
def test_the_mean_over_pairs_of_different_texts(seed: int, count: int, repeats: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 5)) * rng.uniform(0.1, 9.0, size=(count, 1))
    texts = [f"text {n}" for n in range(count)]
    likeness = Likeness()
    blocks = [(texts, rows)] * repeats + [(["", "  ", "TEXT  0"], np.ones((3, 5)))]
    assert [texts for texts, _ in likeness.watch(blocks)] == [texts for texts, _ in blocks]
    if count < FEWEST:
        assert likeness.mean_cosine is None
        return
    unit = [row / np.linalg.norm(row) for row in rows]
    cosines = [unit[i] @ unit[j] for i in range(count) for j in range(count) if i != j]
    assert likeness.mean_cosine == pytest.approx(sum(cosines) / len(cosines), abs=1e-9)


def test_no_more_than_a_sample_is_kept() -> None:
    likeness = Likeness()
    for start in range(0, 4 * SAMPLE, 100):
        likeness.add([str(start + n) for n in range(100)], np.ones((100, 3)))
    assert likeness.mean_cosine == pytest.approx(1.0)
    assert len(likeness._rows) == SAMPLE
    zeros = Likeness()
    zeros.add(list("abcde"), np.zeros((5, 3)))
    assert zeros.mean_cosine == 0.0


def test_what_is_said() -> None:
    assert likeness_hint("m", "similarity", 0.5) is None
    assert likeness_hint("m", "similarity", None) is None
    same = likeness_hint("m", "similarity", 0.99)
    assert same is not None and "mean cosine is 0.99, although m was trained for similarity" in same
    plain = likeness_hint("m", None, ALIKE)
    assert plain is not None and "mean cosine is 0.90. m was only pretrained" in plain
    assert "litebert train PAIRS --task similarity --model m" in plain
    other = likeness_hint("m", "tagging", None)
    assert (
        other is not None
        and "near vectors need not mean near texts. m was trained for tagging" in other
    )


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)


def test_commands_say_it_on_standard_error(tmp_path: Path, make_model: Callable[..., Path]) -> None:
    model = make_model(folder=tmp_path / "m")
    corpus = tmp_path / "c.txt"
    corpus.write_text("".join(f"the fine {word} is late\n" for word in WORDS))
    for result in (
        run("search", model, corpus, "a lamp", "--no-cache"),
        run("embed", model, corpus),
        run("embed", model, text=corpus.read_text()),
    ):
        assert result.exit_code == 0, result.output
        hint = next(line for line in result.stderr.splitlines() if line.startswith("hint"))
        assert "was trained for sequence classification, not for similarity" in hint
        assert "hint" not in result.stdout
    (model / "task.json").unlink()
    result = run("embed", model, corpus)
    assert "was only pretrained, not for similarity" in result.stderr
    config = json.loads((model / "config.json").read_text())
    config["litebert"] = config.get("litebert", {}) | {"pooling": "mean"}
    assert Embedder.load(model).trained_for is None
    (model / "modules.json").write_text("[]")
    assert Embedder.load(model).trained_for == "similarity"
    (model / "modules.json").unlink()
    (model / "config.json").write_text(json.dumps(config))
    assert Embedder.load(model).trained_for == "similarity"
