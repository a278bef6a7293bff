"""The tasks squad and squad_v2: from questions to official files, thresholds, collapses, and learning."""

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

from litebert.data.question_parts import AnswerSpan
from litebert.data.squad import Question
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.presets import preset
from litebert.model.span_layout import class_column
from litebert.tasks import parse_task
from litebert.tasks.records import RECORD_KINDS, Answer
from litebert.tasks.scores import SCORES
from litebert.tasks.span import SquadTask, SquadV2Task
from litebert.tasks.span_baselines import first_sentence, has_few_blanks, overlapping_sentence
from litebert.tasks.span_threshold import fit_threshold
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary
from litebert.train.evaluate import predict_outputs
from litebert.train.loop import fit
from litebert.train.settings import TrainSettings
from litebert.train.step_losses import make_step_loss

HERE = Path("questions.json")
NAMES = ("Ada", "Olle", "Mara", "Finn")
PLACES = ("mill", "lake", "tower", "farm")
CONTEXTS = [
    f"{NAMES[i]} lives at the {PLACES[j]}. {NAMES[i - 1]} went to the {PLACES[j - 1]}."
    for i in range(4)
    for j in range(4)
]


def question(
    text: str, context: str, *answers: str, number: int = 0, impossible: bool = False
) -> Question:
    spans = tuple(AnswerSpan(a, context.find(a), context.find(a) + len(a)) for a in answers)
    return Question(f"q{number}", text, context, spans, impossible, "g", HERE, number + 1)


def made(count: int, *, with_impossible: bool) -> list[Question]:
    records = []
    for n in range(count):
        context = CONTEXTS[(n * 7) % 16]
        first, second = context.split(". ")
        if with_impossible and n % 3 == 2:
            records.append(question("Why?", context, number=n, impossible=True))
            continue
        asked, part = ("Who lives?", first) if n % 2 else ("Who went?", second)
        records.append(question(asked, context, part.split()[0], number=n))
    return records


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = [*CONTEXTS, "Who lives?", "Who went?", "Why?"]
    return train_vocabulary(texts * 2, 60, tmp_path_factory.mktemp("vocabulary"))


def oracle(
    task: SquadTask | SquadV2Task, records: list[Question], tokenizer: Tokenizer, noise: float = 0.0
):
    """Features, and outputs that say what the labels say."""
    rng = np.random.default_rng(0)
    features = task.features(records, tokenizer, labelled=False)
    outputs = []
    for feature, labelled in zip(
        features, task.features(records, tokenizer, labelled=True), strict=True
    ):
        first, last, *impossible = np.asarray(labelled.encoded.label).tolist()
        rows = np.full(
            (len(feature.encoded), class_column(1) if task.is_joint else 2), -10.0, np.float32
        )
        rows[:, 1] = -1 if task.is_joint else -10
        if task.is_joint:
            rows[first, 0], rows[first, 1], rows[last, 2] = -0.1, 0, -0.1
            rows[:, class_column()] = (3 if impossible[0] else -3) + noise * rng.normal()
        else:
            rows[first, 0], rows[last, 1] = 5, 5
        outputs.append(rows)
    return features, outputs


@pytest.mark.parametrize("kind", [SquadTask, SquadV2Task])
def test_the_labels_give_full_scores(tokenizer: Tokenizer, kind: Any) -> None:
    records = made(30, with_impossible=kind is SquadV2Task)
    for length in (200, 20):  # the second: many windows
        task = kind(max_length=length, max_query_length=8, doc_stride=5)
        features, outputs = oracle(task, records, tokenizer)
        assert (len(features) == len(records)) == (length == 200)
        answers = task.answers(records, features, outputs)
        scores = task.evaluate(records, answers)
        assert scores["exact"] == scores["f1"] == 1.0 and task.metric in scores
        assert set(scores) <= set(SCORES) | {"best_exact_thresh", "best_f1_thresh"}
        assert task.faults(records, answers) == []
        for record, answer in zip(records, answers, strict=True):
            json.dumps(answer.to_json(), allow_nan=False)
            assert 0 <= answer.score <= 1
            if answer.value:
                assert (
                    record.context[answer.details["start"] : answer.details["end"]] == answer.value
                )


