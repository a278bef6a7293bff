"""The page about examples says what is in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "data"))
from shard_fixture import make_shards

from litebert.errors import DataError, SettingsError
from litebert.objectives.compose import ObjectiveSettings
from litebert.recipes.inspect_examples import inspect_examples
from litebert.settings import build_settings


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shards(tmp_path_factory.mktemp("shards")).folder


def objectives(**values):
    return build_settings(ObjectiveSettings, values)


def test_the_answers_put_back_give_the_text(shards):
    mlm = {"mask_fraction": 0.5, "random_prob": 0.2}
    asked = objectives(mlm=mlm, order="none")
    page = inspect_examples(shards, examples=6, objectives=asked, short_fraction=0.0)
    parts = re.split(r"\nExample \d+ of 6: ", page)[1:]
    assert len(parts) == 6
    for part in parts:
        answers = dict(re.findall(r"^ +(\d+)  (\S+).*  <- (?:hidden|kept|replaced)", part, re.M))
        text = part[part.index("  A (") : part.index("  order: ")]
        text = re.sub(r"\n     ", " ", text)
        text = re.sub(r"\[(\d+): [^\]]*\]", lambda match, answers=answers: answers[match[1]], text)
        text = re.sub(r"\n?  [AB] \(\d+ tokens\)  ", " ", text)
        sentences = re.findall(r"[^.!]+[.!]", text)
        assert sentences
        for sentence in sentences:
            assert re.match(
                r" ?(the gardener|a young pilot|my aunt|the old clerk|our teacher) \w+ "
                r"(twelve apple trees|the harbour wall|a blue bicycle|3 clocks|her umbrella) "
                r"(before breakfast|in heavy rain|without a word|for the second time)",
                sentence,
            ), sentence


def test_what_is_asked_is_said_in_words(shards):
    swapped = objectives(order={"kind": "sop", "negative_prob": 1.0, "google_compatible": True})
    page = inspect_examples(shards, examples=30, objectives=swapped, max_length=64)
    assert "sop label 1: swapped, A follows B in the text" in page
    assert "sop label 1: B is from another document" in page
    page = inspect_examples(shards, examples=9, objectives=objectives(order="nsp"))
    assert "nsp: does the second segment follow the first?" in page
    page = inspect_examples(shards, examples=30, objectives=objectives(), max_length=64)
    assert "sop label 0: B follows A in the text" in page
    assert "no question (a single segment)" in page
    only = objectives(mlm={"weight": 0})
    page = inspect_examples(shards, objectives=only)
    assert "to predict: nothing" in page and "mlm:" not in page
    falling = {"mask_fraction": 0.3, "schedule": "linear", "end_fraction": 0.15}
    page = inspect_examples(
        shards, objectives=objectives(mlm={**falling, "google_compatible": True}, rtd={})
    )
    assert "30 % falling to 15 %" in page and "at most 20 an example" in page and "rtd:" in page


def test_packing_is_counted(shards):
    page = inspect_examples(shards, examples=4)
    lengths = [int(n) for n in re.findall(r"sentences?, (\d+) tokens", page)]
    assert f"As one batch: {sum(lengths)} tokens" in page
    assert f"4 x {max(lengths)} = {4 * max(lengths)}" in page.replace(",", "")


def test_lines_fit_a_terminal(shards):
    page = inspect_examples(shards, examples=20, max_length=200)
    body = page[page.index("Example 1") :]
    assert max(len(line) for line in body.splitlines() if "  <- " not in line) <= 100


def test_the_same_page_twice(shards):
    assert inspect_examples(shards, seed=3) == inspect_examples(shards, seed=3)
    assert inspect_examples(shards, seed=3) != inspect_examples(shards, seed=3, epoch=1)


@pytest.mark.parametrize("wrong", [{"examples": 0}, {"examples": 101}, {"max_length": 4}])
def test_numbers_out_of_range(shards, wrong):
    with pytest.raises(SettingsError, match="allowed"):
        inspect_examples(shards, **wrong)


def test_no_shards(tmp_path):
    with pytest.raises(DataError):
        inspect_examples(tmp_path)
