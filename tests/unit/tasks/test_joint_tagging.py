"""Intent and slots: one label list, labels on [CLS] and words, answers and scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.data.tagged.record import Span, TaggedText, join_words
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.tasks.base import parse_task
from litebert.tasks.joint_tagging import IntentSlots, make_intent_slots
from litebert.tasks.records import Answer
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary


def said(
    text: str, spans: list[tuple[int, int, str]] | None, intent: str | None, number: int = 1
) -> TaggedText:
    _, words = join_words(text.split())
    found = None if spans is None else tuple(Span(*span) for span in spans)
    return TaggedText(text, words, found, str(number), str(number), Path("seq.in"), number, intent)


RECORDS = [
    said("fly to rome", [(7, 11, "city")], "flight", 1),
    said("play a song by bob lee", [(15, 22, "artist")], "play", 2),
    said("help", [], "flight", 3),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = [record.text for record in RECORDS] * 4
    return train_vocabulary(texts, 40, tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def task() -> IntentSlots:
    return make_intent_slots(RECORDS, {})


def test_one_list_holds_tags_and_intents(task: IntentSlots) -> None:
    assert list(task.config_labels().values()) == [
        "O", "B-artist", "I-artist", "B-city", "I-city", "intent:flight", "intent:play",
    ]  # fmt: skip
    assert (task.num_tags, task.loss, task.head) == (5, "joint_tagging", "token")


@pytest.mark.parametrize("max_length", [5, 64])
def test_labels_come_back(max_length: int, tokenizer: Tokenizer) -> None:
    task = make_intent_slots(RECORDS, {"max_length": max_length})
    features = task.features(RECORDS, tokenizer, labelled=True)
    outputs: list[np.ndarray] = []
    for feature in features:
        labels = np.asarray(feature.encoded.label)
        assert labels[0] == 5 + (RECORDS[feature.encoded.index].intent == "play")
        rows = np.zeros((len(labels), 7), np.float32)
        chosen = np.flatnonzero(labels >= 0)
        rows[chosen, labels[chosen]] = 30
        outputs.append(rows)
    assert (len(features) > 3) == (max_length == 5)
    answers = task.answers(RECORDS, features, outputs)
    scores = task.evaluate(RECORDS, answers)
    assert scores["sentence_accuracy"] == scores["slot_f1"] == scores["intent_accuracy"] == 1.0
    assert answers[1].value["intent"] == "play"
    assert answers[1].value["slots"][0]["text"] == "bob lee"
    row = json.loads(json.dumps(answers[1].to_json()))
    assert row["score"] <= row["intent_score"] <= 1.0


def given(intent: str, *spans: tuple[int, int, str]) -> Answer:
    slots = [{"start": a, "end": b, "label": c} for a, b, c in spans]
    return Answer({"intent": intent, "slots": slots}, 0.5)


def test_scores_count_sentences_intents_and_slots(task: IntentSlots) -> None:
    answers = [given("flight", (7, 11, "city")), given("play", (15, 18, "artist")), given("play")]
    scores = task.evaluate(RECORDS, answers)
    assert scores["sentence_accuracy"] == pytest.approx(1 / 3)
    assert scores["intent_accuracy"] == pytest.approx(2 / 3)
    assert scores["slot_f1"] == 0.5
    assert scores["slot_token_accuracy"] == pytest.approx(9 / 10)
    assert task.metric in scores


def test_the_baseline_and_signs_of_collapse(task: IntentSlots) -> None:
    (found,) = task.baselines(RECORDS, RECORDS)
    assert found.scores["intent_accuracy"] == pytest.approx(2 / 3)
    assert found.scores["slot_f1"] == 1.0
    with pytest.raises(DataError, match="with an intent"):
        task.baselines([said("x", [], None)], RECORDS)
    many = RECORDS * 10
    same = [given("flight", *(record.spans or ())) for record in many]
    assert any("every text was given the intent 'flight'" in f for f in task.faults(many, same))
    strange = [*RECORDS, said("x", [], "sing")]
    assert any("sing" in f for f in task.faults(strange, [*same[:3], given("play")]))


def test_an_intent_that_was_not_trained_is_no_label(
    task: IntentSlots, tokenizer: Tokenizer
) -> None:
    (feature,) = task.features([said("fly", [], "sing")], tokenizer, labelled=True)
    assert np.asarray(feature.encoded.label)[0] == -100


def test_faulty_records_and_outputs(task: IntentSlots, tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match="no intent"):
        make_intent_slots([*RECORDS, said("x", [], None)], {})
    with pytest.raises(DataError, match="no tags"):
        task.evaluate([said("x", None, "play")], [given("play")])
    features = task.features(RECORDS, tokenizer, labelled=False)
    for rows in (np.zeros((3, 5), np.float32), np.full((3, 7), np.inf, np.float32)):
        with pytest.raises(DataError, match="must be finite"):
            task.answers(RECORDS, features, [rows] * len(features))


def test_a_task_survives_its_file(task: IntentSlots) -> None:
    assert parse_task(task.to_json()) == task  # type: ignore[comparison-overlap]
    assert task.fitted([], [], []) is task
    changes: list[dict[str, Any]] = [
        {"intents": []}, {"intents": ["a", "a"]}, {"slot_weight": 0}, {"metric": "entity_f1"},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(CheckpointError):
            parse_task(json.dumps(json.loads(task.to_json()) | change))
    with pytest.raises(SettingsError, match="did you mean 'slot_weight'"):
        make_intent_slots(RECORDS, {"slot_wait": 2})


def test_a_record_is_shown_with_both_labels(task: IntentSlots) -> None:
    assert task.show(RECORDS[0])["label"] == {
        "intent": "flight",
        "slots": [{"start": 7, "end": 11, "label": "city", "text": "rome"}],
    }
    assert task.show(said("x", None, None))["label"] is None