def test_official_files(tokenizer: Tokenizer) -> None:
    records = made(12, with_impossible=True)
    task = SquadV2Task(max_length=64, max_query_length=8)
    features, outputs = oracle(task, records, tokenizer)
    files = {
        name: json.loads(text) for name, text in task.files(records, features, outputs).items()
    }
    assert set(files) == {"predictions.json", "nbest_predictions.json", "null_odds.json"}
    ids = [record.id for record in records]
    assert all(list(file) == ids for file in files.values())
    for record in records:
        assert files["predictions.json"][record.id] == (
            record.answers[0].text if record.answers else ""
        )
        assert files["null_odds.json"][record.id] == (3.0 if record.is_impossible else -3.0)
        rows = files["nbest_predictions.json"][record.id]
        assert set(rows[0]) == {"text", "probability", "start_log_prob", "end_log_prob"}
        assert 0 < sum(row["probability"] for row in rows) <= 1 + 1e-9
    plain = SquadTask(max_length=64, max_query_length=8)
    records = [*made(3, with_impossible=False), question("Where?", "", number=9)]
    features = plain.features(records, tokenizer, labelled=False)
    outputs = [np.zeros((len(f.encoded), 2), np.float32) for f in features]
    files = {
        name: json.loads(text) for name, text in plain.files(records, features, outputs).items()
    }
    assert set(files) == {"predictions.json", "nbest_predictions.json"}
    assert files["predictions.json"]["q9"] == files["nbest_predictions.json"]["q9"][0]["text"] == ""
    assert plain.answers(records, features, outputs)[-1] == Answer("", 0.0)


def test_a_threshold_is_fitted_and_kept(tokenizer: Tokenizer) -> None:
    records = made(60, with_impossible=True)
    task = SquadV2Task(max_length=64, max_query_length=8)
    features, outputs = oracle(task, records, tokenizer, noise=0.5)
    for rows in outputs:
        rows[:, class_column()] += 4  # everything looks unanswerable
    before = task.evaluate(records, task.answers(records, features, outputs))
    fitted = task.fitted(records, features, outputs)
    after = fitted.evaluate(records, fitted.answers(records, features, outputs))
    assert before["f1"] < 0.5 and after["f1"] == after["best_f1"] == 1.0
    assert before["best_f1"] == 1.0 and before["NoAns_f1"] == 1.0
    assert 0.5 < fitted.null_threshold < 1
    assert parse_task(fitted.to_json()) == fitted
    plain = SquadTask()
    assert plain.fitted(records, features, outputs) is plain
    assert parse_task(plain.to_json()) == plain


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.booleans()),
                min_size=1, max_size=8))  # fmt: skip
def test_no_threshold_is_better_than_the_fitted_one(rows: list[tuple[float, float, bool]]) -> None:
    scores, nulls = [r[0] for r in rows], [r[1] for r in rows]
    none = [float(r[2]) for r in rows]

    def total(threshold: float) -> float:
        return sum(n if p > threshold else s for s, p, n in zip(scores, nulls, none, strict=True))

    fitted = fit_threshold(scores, nulls, none)
    assert 0 <= fitted <= 1
    assert total(fitted) >= max(total(t) for t in (0.0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)) - 1e-9


def test_what_cannot_be_learnt_is_left_out(tokenizer: Tokenizer) -> None:
    gone = Question("a", "Who?", "Ada lives.", (AnswerSpan("Olle", -1, -1),), False, "g", HERE, 1)
    bare = question("Who?", "Ada lives.")
    later = Question(
        "b",
        "Who?",
        "Ada lives.",
        (AnswerSpan("x", -1, -1), AnswerSpan("Ada", 0, 3)),
        False,
        "g",
        HERE,
        2,
    )
    for task in (SquadTask(), SquadV2Task()):
        features = task.features([gone, bare, later], tokenizer, labelled=True)
        assert [f.encoded.index for f in features] == [2]
        assert len(task.features([gone, bare, later], tokenizer, labelled=False)) == 3
        assert [len(f.encoded.label) for f in features] == [3 if task.is_joint else 2]  # type: ignore[arg-type]


