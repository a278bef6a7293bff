"""Multiple choice: sequences as in the official code, answers, scores, baselines, collapses."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.batch import collate
from litebert.data.choices import CHOICE_READERS, ChoiceRecord
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.presets import preset
from litebert.tasks import TASKS, parse_task
from litebert.tasks.choice import MultipleChoice
from litebert.tasks.choice_baselines import (
    longest_choice,
    most_frequent_position,
    terms,
    word_overlap,
)
from litebert.tasks.records import RECORD_KINDS, Answer
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary
from litebert.train.evaluate import predict_outputs
from litebert.train.loop import fit
from litebert.train.settings import TrainSettings
from litebert.train.step_losses import make_step_loss

WORDS = ("ship", "harbour", "rain", "market", "fox", "ran", "by", "the", "old", "left", "noon")
HERE = Path("questions.json")


def record(
    question: str = "what left?",
    choices: tuple[str, ...] = ("the ship", "the fox"),
    label: int | None = 0,
    context: str = "the ship left at noon",
    **rest: Any,
) -> ChoiceRecord:
    fields = {"id": "q", "group": "g", "path": HERE, "line": 1} | rest
    return ChoiceRecord(context, question, choices, label, **fields)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS[:3]]
    return train_vocabulary(texts, 60, tmp_path_factory.mktemp("vocabulary"))


def official(
    task: MultipleChoice, item: ChoiceRecord, tokenizer: Tokenizer
) -> list[tuple[list[int], list[int]]]:
    """The official preparation, one step after the other: whole token lists, then cuts."""

    def tokens(text: str) -> list[int]:
        return tokenizer.pieces(text).ids

    room = task.max_length - 3
    limit = task.max_answer_length or min(128, room)
    sequences = []
    question = " ".join(item.question.split())
    has_blank = bool(re.search("_", question))
    for choice in (" ".join(c.split()) for c in item.choices):
        if has_blank:
            first, ending = tokens(item.context), tokens(question.replace("_", choice))
        elif item.context.strip():
            first, ending = tokens(item.context), tokens(question + " " + choice)
        else:
            first, ending = tokens(question), tokens(choice)
        ending = ending[-limit:]
        over = len(first) + len(ending) - room
        if over > 0:
            keep_end = not item.context.strip() and not has_blank
            first = first[over:] if keep_end else first[: len(first) - over]
        ids = [tokenizer.cls_id, *first, tokenizer.sep_id, *ending, tokenizer.sep_id]
        sequences.append((ids, [0] * (len(first) + 2) + [1] * (len(ending) + 1)))
    return sequences


PHRASE = st.lists(st.sampled_from((*WORDS, "é", "魚", "  ")), max_size=12).map(" ".join)


@given(
    PHRASE,
    PHRASE,
    st.booleans(),
    st.lists(PHRASE.filter(str.strip), min_size=2, max_size=5),
    st.integers(8, 40),
    st.one_of(st.none(), st.integers(2, 5)),
)
def test_sequences_are_the_official_ones(
    tokenizer: Tokenizer, context: str, question: str, has_blank: bool, choices: list[str],
    max_length: int, limit: int | None,
) -> None:  # fmt: skip
    task = MultipleChoice(max_length=max_length, max_answer_length=limit)
    question = question + (" the _ left" if has_blank else "")
    item = record(question, tuple(choices), 1, context)
    (feature,) = task.features([item], tokenizer, labelled=True)
    expected = official(task, item, tokenizer)
    assert feature.encoded.ids.tolist() == [i for ids, _ in expected for i in ids]
    assert feature.encoded.type_ids.tolist() == [t for _, types in expected for t in types]
    assert feature.encoded.sequence_lengths == tuple(len(ids) for ids, _ in expected)
    assert max(feature.encoded.sequence_lengths) <= max_length
    assert (feature.encoded.label, feature.encoded.index) == (1, 0)


def texts_of(task: MultipleChoice, item: ChoiceRecord, tokenizer: Tokenizer) -> list[str]:
    (feature,) = task.features([item], tokenizer, labelled=False)
    bounds = np.cumsum(feature.encoded.sequence_lengths)[:-1]
    return [tokenizer.decode(part.tolist()) for part in np.split(feature.encoded.ids, bounds)]


def test_blanks_are_filled(tokenizer: Tokenizer) -> None:
    task = MultipleChoice(max_length=40)
    item = record("by ___ ran", ("fox", "the rain"), None, "the old market")
    assert texts_of(task, item, tokenizer) == [
        "the old market by fox ran",
        "the old market by the rain ran",
    ]
    assert texts_of(task, replace(item, context=""), tokenizer) == ["by fox ran", "by the rain ran"]
    plain = MultipleChoice(max_length=40, fill_blanks=False)
    assert texts_of(plain, item, tokenizer)[0].endswith("ran fox")
    inside = record("fox_ran by", ("noon", "rain"), None, "")
    assert texts_of(task, inside, tokenizer)[0].endswith("noon"), "no blank inside a word"
    escape = record("by _ ran", (r"\1 fox \g<0>", "rain"), None, "")
    assert len(texts_of(task, escape, tokenizer)) == 2


def test_questions_without_a_label_are_learnt_from_never_and_answered_always(
    tokenizer: Tokenizer,
) -> None:
    items = [record(label=None), record(label=1), record(label=None), record(label=0)]
    task = MultipleChoice(max_length=24)
    labelled = task.features(items, tokenizer, labelled=True)
    assert [(f.encoded.index, f.encoded.label) for f in labelled] == [(1, 1), (3, 0)]
    every = task.features(items, tokenizer, labelled=False)
    assert [f.encoded.index for f in every] == [0, 1, 2, 3]
    assert task.features([], tokenizer, labelled=True) == []
    assert collate([f.encoded for f in labelled]).group_sizes.tolist() == [2, 2]  # type: ignore[union-attr]


LOGITS = st.lists(
    st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=6), min_size=1, max_size=12
)


def made(
    rows: list[list[float]], seed: int, subsets: tuple[str, ...] = ("",)
) -> list[ChoiceRecord]:
    rng = np.random.default_rng(seed)
    return [
        record(
            f"question {i}",
            tuple(f"choice {c}" for c in range(len(row))),
            None if rng.random() < 0.2 else int(rng.integers(len(row))),
            id=f"q{i}",
            subset=subsets[i % len(subsets)],
        )
        for i, row in enumerate(rows)
    ]


@given(LOGITS, st.integers(0, 9), st.sampled_from([1.0, 0.5, 7.0]))
def test_answers_and_scores_against_a_slow_definition(
    tokenizer: Tokenizer, rows: list[list[float]], seed: int, temperature: float
) -> None:
    task = MultipleChoice(max_length=24, temperature=temperature)
    items = made(rows, seed, ("middle", "high"))
    features = task.features(items, tokenizer, labelled=False)
    outputs = [np.array(row, np.float32) for row in rows]
    answers = task.answers(items, features, outputs)
    right: dict[str, list[bool]] = {"": [], "middle": [], "high": []}
    for item, row, answer in zip(items, outputs, answers, strict=True):
        powers = [math.exp((float(x) - float(max(row))) / temperature) for x in row]
        p = [value / sum(powers) for value in powers]
        index = answer.details["index"]
        assert p[index] == pytest.approx(max(p)) and answer.score == pytest.approx(p[index])
        assert answer.details["probabilities"] == pytest.approx(p, abs=1e-6)
        assert answer.value == item.choices[index] and answer.details["letter"] == "ABCDEF"[index]
        assert json.loads(json.dumps(answer.to_json()))["prediction"] == answer.value
        if item.label is not None:
            for name in ("", item.subset):
                right[name].append(index == item.label)
    scores = task.evaluate(items, answers)
    assert scores["accuracy"] == pytest.approx(np.mean(right[""]) if right[""] else 0.0)
    for name in ("middle", "high"):
        if right["middle"] and right["high"]:
            assert scores[f"accuracy_{name}"] == pytest.approx(np.mean(right[name]))
        else:
            assert f"accuracy_{name}" not in scores
    assert ("ece" in scores) == bool(right[""])


@given(LOGITS, st.integers(0, 9))
def test_the_temperature_minimises_the_loss_whatever_the_numbers_of_choices(
    tokenizer: Tokenizer, rows: list[list[float]], seed: int
) -> None:
    task = MultipleChoice(max_length=24)
    items = made(rows, seed)
    features = task.features(items, tokenizer, labelled=False)
    outputs = [np.array(row) for row in rows]
    fitted = task.fitted(items, features, outputs)

    def loss(temperature: float) -> float:
        total = 0.0
        for item, row in zip(items, outputs, strict=True):
            if item.label is not None:
                z = row / temperature
                total -= z[item.label] - z.max() - math.log(np.exp(z - z.max()).sum())
        return total

    for other in (0.05, 0.2, 0.7, 1.0, 1.5, 5.0, 20.0):
        assert loss(fitted.temperature) <= loss(other) + 1e-6
    before = [a.details["index"] for a in task.answers(items, features, outputs)]
    assert before == [a.details["index"] for a in fitted.answers(items, features, outputs)]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.zeros(3), "3 numbers, 3 finite"),
        (np.array([0.0, np.nan]), "2 numbers, 1 finite"),
        (np.array([]), "0 numbers"),
    ],
)
def test_outputs_that_do_not_fit(tokenizer: Tokenizer, output: np.ndarray, message: str) -> None:
    task, items = MultipleChoice(max_length=24), [record()]
    features = task.features(items, tokenizer, labelled=False)
    with pytest.raises(DataError, match=message):
        task.answers(items, features, [output])
    with pytest.raises(DataError, match="the model gave nothing"):
        task.fitted([*items, *items], features, [np.zeros(2)])


def test_the_task_file(tmp_path: Path) -> None:
    task = MultipleChoice(max_length=96, max_answer_length=20, fill_blanks=False, temperature=1.5)
    assert parse_task(task.to_json()) == task
    assert parse_task(MultipleChoice().to_json()) == MultipleChoice()
    assert json.loads(task.to_json())["format_version"] == 1
    for change in ({"unheard_of": 1}, {"temperature": 0}, {"max_answer_length": 500}):
        with pytest.raises(CheckpointError, match="the task description is not valid"):
            parse_task(json.dumps(json.loads(task.to_json()) | change))
    assert (task.name, task.head, task.loss, task.metric) == (
        "choice",
        "choice",
        "labels",
        "accuracy",
    )
    assert task.problem_type is None and task.config_labels() == {0: "choice"}
    assert TASKS.get("choice") is MultipleChoice


def test_every_reader_is_a_kind() -> None:
    for name in CHOICE_READERS:
        kind = RECORD_KINDS.get(name)
        assert kind.name == name and kind.help
        assert kind.make_task([record()], {"max_length": 64}) == MultipleChoice(max_length=64)
    with pytest.raises(SettingsError, match=r"no setting 'max_lenght'; did you mean 'max_length'"):
        kind.make_task([record()], {"max_lenght": 3})
    with pytest.raises(SettingsError, match="leaves room for 13 tokens"):
        kind.make_task([record()], {"max_length": 16, "max_answer_length": 14})
    with pytest.raises(DataError, match="none of the 2 questions has an answer"):
        kind.make_task([record(label=None)] * 2, {})


def test_what_is_shown() -> None:
    shown = MultipleChoice().show(record())
    assert json.loads(json.dumps(shown)) == {
        "id": "q", "group": "g", "question": "what left?", "choices": ["the ship", "the fox"],
        "label": "the ship", "label_index": 0, "file": "questions.json", "line": 1,
    }  # fmt: skip
    assert MultipleChoice().show(record(label=None))["label"] is None


def test_baselines() -> None:
    train = [
        record(label=1),
        record(label=1),
        record(label=0),
        record(choices=("a", "b", "c"), label=2),
    ]
    evaluation = [
        record(
            "who ran by the market?",
            ("rain", "the fox in the market", "noon"),
            1,
            "a fox ran",
            subset="x",
        ),
        record("what fell?", ("rain at noon", "a fox"), 0, "rain fell at noon", subset="y"),
        record("what?", ("long words here", "b"), 1, "", subset="y"),
    ]
    assert most_frequent_position(train, evaluation) == [1, 1, 1]
    assert longest_choice(evaluation) == [1, 0, 0]
    assert word_overlap(train, evaluation) == [1, 0, 0]
    found = MultipleChoice().baselines(train, evaluation)
    scores = {b.name: b.scores["accuracy"] for b in found}
    assert scores == pytest.approx({"majority": 2 / 3, "longest": 2 / 3, "tfidf": 2 / 3})
    assert all({"accuracy", "accuracy_x", "accuracy_y"} == set(b.scores) for b in found)
    for empty in (([], evaluation), (train, [])):
        with pytest.raises(DataError, match="baselines need at least one of each"):
            MultipleChoice().baselines(*empty)
    assert terms("The Fox, 魚が ran") == ["the", "fox", "魚が", "ran"] and terms("海") == ["海"]
    assert terms("昔の市場") == ["昔の", "の市", "市場"]


def answered(index: int, count: int, score: float | None = None) -> Answer:
    return Answer("x", score or 1.0, {"index": index, "letter": "ABCD"[index]})


def test_collapses_are_named() -> None:
    rng = np.random.default_rng(3)
    items = []
    for _ in range(60):
        lengths = rng.permutation([3, 5, 8, 13])
        items.append(record(choices=tuple("x" * n for n in lengths), label=int(rng.integers(4))))
    task = MultipleChoice()

    def faults(answers: list[Answer], records: list[ChoiceRecord] = items) -> str:
        return " | ".join(task.faults(records, answers))

    always = [answered(2, 4)] * 60
    assert "60 of 60 answers are choice C" in faults(always)
    longest = [answered(int(np.argmax([len(c) for c in r.choices])), 4) for r in items]
    assert "answers are the longest choice" in faults(longest)
    shortest = [answered(int(np.argmin([len(c) for c in r.choices])), 4) for r in items]
    assert "answers are the shortest choice" in faults(shortest)
    flat = [answered(int(rng.integers(4)), 4, 0.251) for _ in items]
    assert "equally probable" in faults(flat) and "that of chance" in faults(flat)
    right = [answered(r.label or 0, 4, 0.9) for r in items]
    assert faults(right) == ""
    assert faults(always[:19], items[:19]) == "", "too few to say"
    same = [replace(r, label=2) for r in items]
    assert faults(always, same) == "", "the data are like that"
    unlabelled = [replace(r, label=None) for r in items]
    assert "choice C" in faults(always, unlabelled) and "chance" not in faults(always, unlabelled)


def test_a_small_model_learns_which_choice_is_right(tokenizer: Tokenizer) -> None:
    """Ships and rain are right, wherever they stand among two to four choices."""
    rng = np.random.default_rng(0)
    items = []
    for i in range(90):
        choices = [*rng.permutation(["fox", "market", "noon"])[: 1 + i % 3]]
        label = int(rng.integers(len(choices) + 1))
        choices.insert(label, ("ship", "rain")[i % 2])
        items.append(record("what?", tuple(map(str, choices)), label, "the old harbour"))
    task = MultipleChoice(max_length=24)
    config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
        hidden_size=32, embedding_size=32, num_attention_heads=2, intermediate_size=64,
        num_hidden_layers=1, max_position_embeddings=24, id2label=task.config_labels(),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0,
        litebert={"head": "choice"},
    )  # fmt: skip
    torch.manual_seed(0)
    model = AlbertWithHead(config, "choice")
    train, held_out = items[:60], items[60:]
    encoded = [f.encoded for f in task.features(train, tokenizer, labelled=True)]
    settings = TrainSettings(
        epochs=6, batch_size=8, learning_rate=4e-3, threads=1, precision="fp32"
    )
    fit(model, encoded, settings, step_loss=make_step_loss(task.loss, task))
    features = task.features(held_out, tokenizer, labelled=False)
    outputs = predict_outputs(model, [f.encoded for f in features])
    assert outputs is not None
    answers = task.answers(held_out, features, outputs)
    assert task.evaluate(held_out, answers)["accuracy"] >= 0.9
    assert task.faults(held_out, answers) == []
