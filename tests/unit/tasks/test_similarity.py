"""The task of texts to compare: features, answers, scores, faults, baselines, its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from litebert.data.batch import collate
from litebert.data.similar import SimilarRecord
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.tasks import TASKS, parse_task
from litebert.tasks.records import RECORD_KINDS, Answer
from litebert.tasks.similarity import Similarity, unit_rows
from litebert.tasks.similarity_baselines import overlap_baseline
from litebert.tasks.similarity_kinds import make_similarity
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

HERE = Path("pairs.csv")
TEXTS = ["the fox runs", "a fox ran", "the ox stands", "an ox stood", "rain falls", "it rains"]


def record(*texts: str, score: float | None = None, line: int = 1) -> SimilarRecord:
    return SimilarRecord(str(line), texts[0], HERE, line, texts, score)


PAIRS = [
    record("the fox runs", "a fox ran", score=4.5, line=2),
    record("the ox stands", "an ox stood", score=4.0, line=3),
    record("rain falls", "the ox stands", score=0.5, line=4),
    record("it rains", "rain falls", score=5.0, line=5),
]
ANCHORS = [
    record("the fox runs", "a fox ran", "the ox stands"),
    record("the ox stands", "an ox stood"),
    record("it rains", "rain falls", "a fox ran", "an ox stood"),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return train_vocabulary(TEXTS * 3, 40, tmp_path_factory.mktemp("vocabulary"))


def outputs(records: list[SimilarRecord], width: int = 6, seed: int = 0) -> list[np.ndarray]:
    """A vector for each text, the same for the same text."""
    rng = np.random.default_rng(seed)
    table = {t: rng.normal(size=width) for t in sorted({t for r in records for t in r.texts})}
    return [np.stack([table[t] for t in r.texts]).astype(np.float32) for r in records]


def test_features_hold_each_text_as_a_sequence_of_its_own(tokenizer: Tokenizer) -> None:
    task = make_similarity(PAIRS, {"max_length": 6})
    features = task.features(PAIRS, tokenizer, labelled=True)
    assert [f.encoded.label for f in features] == pytest.approx([0.9, 0.8, 0.1, 1.0])
    for feature, item in zip(features, PAIRS, strict=True):
        parts = np.split(feature.encoded.ids, np.cumsum(feature.encoded.sequence_lengths)[:-1])
        alone = [tokenizer.encode(text, max_length=6).ids for text in item.texts]
        assert [part.tolist() for part in parts] == alone
        assert not feature.encoded.type_ids.any()
    batch = collate([feature.encoded for feature in features])
    assert batch.num_examples == 4 and batch.num_sequences == 8
    anchors = make_similarity(ANCHORS, {}).features(ANCHORS, tokenizer, labelled=True)
    assert [f.encoded.num_sequences for f in anchors] == [3, 2, 4]
    assert all(f.encoded.label is None for f in anchors)
    assert task.features([], tokenizer, labelled=True) == []


def test_pairs_without_a_score_are_answered_but_not_learnt_from(tokenizer: Tokenizer) -> None:
    task = make_similarity(PAIRS, {})
    mixed = [record("it rains", "rain falls"), PAIRS[0]]
    assert [f.encoded.index for f in task.features(mixed, tokenizer, labelled=True)] == [1]
    assert len(task.features(mixed, tokenizer, labelled=False)) == 2
    with pytest.raises(DataError, match="no pair has a score"):
        task.features(mixed[:1], tokenizer, labelled=True)


def test_answers_are_cosines_in_units_of_the_scores(tokenizer: Tokenizer) -> None:
    task = make_similarity(PAIRS, {}, low=1.0, high=5.0)
    given_ = outputs(PAIRS)
    answers = task.answers(PAIRS, task.features(PAIRS, tokenizer, labelled=False), given_)
    for rows, answer in zip(given_, answers, strict=True):
        a, b = rows.astype(float)
        cosine = a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
        assert answer.score == pytest.approx(cosine)
        assert answer.value == pytest.approx(1 + 4 * cosine)
        json.dumps(answer.to_json(), allow_nan=False)
    scores = task.evaluate(PAIRS, answers)
    truth = [item.score for item in PAIRS]
    cosines = [answer.score for answer in answers]
    assert scores["spearman"] == pytest.approx(stats.spearmanr(cosines, truth).statistic)
    assert scores["pearson"] == pytest.approx(stats.pearsonr(cosines, truth).statistic)
    assert task.metric in scores
    assert task.answers([], [], []) == [] and task.fitted(PAIRS, [], []) is task
    with pytest.raises(DataError, match="no score to compare with"):
        task.evaluate([record("a", "b", line=9)], answers[:1])


def test_anchors_are_answered_by_the_rank_of_their_positive() -> None:
    task = make_similarity(ANCHORS, {})
    assert (task.loss, task.metric) == ("contrastive", "mrr_at_10")
    answers = task.answers(ANCHORS, [], outputs(ANCHORS, seed=3))
    vectors = {t: v for r, rows in zip(ANCHORS, outputs(ANCHORS, seed=3), strict=True)
               for t, v in zip(r.texts, unit_rows(rows), strict=True)}  # fmt: skip
    candidates = {t for r in ANCHORS for t in r.texts[1:]}
    reciprocal: list[float] = []
    for item, answer in zip(ANCHORS, answers, strict=True):
        own = vectors[item.anchor] @ vectors[item.positive]
        others = candidates - {item.anchor, item.positive}
        rank = 1 + sum(vectors[item.anchor] @ vectors[t] >= own for t in others)
        assert answer.details["rank"] == rank
        assert answer.details["nearest"] in candidates - {item.anchor}
        assert answer.score == pytest.approx(own)
        reciprocal.append(1 / rank)
    assert task.evaluate(ANCHORS, answers)["mrr_at_10"] == pytest.approx(np.mean(reciprocal))


def test_an_anchor_in_several_records_counts_once() -> None:
    task = make_similarity(ANCHORS, {})
    answers = [Answer(0.0, 0.0, {"rank": rank}) for rank in (1, 1, 1, 4)]
    records = [record("a", "b"), record("a", "c"), record("a", "d"), record("e", "f")]
    assert task.evaluate(records, answers) == {
        "mrr_at_10": pytest.approx((1 + 1 / 4) / 2),
        "accuracy_at_1": 0.5,
    }


def test_collapsed_vectors_are_told_with_a_remedy_and_good_ones_are_not() -> None:
    records = [record(f"text {i}", f"other {i}", score=i % 5, line=i) for i in range(40)]
    task = make_similarity(records, {})
    good = [np.random.default_rng(i).normal(size=(2, 16)) for i in range(40)]
    assert task.faults(records, task.answers(records, [], good)) == []
    narrow = [np.ones((2, 16)) + 0.05 * rows for rows in good]
    (fault,) = [
        f for f in task.faults(records, task.answers(records, [], narrow)) if "same way" in f
    ]
    assert "learning_rate" in fault and "mean cosine" in fault
    constant = [np.ones((2, 16)) for _ in records]
    assert len(task.faults(records, task.answers(records, [], constant))) == 2
    assert task.faults([], []) == []
    one = task.answers(records[:1], [], constant[:1])
    assert "background" not in one[0].details


@given(st.integers(1, 12), st.integers(0, 3))
def test_the_background_is_the_mean_cosine_with_other_groups(count: int, seed: int) -> None:
    records = [record(f"group {i % 4}", f"other {i}", score=i % 5, line=i) for i in range(count)]
    task = Similarity(score_high=5.0)
    answers = task.answers(records, [], outputs(records, seed=seed))
    for i, answer in enumerate(answers):
        found = answer.details.get("background")
        strangers = [r for r in records if r.group != records[i].group]
        assert (found is None) == (not strangers)
        assert found is None or -1 - 1e-9 <= found <= 1 + 1e-9


def test_the_task_follows_records_and_options() -> None:
    assert make_similarity([record("a", "b", score=s) for s in (0.0, 1.0)], {}).score_high == 1.0
    assert make_similarity(PAIRS, {}).score_high == 5.0
    wide = make_similarity([record("a", "b", score=s) for s in (-3.0, 40.0)], {})
    assert (wide.score_low, wide.score_high) == (-3.0, 40.0)
    told = make_similarity(PAIRS, {"dims": [4, 2], "metric": "pearson", "score_high": 10})
    assert told.dims == (4, 2) and told.metric == "pearson" and told.score_high == 10
    assert make_similarity(PAIRS, {"form": "search"}).loss == "contrastive"
    with pytest.raises(SettingsError, match="did you mean 'scale'"):
        make_similarity(PAIRS, {"scael": 3})
    with pytest.raises(SettingsError, match="no scores"):
        make_similarity(ANCHORS, {"form": "scored"})
    with pytest.raises(DataError, match="all 2 scores are 1"):
        make_similarity([record("a", "b", score=1.0)] * 2, {})
    with pytest.raises(DataError, match="no records"):
        make_similarity([], {})
    for wrong in (
        {"metric": "accuracy"}, {"dims": [1]}, {"dims": [4, 4]}, {"score_high": -1},
        {"scale": 0}, {"max_length": 2}, {"form": "other"}, {"scale": True},
    ):  # fmt: skip
        with pytest.raises(SettingsError):
            make_similarity(PAIRS, wrong)


@pytest.mark.parametrize("records", [PAIRS, ANCHORS])
def test_the_task_survives_its_file(records: list[SimilarRecord]) -> None:
    task = make_similarity(records, {"dims": [2], "symmetric": True})
    assert parse_task(task.to_json()) == task
    assert task.name in TASKS and task.head == "embedding" and task.pooling == "mean"
    values = json.loads(task.to_json())
    for wrong in ({"unheard_of": 1}, {"dims": "x"}, {"metric": 3}, {"score_low": 9.0}):
        with pytest.raises(CheckpointError):
            parse_task(json.dumps(values | wrong))


def test_kinds_are_registered_with_their_ranges() -> None:
    ranges = {"stsb": (0.0, 5.0), "sick": (1.0, 5.0), "jsts": (0.0, 5.0)}
    for name, expected in ranges.items():
        task: Any = RECORD_KINDS.get(name).make_task(PAIRS, {})
        assert (task.score_low, task.score_high) == expected
    assert RECORD_KINDS.get("similarity").make_task(ANCHORS, {}).metric == "mrr_at_10"


def test_shown_records_have_label_and_place() -> None:
    shown = make_similarity(PAIRS, {}).show(PAIRS[0])
    assert (shown["label"], shown["file"], shown["line"]) == (4.5, "pairs.csv", 2)
    assert make_similarity(ANCHORS, {}).show(ANCHORS[0])["label"] == "a fox ran"


def test_baselines_are_scored_by_the_same_rules() -> None:
    scored = make_similarity(PAIRS, {})
    names = [baseline.name for baseline in scored.baselines(PAIRS, PAIRS)]
    assert names == ["overlap", "tfidf"]
    shares = [1 / 5, 1 / 5, 0.0, 0.0]
    truth = [item.score for item in PAIRS]
    expected = stats.spearmanr(shares, truth).statistic
    assert overlap_baseline(scored, PAIRS).scores["spearman"] == pytest.approx(expected)
    search = make_similarity(ANCHORS, {})
    for baseline in search.baselines(ANCHORS, ANCHORS):
        assert set(baseline.scores) == {"mrr_at_10", "accuracy_at_1"}
        assert all(0 <= value <= 1 for value in baseline.scores.values())
    blank = [record("!", "?", score=1.0), record("?", "!", score=2.0)]
    assert next(b.name for b in scored.baselines(blank, blank)) == "overlap"


@given(st.lists(st.tuples(st.text("ab ", max_size=6), st.text("ab ", max_size=6)), min_size=1))
def test_word_overlap_of_a_search_is_jaccard(texts: list[tuple[str, str]]) -> None:
    records = [record(a, b) for a, b in texts]
    task = Similarity(form="search", metric="mrr_at_10")
    found = overlap_baseline(task, records).scores["mrr_at_10"]
    candidates = {b for _, b in texts}

    def jaccard(a: str, b: str) -> float:
        x, y = set(a.split()), set(b.split())
        return len(x & y) / len(x | y) if x | y else 0.0

    values = []
    for anchor in {a for a, _ in texts}:
        right = {b for a, b in texts if a == anchor}
        best = max(jaccard(anchor, b) for b in right)
        worse = [c for c in candidates - right - {anchor} if jaccard(anchor, c) >= best]
        values.append(1 / (1 + len(worse)) if len(worse) < 10 else 0.0)
    assert found == pytest.approx(np.mean(values))
