"""The card has a valid header, the facts to repeat the run, and no way in for hostile text."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from sample_run import HOSTILE, hostile_run, sample_run

from litebert.recipes.card import render_card
from litebert.recipes.markup import fence, inline

yaml = pytest.importorskip("yaml")


def header(card: str) -> dict:
    assert card.startswith("---\n")
    return yaml.safe_load(card[4 : card.index("\n---\n", 4)])


def outside_fences(card: str) -> str:
    return re.sub(r"(?ms)^(`{3,})[^\n`]*\n.*?^\1$", "", card)


def test_the_header_is_what_hubs_read():
    values = header(render_card(sample_run(8)))
    assert values["language"] == "en"
    assert values["license"] == "other"
    assert values["library_name"] == "transformers"
    assert values["pipeline_tag"] == "text-classification"
    assert {"albert", "litebert", "multiclass-classification"} <= set(values["tags"])
    (result,) = values["model-index"][0]["results"]
    assert result["metrics"][0]["value"] == pytest.approx(
        sample_run(8).scores["accuracy"], rel=1e-5
    )


def test_the_run_can_be_repeated_from_the_card():
    run = sample_run(8)
    card = render_card(run)
    for expected in (
        run.command, run.predict_command, run.data[0].sha256, run.settings_toml.strip(),
        "Seeds 1, 2, 3", "bag of words", "constant answer", "temperature 1.37", "0.062 without it",
        "other languages were not tested", "cut to 64 tokens", "1,240,312", "litebert.load(",
    ):  # fmt: skip
        assert expected in card, expected


def test_kinds_are_named():
    run = sample_run(2)
    assert '"a text"' in render_card(run)
    pair = run.model_copy(update={"text_columns": ("a", "b")})
    assert '("first text", "second text")' in render_card(pair)
    number = run.model_copy(update={"kind": "regression", "labels": (), "class_table": ()})
    assert "regression" in header(render_card(number))["tags"]
    assert "Per class" not in render_card(number)


def test_many_classes_are_cut():
    card = render_card(sample_run(150))
    assert "and 120 more" in card and "The 30 weakest classes" in card


def test_a_run_without_scores_still_has_a_card():
    run = sample_run(2).model_copy(
        update={"scores": {}, "baselines": (), "seeds": (), "settings_toml": "", "data": ()}
    )
    card = render_card(run)
    assert "model-index" not in header(card) and "## Calibration" not in card


def test_hostile_text_adds_no_header_keys_headings_links_or_html():
    card = render_card(hostile_run())
    assert set(header(card)) == {
        "license", "library_name", "pipeline_tag", "tags", "metrics", "model-index"
    }  # fmt: skip
    assert header(card)["license"] == "other"
    body = outside_fences(card[card.index("\n---\n", 4) :])
    assert not re.search(r"(?m)^#+ owned", body)
    body = body.replace("`task.json`", "task.json")
    assert not re.search(r"(?<!\\)\[|(?<!\\)`|<", body)
    assert "http://" not in body
    titles = re.findall(r"(?m)^## (.*)$", body)
    assert titles == ["Score", "Use", "Calibration", "Data", "Training", "Limits"]


def test_tables_keep_their_columns():
    card = outside_fences(render_card(hostile_run()))
    for block in re.findall(r"(?m)(?:^\|.*\|$\n?)+", card):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block


@given(st.text() | st.sampled_from(HOSTILE))
def test_inline_text_stays_on_its_line_and_inert(value):
    got = inline(value)
    assert "\n" not in got and "<" not in got
    assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`|]", got)


@given(st.text(alphabet="`a\n~") | st.text())
def test_a_fence_cannot_be_closed_from_inside(value):
    lines = fence(value, "sh").split("\n")
    ticks = lines[-1]
    assert lines[0] == ticks + "sh" and len(ticks) >= 3
    assert not any(line.strip().startswith(ticks) for line in lines[1:-1])
