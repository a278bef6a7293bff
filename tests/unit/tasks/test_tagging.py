"""The task of tagging: labels on pieces, answers, scores, signs of collapse, and its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.tagged.record import Span, TaggedText, join_words, split_words
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.tasks.base import TASKS, parse_task
from litebert.tasks.records import RECORD_KINDS, Answer
from litebert.tasks.tagging import SequenceTagging, make_tagging
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

HERE = Path("x.conll")
NAMES = ("ada", "bob", "lee", "zoe", "max", "tim")
TOWNS = ("paris", "rome", "oslo", "bonn")


def tagged(
    words: str, tags: str | None, *, number: int = 1, intent: str | None = None
) -> TaggedText:
    """A record of words and IOB2 tags."""
    from litebert.data.tagged.schemes import entities

    text, places = join_words(words.split())
    spans = None
    if tags is not None:
        parts = [("O", "") if tag == "O" else (tag[0], tag[2:]) for tag in tags.split()]
        spans = tuple(Span(places[a][0], places[b - 1][1], kind) for a, b, kind in entities(parts))
    return TaggedText(text, places, spans, str(number), f"s{number}", HERE, number, intent)


RECORDS = [
    tagged("ada met bob lee in paris", "B-PER O B-PER I-PER O B-LOC", number=1),
    tagged("nobody met anybody", "O O O", number=2),
    tagged("rome", "B-LOC", number=3),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = [record.text for record in RECORDS] + [" ".join(NAMES), " ".join(TOWNS)]
    return train_vocabulary(texts * 3, 50, tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def task() -> SequenceTagging:
    return make_tagging(RECORDS, {"max_length": 32})


def sure_outputs(task: Any, features: list[Any], rng: np.random.Generator) -> list[np.ndarray]:
    """Outputs that say the labels, with noise elsewhere."""
    outputs: list[np.ndarray] = []
    for feature in features:
        rows = rng.normal(size=(len(feature.encoded), len(task.config_labels())))
        labels = feature.encoded.label
        chosen = np.flatnonzero(labels >= 0)
        rows[chosen, labels[chosen]] += 50
        outputs.append(rows.astype(np.float32))
    return outputs


def test_types_follow_from_the_records(task: SequenceTagging) -> None:
    assert task.types == ("LOC", "PER")
    assert task.config_labels() == {0: "O", 1: "B-LOC", 2: "I-LOC", 3: "B-PER", 4: "I-PER"}
    assert (task.name, task.head, task.loss, task.problem_type) == (
        "tagging",
        "token",
        "labels",
        None,
    )
    assert make_tagging(RECORDS, {"scheme": "iobes"}).config_labels()[4] == "S-LOC"


def test_the_first_piece_of_a_word_is_labelled(task: SequenceTagging, tokenizer: Tokenizer) -> None:
    (feature, *_) = task.features(RECORDS, tokenizer, labelled=True)
    encoding = tokenizer.encode(RECORDS[0].text)
    words = RECORDS[0].words
    expected = [-100] * len(encoding.ids)
    seen: set[int] = set()
    for token, (a, b) in enumerate(encoding.offsets):
        for word, (start, end) in enumerate(words):
            if max(a, start) < min(b, end) and word not in seen:
                seen.add(word)
                expected[token] = [3, 0, 3, 4, 0, 1][word]
    assert feature.encoded.ids.tolist() == encoding.ids
    assert isinstance(feature.encoded.label, np.ndarray)
    assert feature.encoded.label.tolist() == expected


def test_all_pieces_can_be_labelled(tokenizer: Tokenizer) -> None:
    task = make_tagging(RECORDS, {"label_pieces": "all"})
    record = tagged("xqxq paris", "B-PER B-LOC")
    (feature,) = task.features([record], tokenizer, labelled=True)
    labels = feature.encoded.label
    assert isinstance(labels, np.ndarray)
    offsets = tokenizer.encode(record.text).offsets
    pieces = [labels[i] for i, (a, b) in enumerate(offsets) if a < b]
    size = sum(a < 4 and a < b for a, b in offsets)
    assert size > 1 and pieces[:size] == [3] + [4] * (size - 1)
    assert pieces[size] == 1 and set(pieces[size + 1 :]) <= {2}


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
@pytest.mark.parametrize("max_length", [4, 7, 64])
def test_labels_come_back_as_spans(scheme: str, max_length: int, tokenizer: Tokenizer) -> None:
    task = make_tagging(RECORDS, {"scheme": scheme, "max_length": max_length})
    features = task.features(RECORDS, tokenizer, labelled=False)
    labelled = task.features(RECORDS, tokenizer, labelled=True)
    outputs = {
        (f.encoded.index, f.details.pieces): rows
        for f, rows in zip(
            labelled, sure_outputs(task, labelled, np.random.default_rng(1)), strict=True
        )
    }
    noise = np.zeros((max_length, len(task.config_labels())), np.float32)
    answers = task.answers(
        RECORDS,
        features,
        [
            outputs.get((f.encoded.index, f.details.pieces), noise[: len(f.encoded)])
            for f in features
        ],
    )
    for record, answer in zip(RECORDS, answers, strict=True):
        assert [(e["start"], e["end"], e["label"]) for e in answer.value] == list(
            record.spans or ()
        )
        assert all(e["text"] == record.text[e["start"] : e["end"]] for e in answer.value)
        assert 0.99 < answer.score <= 1.0
    scores = task.evaluate(RECORDS, answers)
    assert scores["entity_f1"] == scores["token_accuracy"] == scores["entity_f1_macro"] == 1.0
    assert json.loads(json.dumps(answers[0].to_json()))["prediction"][0]["label"] == "PER"


@given(st.integers(0, 10_000))
def test_no_answer_breaks_the_scheme(seed: int) -> None:
    """Random outputs: entities never overlap, and borders are borders of words."""
    rng = np.random.default_rng(seed)
    tokenizer = _letters()
    task = make_tagging(RECORDS, {"max_length": 5})
    text = "".join(rng.choice(list("ab ,.\x01"), size=int(rng.integers(0, 30))).tolist())
    record = TaggedText(text, split_words(text), None, "1", "1", HERE, 1)
    features = task.features([record], tokenizer, labelled=False)
    outputs = [rng.normal(size=(len(f.encoded), 5)) for f in features]
    (answer,) = task.answers([record], features, outputs)
    last = 0
    for entity in answer.value:
        assert last <= entity["start"] < entity["end"] <= len(text)
        assert 0.0 < entity["score"] <= 1.0
        assert entity["text"] == entity["text"].strip()
        last = entity["end"]


_CACHE: list[Tokenizer] = []


def _letters() -> Tokenizer:
    if not _CACHE:
        import tempfile

        folder = tempfile.mkdtemp()
        _CACHE.append(train_vocabulary(["a b ab, ba. aab", "b a, b. a"] * 3, 20, Path(folder)))
    return _CACHE[0]


def test_unlabelled_texts_have_features_and_no_label(
    task: SequenceTagging, tokenizer: Tokenizer
) -> None:
    records = [tagged("", None), tagged("\x01", None), tagged("ada", None)]
    features = task.features(records, tokenizer, labelled=False)
    assert [f.encoded.index for f in features] == [0, 1, 2]
    assert all(f.encoded.label is None for f in features)
    outputs = [np.ones((len(f.encoded), 5), np.float32) for f in features]
    assert [a.value for a in task.answers(records, features, outputs)][:2] == [[], []]
    with pytest.raises(DataError, match="no tags"):
        task.features(records, tokenizer, labelled=True)
    with pytest.raises(DataError, match="no tags"):
        task.evaluate(records[2:], [Answer([], 1.0)])


def test_what_cannot_be_learnt_is_left_out(task: SequenceTagging, tokenizer: Tokenizer) -> None:
    strange = tagged("ada sang", "B-SONG I-SONG")
    assert task.features([strange, tagged("\x01", "B-PER")], tokenizer, labelled=True) == []
    half = tagged("ada sang bob", "B-SONG I-SONG B-PER")
    (feature,) = task.features([half], tokenizer, labelled=True)
    assert feature.encoded.label is not None
    assert sorted(set(np.asarray(feature.encoded.label).tolist())) == [-100, 3]


def test_outputs_that_do_not_fit(task: SequenceTagging, tokenizer: Tokenizer) -> None:
    features = task.features(RECORDS, tokenizer, labelled=False)
    with pytest.raises(DataError, match="do not belong together"):
        task.answers(RECORDS, features, [np.zeros((len(f.encoded), 2)) for f in features])
    with pytest.raises(DataError, match="diverged"):
        task.answers(RECORDS, features, [np.full((len(f.encoded), 5), np.nan) for f in features])


def test_spans_that_cut_words_are_learnt_by_the_words_they_touch(tokenizer: Tokenizer) -> None:
    text = "ada-lee met bob"
    record = TaggedText(
        text, split_words(text), (Span(1, 6, "PER"), Span(13, 15, "PER")), "1", "1", HERE, 1
    )
    task = make_tagging([record], {"units": "words"})
    assert "2 of 2 spans begin or end inside a word and are learnt as" in task.explain([record])[0]
    (feature,) = task.features([record], tokenizer, labelled=True)
    labels = np.asarray(feature.encoded.label)
    assert labels[labels >= 0].tolist()[:1] == [1]
    (answer,) = task.answers(
        [record], [feature], sure_outputs(task, [feature], np.random.default_rng(0))
    )
    assert [e["text"] for e in answer.value] == ["ada-lee", "bob"]
    assert task.evaluate([record], [answer])["entity_f1"] == 0.0  # borders differ
    assert task.evaluate([record], [answer])["token_accuracy"] == 1.0


@pytest.mark.parametrize("kind", ["tagging", "intent_slots"])
def test_spans_that_cut_many_words_are_answered_by_characters(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Korean endings and Hebrew prefixes stand in one word with the name."""
    texts = ("김민수는 부산에서 일한다", "דנה גרה בחיפה", "e\u0301va\u0301ben ul")
    spans = (
        (Span(0, 3, "PER"), Span(5, 7, "LOC")), (Span(0, 3, "PER"), Span(9, 13, "LOC")),
        (Span(0, 5, "PER"),),
    )  # fmt: skip
    records = [
        TaggedText(text, split_words(text), found, str(n), str(n), HERE, n, "ask")
        for n, (text, found) in enumerate(zip(texts, spans, strict=True))
    ]
    task: Any = RECORD_KINDS.get(kind).make_task(records, {"max_length": 32})
    assert task.units == "characters" and parse_task(task.to_json()) == task
    assert (
        "4 of 5 spans begin or end inside a word: characters are tagged" in task.explain(records)[0]
    )
    letters = train_vocabulary([" ".join(t) for t in texts] * 4, 60, tmp_path_factory.mktemp("v"))
    features = task.features(records, letters, labelled=True)
    outputs = sure_outputs(task, features, np.random.default_rng(0))
    answers = task.answers(records, features, outputs)
    values = [a.value["slots"] if kind == "intent_slots" else a.value for a in answers]
    assert [tuple(Span(e["start"], e["end"], e["label"]) for e in v) for v in values] == list(spans)
    few = [*[tagged("ada met bob", "B-PER O B-PER", intent="ask")] * 60, records[1]]
    words: Any = RECORD_KINDS.get(kind).make_task(few, {})
    assert words.units == "words", "a few slips do not decide"
    assert RECORDS[0].spans and make_tagging(RECORDS, {}).explain(RECORDS) == []


