"""Places of entities in many scripts, from a model that knows its sentences, by torch, export and server."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litebert.cli import app

pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

MARKED = (
    "[[PER|अनिता शर्मा]] कल [[LOC|दिल्ली]] गई।",
    "[[PER|สมชาย]]ไปเที่ยวที่[[LOC|เชียงใหม่]]เมื่อวาน",
    "سافر [[PER|خالد المصري]] إلى [[LOC|القاهرة]] أمس.",
    "زارت [[PER|مريم]] مدينة [[LOC|بَغْدَاد]]، ثم عادت.",
    "[[PER|王小明]]昨天去了[[LOC|上海]]。",
    "[[PER|田中さくら]]は[[LOC|京都]]に住んでいます。",
    "[[PER|김민수]]는 [[LOC|부산]]에서 일한다.",
    unicodedata.normalize("NFD", "[[PER|Zoé Léger]] vit à [[LOC|Besançon]] près de l'eau."),
    "[[PER|Zoé Léger]] vit à [[LOC|Besançon]] loin de l'eau.",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 [[PER|Ida]] \U0001f44d\U0001f3fd fährt nach [[LOC|Köln]]!",
    "\U0001f1e9\U0001f1ea[[LOC|Bonn]]\U0001f1eb\U0001f1f7 grüßt [[PER|Ben]]\U0001f468\u200d\U0001f4bb.",
    "[[PER|Ana]]\twohnt\r\nin\t[[LOC|Ulm]].",
    "Ein\u00a0Brief\u2028an [[PER|Ole\u00a0Bär]]\u200b aus [[LOC|Kiel]]",
    "שלום, [[PER|דנה לוי]] גרה ב[[LOC|חיפה]].",
    "[[PER|Ngozi Ọkọ́]] bí ní [[LOC|Ìbàdàn]].",
    "ﬁne ofﬁce of [[PER|Ǆon Ĳsbrand]] in [[LOC|Ａｔｈｅｎｓ]] ①",
)
"""Sentences written here; places and people between brackets."""


def unmarked(text: str) -> tuple[str, list[list[Any]]]:
    plain, spans = "", []
    while "[[" in text:
        before, _, rest = text.partition("[[")
        inner, _, text = rest.partition("]]")
        label, _, words = inner.partition("|")
        plain += before
        spans.append([len(plain), len(plain) + len(words), label])
        plain += words
    return plain + text, spans


def run(*arguments: object) -> list[str]:
    """The lines of standard output; a text may hold other characters that end lines."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, f"{done.output}\n{done.exception}"
    return done.stdout.split("\n")[:-1]


def places(entities: list[Mapping[str, Any]], label: str = "label") -> list[list[Any]]:
    return [[entity["start"], entity["end"], entity[label]] for entity in entities]


def test_answers_are_cut_out_of_the_text_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litebert.recipes.finetune.job.draw_plots", lambda summary: {})
    known = [unmarked(text) for text in MARKED]
    data, plain, lines = (tmp_path / name for name in ("t.jsonl", "p.jsonl", "lines.txt"))
    rows = [json.dumps({"text": text, "spans": spans}) for text, spans in known]
    data.write_text("\n".join(rows) + "\n")
    plain.write_text("".join(json.dumps({"text": text}) + "\n" for text, _ in known))
    one_line = [(text, spans) for text, spans in known if "\n" not in text]
    lines.write_bytes("".join(f"{text}\r\n" for text, _ in one_line).encode("utf-8"))
    folder, exported = tmp_path / "run", tmp_path / "export"
    run("train", data, "--task", "tagging", "--eval", data, "--model", "tiny", "--out", folder, "--yes",
        "--seeds", 1, "--no-baselines", "--vocab-size", 300, "--lr", 5e-3, "--batch-size", 16,
        "--set", "train.max_steps=70", "--set", "train.eval_steps=70", "--set", "train.threads=1",
        "--set", "model.config.num_hidden_layers=1", "--set", "model.config.hidden_size=64",
        "--set", "model.config.num_attention_heads=2", "--set", "train.guard.enabled=false")  # fmt: skip
    answers = [json.loads(line) for line in run("predict", folder, plain)]
    right = 0
    for (text, spans), row in zip(known, answers, strict=True):
        assert row["text"] == text
        for entity in row["prediction"]:
            assert entity["text"] == text[entity["start"] : entity["end"]] != ""
        right += places(row["prediction"]) == spans
    assert right >= len(known) - 1, answers

    found = [json.loads(line) for line in run("predict", folder, lines)]
    for (text, _), row in zip(one_line, found, strict=True):
        assert row["text"] == text.strip()
        for entity in row["prediction"]:
            assert entity["text"] == row["text"][entity["start"] : entity["end"]]

    run("export", "onnx", folder, "--out", exported, "--precision", "fp32", "--no-plain")
    from litebert.runtime.session import Session
    from litebert.serve.engine.operations.records import tag

    session = Session(exported, threads=1)
    texts = [text for text, _ in known]
    plan = tag(session, {"texts": texts, "single": False})
    served = json.loads(plan.finish(session.outputs(plan.examples)))
    again = [json.loads(line) for line in run("predict", exported, plain)]
    for text, row, other, entities in zip(texts, answers, again, served, strict=True):
        assert places(other["prediction"]) == places(row["prediction"])
        assert places(entities, "entity_group") == places(row["prediction"])
        assert all(e["word"] == text[e["start"] : e["end"]] for e in entities)