def test_scoring_needs_labels(tokenizer: Tokenizer) -> None:
    records = [question("Who?", "Ada lives.")]
    for task in (SquadTask(), SquadV2Task()):
        with pytest.raises(DataError, match="1 of 1 questions have no known answer") as error:
            task.evaluate(records, [Answer("Ada", 1.0)])
        assert str(error.value).startswith(f"{HERE}:1: ")
        with pytest.raises(DataError, match="0 answers for 1 questions"):
            task.evaluate(records, [])
    features = SquadV2Task().features(records, tokenizer, labelled=False)
    rows = np.zeros((len(features[0].encoded), class_column(1)), np.float32)
    with pytest.raises(DataError, match="no known answer"):
        SquadV2Task().fitted(records, features, [rows])


def test_scripts_without_blanks_are_scored_by_character() -> None:
    records = [
        question("どこ？", "私は東京タワーに住んでいます。", "東京タワー", number=n)
        for n in range(3)
    ]
    task = RECORD_KINDS.get("squad").make_task(records, {})
    assert (
        isinstance(task, SquadTask) and task.unit == "characters" and task.metric == "f1_characters"
    )
    scores = task.evaluate(
        records, [Answer("東京", 1.0), Answer("東京タワー", 1.0), Answer("", 1.0)]
    )
    assert scores["f1"] == scores["exact"] == pytest.approx(1 / 3)
    assert scores["f1_characters"] == pytest.approx((4 / 7 + 1) / 3)
    told = RECORD_KINDS.get("squad_v2").make_task(records, {"unit": "words"})
    assert told.metric == "f1" and "f1_characters" not in told.evaluate(
        records, [Answer("", 1.0)] * 3
    )
    assert not has_few_blanks("") and not has_few_blanks(CONTEXTS[0])


def test_options() -> None:
    kind, records = RECORD_KINDS.get("squad_v2"), made(3, with_impossible=True)
    task = kind.make_task(records, {"max_length": 40, "n_best": 3})
    assert isinstance(task, SquadV2Task)
    assert (task.max_length, task.max_query_length, task.doc_stride) == (40, 18, 128)
    assert kind.make_task(records, {}).max_length == 384
    for options, message in (
        ({"max_lenght": 3}, "did you mean 'max_length'"),
        ({"max_length": 12, "max_query_length": 64}, "leaves no room for the passage"),
        ({"max_length": 7}, "max_length"),
        ({"max_length": True}, "expected a number"),
        ({"max_length": "long"}, "max_length"),
        ({"metric": "accuracy"}, "'accuracy' is none of f1, exact"),
        ({"unit": "letters"}, "unit"),
        ({"null_threshold": 1.5}, "null_threshold"),
    ):
        with pytest.raises(SettingsError, match=message):
            kind.make_task(records, options)
    with pytest.raises(DataError, match=r"1 of 3 questions have no answer.*squad_v2"):
        RECORD_KINDS.get("squad").make_task(records, {})
    with pytest.raises(CheckpointError, match="max_length"):
        SquadTask.from_json({"max_length": 1})
    with pytest.raises(CheckpointError, match="leaves no room"):
        SquadTask.from_json({"max_length": 20})


def test_heads_and_what_is_shown() -> None:
    record = question("Who?", "Ada lives. " * 60, "Ada", "Ada lives")
    for task, head, labels in ((SquadTask(), "span", 2), (SquadV2Task(), "span_joint", 1)):
        assert (task.head, task.loss, task.problem_type) == (head, "labels", None)
        assert len(task.config_labels()) == labels
        shown = task.show(record)
        assert shown["label"] == ["Ada", "Ada lives"] and (shown["file"], shown["line"]) == (
            str(HERE),
            1,
        )
        assert len(shown["context"]) == 300
        json.dumps(shown)
    assert SquadV2Task().show(replace(record, answers=(), is_impossible=True))["label"] == ""
    assert SquadV2Task().show(replace(record, answers=()))["label"] is None