def answer(*spans: tuple[int, int, str]) -> Answer:
    return Answer([{"start": a, "end": b, "label": c} for a, b, c in spans], 0.5)


def test_signs_of_collapse(task: SequenceTagging) -> None:
    many = RECORDS * 6
    good = [answer(*(record.spans or ())) for record in many]
    assert task.faults(many, good) == []
    assert task.faults(RECORDS, [answer()] * 3) == []  # too few to say
    (nothing,) = task.faults(many, [answer()] * 18)
    assert "no entity was answered" in nothing and "learning rate" in nothing
    one = [answer(*((a, b, "PER") for a, b, _ in record.spans or ())) for record in many]
    assert any(
        "all 24 answered entities are of the type 'PER'" in f for f in task.faults(many, one)
    )
    whole = [answer((0, len(record.text), "LOC")) for record in many]
    assert any("nearly every word" in f for f in task.faults(many * 2, whole * 2))
    moved = [answer(*((a, b + 1, c) for a, b, c in record.spans or ())) for record in many]
    assert any("other borders" in f for f in task.faults(many, moved))
    strange = [*many, tagged("ada sang", "O B-SONG")]
    assert any("SONG" in f and "missed" in f for f in task.faults(strange, [*good, answer()]))
    third = make_tagging([*RECORDS, tagged("x", "B-BIG")], {})
    big = [*many, *[tagged("x y z", "B-BIG O O")] * 12]
    assert any("never answered: BIG" in f for f in third.faults(big, [*good, *[answer()] * 12]))


