"""Scores of SQuAD, QuAC and CoQA against slow transcriptions of their rules."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.coqa_scores import DOMAINS, coqa_scores, turn_score
from litebert.tasks.quac_scores import QuacAnswer, agreed, human_f1, left_out_f1, quac_scores
from litebert.tasks.squad_scores import (
    best_over,
    best_threshold,
    character_f1,
    exact,
    f1_or_empty,
    normalize_answer,
    squad_scores,
    squad_v2_scores,
    word_f1,
)

NONE = "CANNOTANSWER"
WORDS = st.sampled_from(["a", "the", "The", "An", "red", "Red", "kite.", "kite", "'kite'", "--", "", " ", "\n",
                         "12", "1,2", "ﬁre", "Ärger", "İ", "凧", "the-kite", "answer"])  # fmt: skip
TEXTS = st.lists(WORDS, max_size=5).map(" ".join) | st.text(max_size=8)
GOLDS = st.lists(TEXTS, min_size=1, max_size=4)


def slow_normal(text: str) -> str:
    """Lower case, no ASCII punctuation, no a, an, the, single blanks: one character at a time."""
    kept = "".join(c for c in text.lower() if c not in set(string.punctuation))
    words = [" " if part in ("a", "an", "the") else part for part in re.split(r"(\w+)", kept)]
    return " ".join("".join(words).split())


def slow_f1(gold: str, prediction: str, *, second_version: bool) -> float:
    a, b = slow_normal(gold).split(), slow_normal(prediction).split()
    if second_version and not (a and b):
        return float(not a and not b)
    left, common = list(a), 0
    for word in b:
        if word in left:
            left.remove(word)
            common += 1
    if common == 0:
        return 0.0
    p, r = common / len(b), common / len(a)
    return 2 * p * r / (p + r)


@given(TEXTS, TEXTS)
def test_normalisation_exact_match_and_f1(gold: str, text: str) -> None:
    assert normalize_answer(text) == slow_normal(text)
    assert exact(gold, text) == float(slow_normal(gold) == slow_normal(text))
    assert word_f1(gold, text) == pytest.approx(
        slow_f1(gold, text, second_version=False), abs=1e-12
    )
    assert f1_or_empty(gold, text) == pytest.approx(
        slow_f1(gold, text, second_version=True), abs=1e-12
    )
    assert character_f1(gold, text) == character_f1(text, gold)
    assert 0 <= character_f1(gold, text) <= 1 and character_f1(text, text) == 1


def test_known_cases() -> None:
    assert normalize_answer(" The  kite, an\u00a0a RED\tkite!") == "kite red kite"
    assert (exact("", "a"), word_f1("", ""), f1_or_empty("", "the"), f1_or_empty("", "x")) == (
        1,
        0,
        1,
        0,
    )
    assert word_f1("red paper kite", "red kite") == pytest.approx(0.8)
    assert character_f1("東京タワー", "東京") == pytest.approx(2 * 1 * 0.4 / 1.4)
    assert best_over(exact, [], "x") == 0


@given(st.lists(st.tuples(GOLDS, TEXTS), min_size=1, max_size=5))
def test_first_version(pairs: list[tuple[list[str], str]]) -> None:
    scores = squad_scores([g for g, _ in pairs], [t for _, t in pairs])
    same = [max(slow_normal(g) == slow_normal(t) for g in golds) for golds, t in pairs]
    f1 = [max(slow_f1(g, t, second_version=False) for g in golds) for golds, t in pairs]
    assert scores == {
        "exact": pytest.approx(sum(same) / len(pairs)),
        "f1": pytest.approx(sum(f1) / len(pairs)),
    }


def test_nothing_to_score() -> None:
    assert squad_scores([], []) == {"exact": 0.0, "f1": 0.0}
    assert quac_scores([])["f1"] == 0.0


def slow_v2(rows: Sequence[tuple[list[str], str, float]], threshold: float) -> dict[str, float]:
    """The published program, question by question, with one list for each part."""
    result: dict[str, float] = {}
    for name in ("exact", "f1"):
        raw, final = [], []
        for golds, text, null in rows:
            real = [g for g in golds if slow_normal(g)] or [""]
            if name == "exact":
                value = float(max(slow_normal(g) == slow_normal(text) for g in real))
            else:
                value = max(slow_f1(g, text, second_version=True) for g in real)
            raw.append(value)
            final.append(float(len(golds) == 0) if null > threshold else value)
        result[name] = sum(final) / len(final)
        for prefix, wanted in (("HasAns", True), ("NoAns", False)):
            part = [value for value, row in zip(final, rows, strict=True) if bool(row[0]) == wanted]
            if part:
                result[f"{prefix}_{name}"] = sum(part) / len(part)
        current = best = sum(1 for row in rows if not row[0])
        where = 0.0
        for i in sorted(range(len(rows)), key=lambda k: rows[k][2]):
            current += raw[i] if rows[i][0] else (-1 if rows[i][1] else 0)
            if current > best:
                best, where = current, rows[i][2]
        result[f"best_{name}"], result[f"best_{name}_thresh"] = best / len(rows), where
    return result


NULLS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1)
ROWS = st.lists(st.tuples(st.just([]) | GOLDS, TEXTS, NULLS), min_size=1, max_size=7)


@given(ROWS, NULLS)
def test_second_version(rows: list[tuple[list[str], str, float]], threshold: float) -> None:
    found = squad_v2_scores(
        [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], threshold
    )
    assert found == {
        key: pytest.approx(value, abs=1e-12) for key, value in slow_v2(rows, threshold).items()
    }


@given(ROWS)
def test_the_best_threshold_is_reached_where_null_scores_differ(
    rows: list[tuple[list[str], str, float]],
) -> None:
    rows = [(g, t, i / len(rows) + 0.01) for i, (g, t, _) in enumerate(rows)]
    golds, texts, nulls = ([r[k] for r in rows] for k in range(3))
    best = squad_v2_scores(golds, texts, nulls, 0.0)
    assert (
        squad_v2_scores(golds, texts, nulls, best["best_f1_thresh"])["f1"] >= best["best_f1"] - 1e-9
    )
    for threshold in (*nulls, 0.0, 2.0):
        # An empty prediction for a question without answer is right on both sides.
        assert squad_v2_scores(golds, texts, nulls, threshold)["f1"] <= best[
            "best_f1"
        ] + 1e-9 or any(
            not g and not slow_normal(t) and t for g, t in zip(golds, texts, strict=True)
        )


def test_gold_answers_without_words_do_not_count() -> None:
    scores = squad_v2_scores([["the"], ["--", "kite"]], ["", "kite"], [0.0, 0.0], 0.5)
    assert scores["exact"] == scores["f1"] == scores["HasAns_exact"] == 1.0
    assert "NoAns_exact" not in scores
    assert best_threshold([], [], [], []) == (0.0, 0.0)


# QuAC: the published scorer, slowly.

SPANS = st.lists(TEXTS | st.just(NONE), min_size=1, max_size=5)


def slow_overlap(prediction: str, gold: str) -> float:
    if gold == NONE:
        return float(prediction == NONE)
    return slow_f1(gold, prediction, second_version=False)


def slow_quac(rows: Sequence[tuple[str, list[str], str, bool, bool]]) -> dict[str, float]:
    f1, unfiltered, human, yes_no, follow, none = [], [], [], [], [], []
    equal = total = 0
    good: dict[str, bool] = {}
    for dialogue, golds, text, right, hint in rows:
        refs = (
            [NONE]
            if golds.count(NONE) >= len(golds) - golds.count(NONE)
            else [g for g in golds if g != NONE]
        )
        if len(refs) == 1:
            hf1, score = 1.0, slow_overlap(text, refs[0])
        else:
            hf1 = score = 0.0
            for i in range(len(refs)):
                rest = refs[:i] + refs[i + 1 :]
                hf1 += max(slow_f1(refs[i], r, second_version=False) for r in rest) / len(refs)
                score += max(slow_overlap(text, r) for r in rest) / len(refs)
        unfiltered.append(score)
        good.setdefault(dialogue, True)
        if abs(hf1 - 0.4) < 1e-9 or abs(hf1 - score) < 1e-9:
            hf1, score = round(hf1, 9), round(score, 9)
        if hf1 < 0.4:
            continue
        human.append(hf1)
        f1.append(score)
        yes_no.append(right)
        follow.append(hint)
        if refs == [NONE]:
            none.append(score)
        total += 1
        if score >= hf1:
            equal += 1
        else:
            good[dialogue] = False
    mean = lambda values: sum(values) / len(values) if values else 0.0  # noqa: E731
    return {
        "f1": mean(f1), "unfiltered_f1": mean(unfiltered), "human_f1": mean(human),
        "heq_q": equal / total if total else 0.0, "heq_d": mean(list(good.values())),
        "yes_no": mean(yes_no), "followup": mean(follow), "unanswerable_accuracy": mean(none),
    }  # fmt: skip


TURNS = st.lists(st.tuples(st.sampled_from("AB"), SPANS, TEXTS | st.just(NONE), st.booleans(), st.booleans()),
                 min_size=1, max_size=6)  # fmt: skip


@given(TURNS)
def test_quac(rows: list[tuple[str, list[str], str, bool, bool]]) -> None:
    found = quac_scores([QuacAnswer(*row) for row in rows])
    assert found == {key: pytest.approx(value, abs=1e-9) for key, value in slow_quac(rows).items()}


@given(SPANS)
def test_a_person_equals_people(golds: list[str]) -> None:
    golds = agreed(golds)
    scores = quac_scores([QuacAnswer("d", [golds[0]] * 3, golds[0])])
    if golds[0] == NONE or slow_normal(golds[0]):
        assert scores["heq_q"] == scores["heq_d"] == 1.0
    assert 0 <= human_f1(golds) <= 1 and 0 <= left_out_f1(golds, golds[0]) <= 1


def test_quac_majority() -> None:
    assert agreed(["x", NONE]) == [NONE] and agreed(["x", "y", NONE]) == ["x", "y"]
    assert agreed([]) == [NONE]
    low = QuacAnswer("d", ["one two", "three four"], "one two", True, True)
    scores = quac_scores([low])
    assert scores["f1"] == 0.0 and scores["unfiltered_f1"] == 0.5 and scores["heq_d"] == 1.0


# CoQA: as the rules are told in words.


@given(
    st.lists(
        st.tuples(GOLDS, TEXTS, st.sampled_from([*DOMAINS, "mine", ""])), min_size=1, max_size=5
    )
)
def test_coqa(rows: list[tuple[list[str], str, str]]) -> None:
    found = coqa_scores([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])
    f1: dict[str, list[float]] = {}
    same: list[float] = []
    for golds, text, source in rows:
        sets = (
            [golds[:i] + golds[i + 1 :] for i in range(len(golds))] if len(golds) > 1 else [golds]
        )
        value = sum(
            max(slow_f1(g, text, second_version=True) for g in rest) for rest in sets
        ) / len(sets)
        same.append(
            sum(max(slow_normal(g) == slow_normal(text) for g in rest) for rest in sets) / len(sets)
        )
        for name in {
            "f1",
            f"{DOMAINS.get(source)}_f1",
            "out" if source in ("science", "reddit") else "in",
        }:
            f1.setdefault(name, []).append(value)
    wanted = {name: sum(values) / len(values) for name, values in f1.items()}
    wanted |= {f"{x}_domain_f1": wanted.pop(x) for x in ("in", "out") if x in wanted}
    wanted["exact"] = sum(same) / len(same)
    wanted.pop("None_f1", None)
    assert found == {name: pytest.approx(value) for name, value in wanted.items()}


def test_coqa_without_references() -> None:
    assert turn_score(exact, [], "x") == 0.0 and turn_score(exact, ["x"], "X") == 1.0
    assert coqa_scores([], [], []) == {"f1": 0.0, "exact": 0.0}