def test_collapses_are_told_with_a_remedy() -> None:
    records = made(20, with_impossible=True)
    task = SquadV2Task()
    (told,) = task.faults(records, [Answer("", 0.9)] * 20)
    assert "all 20 answers are empty" in told and "train longer" in told and "1e-5" in told
    (told,) = SquadTask().faults(records, [Answer("", 0.0)] * 20)
    assert "too few steps" in told
    place = {"start": 4, "end": 9}
    (told,) = task.faults(records, [Answer("lives", 0.5, place)] * 20)
    assert "all 20 answers stand at the same place (characters 4 to 9)" in told
    starts = [Answer("x", 0.5, {"start": 4, "end": 9 + n}) for n in range(20)]
    (told,) = task.faults(records, starts)
    assert "start at character 4" in told
    spread = [Answer("x", 0.5, {"start": n % 2, "end": 9}) for n in range(20)]
    assert task.faults(records, spread) == []
    assert task.faults(records[:3], [Answer("", 0.9)] * 3) == []
    only_impossible = [record for record in made(60, with_impossible=True) if record.is_impossible]
    assert task.faults(only_impossible, [Answer("", 0.9)] * len(only_impossible)) == []
    unknown = [question("Who?", CONTEXTS[0])] * 20
    assert len(task.faults(unknown, [Answer("", 0.9)] * 20)) == 1


def test_baselines() -> None:
    records = made(9, with_impossible=True)
    names = {b.name: b for b in SquadV2Task().baselines(records, records)}
    assert list(names) == ["no_answer", "first_sentence", "overlap"]
    assert (
        names["no_answer"].scores["f1"]
        == names["no_answer"].scores["NoAns_f1"] / 3
        == pytest.approx(1 / 3)
    )
    assert [b.name for b in SquadTask().baselines([], made(4, with_impossible=False))] == [
        "first_sentence",
        "overlap",
    ]
    record = question(
        "Who went to the lake?", "Ada lives at the mill! Olle went to the lake.\nMara, at 3.5, sat."
    )
    assert first_sentence(record) == "Ada lives at the mill!"
    assert overlapping_sentence(record) == "Olle went to the lake."
    japanese = question("塔はどこですか", "私は湖に行く。塔は丘の上です。犬がいる。")
    assert (
        first_sentence(japanese) == "私は湖に行く。"
        and overlapping_sentence(japanese) == "塔は丘の上です。"
    )
    empty = question("Who?", "")
    assert first_sentence(empty) == overlapping_sentence(empty) == ""


@pytest.mark.parametrize("name", ["squad", "squad_v2"])
def test_a_small_model_learns_to_answer(tokenizer: Tokenizer, name: str) -> None:
    records = made(9, with_impossible=name == "squad_v2")
    task = RECORD_KINDS.get(name).make_task(records, {"max_length": 48, "max_query_length": 8})
    config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
        hidden_size=32, embedding_size=32, num_attention_heads=2, intermediate_size=64,
        num_hidden_layers=1, max_position_embeddings=48, id2label=task.config_labels(),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0,
        litebert={"head": task.head},
    )  # fmt: skip
    torch.manual_seed(0)
    model = AlbertWithHead(config, task.head)
    encoded = [f.encoded for f in task.features(records, tokenizer, labelled=True)]
    settings = TrainSettings(
        max_steps=80, batch_size=9, learning_rate=8e-3, threads=1, precision="fp32"
    )
    fit(model, encoded, settings, step_loss=make_step_loss(task.loss, task))
    features = task.features(records, tokenizer, labelled=False)
    outputs = predict_outputs(model, [f.encoded for f in features], batch_tokens=400)
    assert outputs is not None
    task = task.fitted(records, features, outputs)
    answers = task.answers(records, features, outputs)
    assert task.evaluate(records, answers)["exact"] >= 0.75  # always the same answer: 0.33 at most
    assert task.faults(records, answers) == []


def test_a_typed_question_needs_its_passage() -> None:
    task = SquadTask()
    record = task.from_text("Where is it?", "It is here.")
    assert (record.question, record.context, record.is_labelled) == (
        "Where is it?", "It is here.", False,
    )  # fmt: skip
    with pytest.raises(DataError, match="needs a passage"):
        task.from_text("Where is it?")
