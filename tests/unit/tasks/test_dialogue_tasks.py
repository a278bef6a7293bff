"""The tasks quac and coqa: turns before a question, kinds of answers, scores, files, and learning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.dialogues import CANNOT_ANSWER, CoqaQuestion, QuacQuestion, read_quac
from litebert.data.question_parts import AnswerSpan, Turn
from litebert.data.readers import ReadOptions
from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.presets import preset
from litebert.model.span_layout import class_column
from litebert.tasks import parse_task
from litebert.tasks.coqa import CoqaTask
from litebert.tasks.coqa_labels import KINDS, answer_kind, learnt_span
from litebert.tasks.quac import QuacTask
from litebert.tasks.records import RECORD_KINDS, Answer
from litebert.tasks.scores import SCORES
from litebert.tasks.squad_scores import f1_or_empty, normalize_answer
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary
from litebert.train.evaluate import predict_outputs
from litebert.train.loop import fit
from litebert.train.settings import TrainSettings
from litebert.train.step_losses import make_step_loss

HERE = Path("dialogues.json")
TEXT = "Mara built a kite. The wind tore it on Monday. She mended it with tape."
TURNS = (
    Turn("What did she build?", "a kite"),
    Turn("Who paid?", CANNOT_ANSWER),
    Turn("What then?", ""),
)


def span(text: str) -> AnswerSpan:
    return (
        AnswerSpan(text, TEXT.find(text), TEXT.find(text) + len(text))
        if text in TEXT
        else AnswerSpan(text, -1, -1)
    )


def quac(
    number: int, text: str, yesno: str | None = "x", followup: str | None = "m", **more: Any
) -> QuacQuestion:
    fields: dict[str, Any] = {
        "id": f"D_q#{number}", "question": "What did the wind do?", "context": TEXT, "answers": (span(text),),
        "reference": span(text), "yesno": yesno, "followup": followup, "history": TURNS, "group": "D",
        "path": HERE, "line": number + 1,
    }  # fmt: skip
    return QuacQuestion(**(fields | more))


def coqa(number: int, *answers: str, evidence: str | None = None, **more: Any) -> CoqaQuestion:
    fields: dict[str, Any] = {
        "id": f"S#{number}", "question": "When?", "context": TEXT, "answers": answers,
        "evidence": None if evidence is None else span(evidence), "history": TURNS[:1], "domain": "cnn",
        "turn": number, "group": "S", "path": HERE, "line": number,
    }  # fmt: skip
    return CoqaQuestion(**(fields | more))


QUAC = [
    quac(0, "tore it", "x", "y"), quac(1, CANNOT_ANSWER, "n", "n"), quac(2, "She mended it with tape.", "y", "m"),
    quac(3, "a kite", None, None),
]  # fmt: skip
COQA = [
    coqa(1, "on Monday", "Monday", evidence="The wind tore it on Monday."),
    coqa(2, "Yes.", "yes", evidence="She mended it with tape."),
    coqa(3, "no", evidence="a kite"), coqa(4, "unknown", "Unknown"), coqa(5, "tape"), coqa(6, "yes"),
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = [
        TEXT,
        "What did the wind do?",
        "Who paid? What then? What did she build?",
        "When?",
        CANNOT_ANSWER,
    ]
    return train_vocabulary(texts * 4, 70, tmp_path_factory.mktemp("vocabulary"))


def test_turns_before_a_question() -> None:
    task = QuacTask()
    assert task.parts(TURNS, "Q?") == ("Who paid?", CANNOT_ANSWER, "What then?", "Q?")
    assert QuacTask(history_turns=0).parts(TURNS, "Q?") == ("Q?",)
    assert len(QuacTask(history_turns=9).parts(TURNS, "Q?")) == 6
    assert task.parts((), "Q?") == ("Q?",)


def labels(task: Any, records: list[Any], tokenizer: Tokenizer) -> list[list[int]]:
    return [
        np.asarray(f.encoded.label).tolist()
        for f in task.features(records, tokenizer, labelled=True)
    ]


def test_labels_of_quac(tokenizer: Tokenizer) -> None:
    task = QuacTask()
    found = labels(task, QUAC, tokenizer)
    assert [row[2:] for row in found] == [[0, 2, 0], [1, 1, 2], [0, 0, 1], [0, -100, -100]]
    assert found[1][:2] == [0, 0] and found[0][0] > 0
    short = QuacTask(max_length=30, max_query_length=10, doc_stride=4)
    rows = labels(short, QUAC[:1], tokenizer)
    assert {tuple(row[2:]) for row in rows} == {(0, 2, 0), (1, -100, -100)}
    assert task.features([replace(QUAC[0], reference=None)], tokenizer, labelled=True) == []
    bare = task.features([replace(QUAC[0], reference=None)], tokenizer, labelled=False)
    assert len(bare) == 1 and bare[0].encoded.label is None


def test_labels_of_coqa(tokenizer: Tokenizer) -> None:
    task = CoqaTask()
    found = labels(task, COQA, tokenizer)
    assert [row[2] for row in found] == [0, 1, 2, 3, 0, 1]
    assert found[3][:2] == found[5][:2] == [0, 0] and all(row[0] for row in found[:3])
    nowhere = [coqa(7, "the sea"), coqa(8)]
    assert task.features(nowhere, tokenizer, labelled=True) == []
    assert len(task.features(nowhere, tokenizer, labelled=False)) == 2


def oracle(task: Any, records: list[Any], tokenizer: Tokenizer, groups: list[tuple[int, int]]):
    """Features, and outputs that say what the labels say."""
    features = task.features(records, tokenizer, labelled=False)
    outputs = []
    for feature, label in zip(features, labels(task, records, tokenizer), strict=True):
        first, last, *classes = label
        count = len(task.config_labels())
        rows = np.full((len(feature.encoded), class_column(count)), -10.0, np.float32)
        rows[:, 1] = -1
        rows[first, 0], rows[first, 1], rows[last, 2] = -0.1, 0, -0.1
        for (a, b), right in zip(groups, classes, strict=True):
            if b - a == 1:
                rows[:, class_column(a)] = 4 if right else -4
            elif right >= 0:
                rows[:, class_column(a + right)] = 4
        outputs.append(rows)
    return features, outputs


QUAC_GROUPS = [(0, 1), (1, 4), (4, 7)]


@pytest.mark.parametrize("length", [200, 60])
def test_quac_labels_give_full_scores(tokenizer: Tokenizer, length: int) -> None:
    task = QuacTask(max_length=length, max_query_length=10, doc_stride=6)
    records = QUAC[:3]
    features, outputs = oracle(task, records, tokenizer, QUAC_GROUPS)
    answers = task.answers(records, features, outputs)
    scores = task.evaluate(records, answers)
    assert set(scores) <= set(SCORES) and scores == dict.fromkeys(scores, 1.0)
    assert [a.value for a in answers] == ["tore it", CANNOT_ANSWER, "She mended it with tape."]
    assert [a.details["yesno"] for a in answers] == ["x", "n", "y"]
    assert all(0 <= a.score <= 1 for a in answers)
    lines = task.files(records, features, outputs)["predictions.jsonl"].splitlines()
    assert json.loads(lines[0]) == {
        "best_span_str": [a.value for a in answers], "qid": ["D_q#0", "D_q#1", "D_q#2"],
        "yesno": ["x", "n", "y"], "followup": ["y", "n", "m"],
    }  # fmt: skip
    for rows in outputs:
        rows[:, class_column()] += 6
    assert {a.value for a in task.answers(records, features, outputs)} == {CANNOT_ANSWER}
    fitted = task.fitted(records, features, outputs)
    assert fitted.evaluate(records, fitted.answers(records, features, outputs))["f1"] == 1.0
    assert parse_task(fitted.to_json()) == fitted


@pytest.mark.parametrize("length", [200, 60])
def test_coqa_labels_give_full_scores(tokenizer: Tokenizer, length: int) -> None:
    task = CoqaTask(max_length=length, max_query_length=10, doc_stride=6)
    records = COQA[:5]
    features, outputs = oracle(task, records, tokenizer, [(0, 4)])
    answers = task.answers(records, features, outputs)
    assert [a.value for a in answers] == ["on Monday", "yes", "no", "unknown", "tape"]
    assert [a.details["kind"] for a in answers] == ["span", "yes", "no", "unknown", "span"]
    scores = task.evaluate(records, answers)
    assert set(scores) == {"f1", "exact", "in_domain_f1", "news_f1"} <= set(SCORES)
    assert scores["f1"] > 0.85  # two people do not say the same of Monday
    rows = json.loads(task.files(records, features, outputs)["predictions.json"])
    assert rows[1] == {"id": "S", "turn_id": 2, "answer": "yes"} and len(rows) == 5
    assert task.fitted(records, features, outputs) is task and parse_task(task.to_json()) == task


def test_a_story_without_text(tokenizer: Tokenizer) -> None:
    record = coqa(1, "yes", context="")
    task = CoqaTask()
    features = task.features([record], tokenizer, labelled=False)
    rows = np.zeros((len(features[0].encoded), class_column(4)), np.float32)
    rows[:, 1] = -1
    assert task.answers([record], features, [rows])[0].value == "unknown"
    other = replace(QUAC[0], context="")
    features = QuacTask().features([other], tokenizer, labelled=False)
    rows = np.zeros((len(features[0].encoded), class_column(7)), np.float32)
    rows[:, 1] = -1
    assert QuacTask().answers([other], features, [rows])[0].value == CANNOT_ANSWER


def test_kinds() -> None:
    assert [answer_kind(x) for x in ("Yes.", "NO", "unknown", "yes, he did", "", "span")] == [
        "yes", "no", "unknown", "span", "span", "span",
    ]  # fmt: skip
    assert KINDS[0] == "span"


WORDS = st.lists(
    st.sampled_from(["the", "red", "kite,", "Kite", "tore", "it.", "“a", "--", "Monday"]),
    max_size=9,
)


@given(WORDS, WORDS)
def test_the_learnt_span_has_the_best_f1(story: list[str], answer: list[str]) -> None:
    text, told = "Then " + " ".join(story) + " now", " ".join(answer)
    evidence = AnswerSpan(text[5:-4], 5, len(text) - 4) if story else None
    record = coqa(1, told, context=text, evidence=None)
    record = replace(record, evidence=evidence)
    if answer_kind(told) != "span" or evidence is None:
        return
    found = learnt_span(record)
    assert found is not None and 5 <= found[0] <= found[1] <= len(text) - 4
    words = evidence.text.split()
    parts = [" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]
    wanted = normalize_answer(told).split()
    best = max((f1_or_empty(told, part) for part in parts), default=0.0) if wanted else 0.0
    if best > 0:
        assert f1_or_empty(told, text[found[0] : found[1]]) == pytest.approx(best)
        sizes = [len(p.split()) for p in parts if abs(f1_or_empty(told, p) - best) < 1e-9]
        assert len(text[found[0] : found[1]].split()) == min(sizes)
    else:
        assert text[found[0] : found[1]] == evidence.text


def test_learnt_spans_of_the_other_kinds() -> None:
    assert learnt_span(COQA[1]) == (47, 71) and learnt_span(COQA[3]) is None
    assert learnt_span(COQA[4]) == (66, 70) and learnt_span(coqa(7, "the sea")) is None
    start, end = learnt_span(COQA[0]) or (0, 0)
    assert TEXT[start:end] == "on Monday"


def test_scoring_needs_labels() -> None:
    with pytest.raises(DataError, match="no known answer"):
        QuacTask().evaluate([replace(QUAC[0], reference=None)], [Answer("x", 1.0)])
    with pytest.raises(DataError, match="no known answer"):
        CoqaTask().evaluate([coqa(1)], [Answer("x", 1.0)])
    scores = QuacTask().evaluate(QUAC[:1], [Answer("tore it", 1.0)])
    assert scores["f1"] == 1.0 and scores["yes_no"] == 0.0


def test_baselines_faults_and_what_is_shown() -> None:
    quac_found = QuacTask().baselines(QUAC, QUAC)
    assert [b.name for b in quac_found] == ["no_answer", "first_sentence", "overlap"]
    assert quac_found[0].scores["f1"] == 0.25 and quac_found[0].scores["yes_no"] == 0.25
    coqa_found = CoqaTask().baselines(COQA, COQA)
    assert [b.name for b in coqa_found] == ["most_frequent", "first_sentence", "overlap"]
    assert CoqaTask().baselines([], COQA)[0].method == "always 'yes'"
    (told,) = QuacTask().faults(QUAC * 3, [Answer(CANNOT_ANSWER, 1.0)] * 12)
    assert "all 12 answers are empty" in told
    (told,) = CoqaTask().faults(COQA * 2, [Answer("unknown", 1.0)] * 12)
    assert "all 12 answers are empty" in told
    assert CoqaTask().faults([COQA[3]] * 12, [Answer("unknown", 1.0)] * 12) == []
    shown = QuacTask().show(QUAC[0])
    assert shown["question"] == f"Who paid? | {CANNOT_ANSWER} | What then? | What did the wind do?"
    assert shown["label"] == ["tore it"] and CoqaTask().show(COQA[0])["label"] == [
        "on Monday",
        "Monday",
    ]
    assert QuacTask().show(replace(QUAC[0], answers=()))["label"] is None
    json.dumps([shown, CoqaTask().show(COQA[0])])


def test_options() -> None:
    for name in ("quac", "coqa"):
        kind = RECORD_KINDS.get(name)
        task: Any = kind.make_task([], {"max_length": 64})
        assert task.name == name and task.max_query_length == 30 and task.head == "span_joint"
        with pytest.raises(SettingsError, match="did you mean 'history_turns'"):
            kind.make_task([], {"history_turn": 3})
    assert len(CoqaTask().config_labels()) == 4 and len(QuacTask().config_labels()) == 7


@pytest.mark.parametrize("name", ["quac", "coqa"])
def test_a_small_model_learns_a_dialogue(tokenizer: Tokenizer, name: str) -> None:
    asked = ["What did the wind do?", "Who paid?", "What then?", "When?", "What did she build?"]
    source: list[Any] = QUAC[:3] if name == "quac" else COQA[:5]
    records = [replace(record, question=asked[i], history=()) for i, record in enumerate(source)]
    task: Any = RECORD_KINDS.get(name).make_task(records, {"max_length": 64})
    config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
        hidden_size=32, embedding_size=32, num_attention_heads=2, intermediate_size=64,
        num_hidden_layers=1, max_position_embeddings=64, id2label=task.config_labels(),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0,
        litebert={"head": task.head},
    )  # fmt: skip
    torch.manual_seed(0)
    model = AlbertWithHead(config, task.head)
    encoded = [f.encoded for f in task.features(records, tokenizer, labelled=True)]
    settings = TrainSettings(
        max_steps=80, batch_size=5, learning_rate=8e-3, threads=1, precision="fp32"
    )
    fit(model, encoded, settings, step_loss=make_step_loss(task.loss, task))
    features = task.features(records, tokenizer, labelled=False)
    outputs = predict_outputs(model, [f.encoded for f in features])
    assert outputs is not None
    scores = task.evaluate(records, task.answers(records, features, outputs))
    assert scores["f1"] >= 0.7  # always the same answer: 0.33 at most


def test_the_real_sample(shared: Path) -> None:
    records = read_quac(
        shared / "data/quac_sample", ReadOptions(on_bad_row="skip"), True
    ).train.records
    tokenizer = Tokenizer.from_pretrained(shared / "models/albert-english-vocab/30k-clean.model")
    task = QuacTask()
    features, outputs = oracle(task, records, tokenizer, QUAC_GROUPS)
    answers = task.answers(records, features, outputs)
    assert [a.value for a in answers] == [q.reference.text for q in records if q.reference]
    scores = task.evaluate(records, answers)
    assert scores["yes_no"] == scores["followup"] == 1.0 and 0 < scores["human_f1"] < 1