def test_the_baseline_is_each_words_usual_tag(task: SequenceTagging) -> None:
    train = [*RECORDS, tagged("bob met rome", "B-PER O B-ORG"), tagged("rome", "B-ORG")]
    held = [tagged("bob lee met rome zoe", "B-PER I-PER O B-LOC B-PER")]
    (found,) = task.baselines(train, held)
    # rome: twice B-ORG, once B-LOC; zoe was not seen.
    assert found.name == "word_majority"
    assert found.scores["entity_precision"] == 0.5
    assert found.scores["entity_recall"] == pytest.approx(1 / 3)
    assert found.scores["token_accuracy"] == pytest.approx(3 / 5)
    with pytest.raises(DataError, match="training texts"):
        task.baselines([], held)


def test_a_record_is_shown_with_its_label(task: SequenceTagging) -> None:
    shown = json.loads(json.dumps(task.show(RECORDS[0])))
    assert shown["label"][1] == {"start": 8, "end": 15, "label": "PER", "text": "bob lee"}
    assert (shown["file"], shown["line"], shown["id"]) == ("x.conll", 1, "1")
    assert task.show(tagged("ada", None))["label"] is None


def test_a_task_survives_its_file(task: SequenceTagging) -> None:
    assert parse_task(task.to_json()) == task  # type: ignore[comparison-overlap]
    assert json.loads(task.to_json())["task"] == "tagging"
    assert task.fitted([], [], []) is task
    for change in ({"types": []}, {"types": ["A", "A"]}, {"odd": 1}, {"max_length": 2},
                   {"stride": 500}, {"metric": "f1"}, {"scheme": "iob9"}, {"types": [""]}):  # fmt: skip
        with pytest.raises(CheckpointError):
            parse_task(json.dumps(json.loads(task.to_json()) | change))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_lenght": 3}, "did you mean 'max_length'"),
        ({"metric": "f1"}, "does not exist here; known: entity_f1"),
        ({"scheme": "IOB1"}, "scheme"),
        ({"stride": 127}, "would skip pieces"),
        ({"types": ["A"]}, "no setting 'types'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        make_tagging(RECORDS, options)


def test_texts_without_an_entity_cannot_be_learnt() -> None:
    with pytest.raises(DataError, match="no text has an entity"):
        make_tagging(RECORDS[1:2], {})


def test_it_is_registered() -> None:
    assert TASKS.get("tagging") is SequenceTagging  # type: ignore[comparison-overlap]
    assert "CoNLL" in RECORD_KINDS.get("tagging").help


def test_a_small_model_learns_to_tag(tokenizer: Tokenizer) -> None:
    import torch

    from litebert.model.albert import AlbertWithHead
    from litebert.model.presets import preset
    from litebert.train.evaluate import predict_outputs
    from litebert.train.loop import fit
    from litebert.train.settings import TrainSettings
    from litebert.train.step_losses import make_step_loss

    train = [tagged(f"{n} met {m} in {t}", "B-PER O B-PER O B-LOC")
             for n in NAMES[:4] for m in NAMES[:3] for t in TOWNS]  # fmt: skip
    task = make_tagging(train, {"max_length": 24})
    config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
        hidden_size=32, embedding_size=16, num_attention_heads=2, intermediate_size=48,
        num_hidden_layers=1, max_position_embeddings=24, id2label=task.config_labels(),
    )  # fmt: skip
    torch.manual_seed(0)
    model = AlbertWithHead(config, task.head)
    features = task.features(train, tokenizer, labelled=True)
    settings = TrainSettings(
        max_steps=40, batch_size=8, learning_rate=1e-2, threads=1, precision="fp32", device="cpu"
    )
    fit(model, [f.encoded for f in features], settings, step_loss=make_step_loss(task.loss, task))
    held = task.features(train[::7], tokenizer, labelled=False)
    outputs = predict_outputs(model, [f.encoded for f in held])
    assert outputs is not None
    assert task.evaluate(train[::7], task.answers(train[::7], held, outputs))["entity_f1"] > 0.9
