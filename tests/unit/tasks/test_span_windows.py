"""Windows: what they cover, where the answer is in them, and which shows a token best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.span_windows import Asked, Window, WindowSizes, make_windows
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

SENTENCE = "the red kite flew over a lake and the mill stood still while Ada’s bread baked at dawn"
WORDS = SENTENCE.split()
CONTEXT = " ".join(WORDS * 3)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(8)]
    return train_vocabulary(texts * 3, 90, tmp_path_factory.mktemp("vocabulary"))


def slow_best(bounds: list[tuple[int, int]], number: int, piece: int) -> bool:
    """The rule as officially written: a loop over all windows for each token."""
    best_score, best = None, None
    for k, (start, stop) in enumerate(bounds):
        if not start <= piece < stop:
            continue
        score = min(piece - start, stop - 1 - piece) + 0.01 * (stop - start)
        if best_score is None or score > best_score:
            best_score, best = score, k
    return best == number


def slow_bounds(total: int, room: int, stride: int) -> list[tuple[int, int]]:
    bounds, start = [], 0
    while start < total:
        length = min(total - start, room)
        bounds.append((start, start + length))
        if start + length == total:
            break
        start += min(length, stride)
    return bounds or [(0, 0)]


@given(st.data())
def test_windows_are_those_of_the_official_rule(tokenizer: Tokenizer, data: st.DataObject) -> None:
    question = " ".join(data.draw(st.lists(st.sampled_from(WORDS), max_size=6)))
    context = " ".join(
        data.draw(st.lists(st.sampled_from([*WORDS, "\u00bd", "\n", "  ", "火"]), max_size=40))
    )
    query = data.draw(st.integers(1, 10))
    sizes = WindowSizes(
        query + 4 + data.draw(st.integers(0, 30)), query, data.draw(st.integers(1, 12))
    )
    features = make_windows([None, Asked((question,), context)], tokenizer, sizes, labelled=False)
    ids = tokenizer.encode(context).segments[0].ids
    head = [tokenizer.cls_id, *tokenizer.encode(question).segments[0].ids[:query], tokenizer.sep_id]
    bounds = slow_bounds(len(ids), sizes.max_length - len(head) - 1, sizes.stride)
    assert len(features) == len(bounds)
    for number, (feature, (start, stop)) in enumerate(zip(features, bounds, strict=True)):
        example, window = feature.encoded, feature.details
        assert example.ids.tolist() == [*head, *ids[start:stop], tokenizer.sep_id]
        assert example.type_ids.tolist() == [0] * len(head) + [1] * (stop - start + 1)
        assert len(example) <= sizes.max_length and example.index == 1 and example.label is None
        assert (window.start, window.stop, window.offset) == (start, stop, len(head))
        best = [slow_best(bounds, number, piece) for piece in range(start, stop)]
        assert (window.is_best is None and all(best)) or window.is_best.tolist() == best


@given(st.data())
def test_labels_point_to_the_answer(tokenizer: Tokenizer, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(CONTEXT) - 1))
    end = data.draw(st.integers(start + 1, min(len(CONTEXT), start + 40)))
    if not CONTEXT[start:end].strip():
        return
    sizes = WindowSizes(data.draw(st.integers(30, 90)), 10, data.draw(st.integers(3, 20)))
    asked = Asked(("who",), CONTEXT, (start, end), (0, 7), (1, -100))
    features = make_windows([asked], tokenizer, sizes, labelled=True)
    told = CONTEXT[start:end]
    bare = (start + len(told) - len(told.lstrip()), start + len(told.rstrip()))
    spans = tokenizer.encode(CONTEXT).segments[0].pieces.spans
    touched = [i for i, (a, b) in enumerate(spans) if a < bare[1] and b > bare[0] and b > a]
    seen = 0
    for feature in features:
        window: Window = feature.details
        first, last, *classes = feature.encoded.label.tolist()  # type: ignore[union-attr]
        if window.start <= touched[0] and touched[-1] < window.stop:
            seen += 1
            assert classes == [0, 7]
            assert first - window.offset + window.start == touched[0]
            assert last - window.offset + window.start == touched[-1]
            a, b = window.passage.text_of(touched[0], touched[-1])
            assert CONTEXT[start:end].strip() in CONTEXT[a:b]
        else:
            assert [first, last, *classes] == [0, 0, 1, -100]
    long = len(touched) > sizes.max_length - 14
    assert seen or long or sizes.stride > 3


def test_questions_without_an_answer_keep_their_classes(tokenizer: Tokenizer) -> None:
    sizes = WindowSizes(20, 6, 4)
    features = make_windows(
        [Asked(("who",), CONTEXT, None, (1, 2))], tokenizer, sizes, labelled=True
    )
    assert len(features) > 5
    assert {tuple(f.encoded.label.tolist()) for f in features} == {(0, 0, 1, 2)}  # type: ignore[union-attr]


def test_turns_are_joined_and_the_oldest_is_cut(tokenizer: Tokenizer) -> None:
    parts = ("the red kite", "over a lake", "and the mill")
    whole = [tokenizer.encode(part).segments[0].ids for part in parts]
    query = [*whole[0], tokenizer.sep_id, *whole[1], tokenizer.sep_id, *whole[2]]
    for limit in (len(query), len(whole[2]) + 2, 2):
        (feature,) = make_windows(
            [Asked(parts, "a")], tokenizer, WindowSizes(200, limit, 5), labelled=False
        )
        assert feature.encoded.ids[1 : 1 + limit].tolist() == query[-limit:]
        assert feature.encoded.ids[1 + limit] == tokenizer.sep_id


def test_each_text_is_tokenized_once(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    encode = Tokenizer.encode_batch

    def counted(self: Tokenizer, texts: Any, *rest: Any) -> Any:
        calls.extend(texts)
        return encode(self, texts, *rest)

    monkeypatch.setattr(Tokenizer, "encode_batch", counted)
    asked = [Asked((question,), CONTEXT) for question in ("who", "what", "who", "where is")]
    features = make_windows(asked, tokenizer, WindowSizes(24, 5, 4), labelled=False)
    assert sorted(calls) == sorted([CONTEXT, "who", "what", "where is"])
    assert len({id(feature.details.passage) for feature in features}) == 1
    assert [f.encoded.index for f in features] == sorted(f.encoded.index for f in features)


def test_nothing_to_read(tokenizer: Tokenizer) -> None:
    sizes = WindowSizes(30, 8, 5)
    (feature,) = make_windows([Asked(("who",), "")], tokenizer, sizes, labelled=False)
    assert feature.encoded.ids[-2:].tolist() == [tokenizer.sep_id] * 2
    assert make_windows([], tokenizer, sizes, labelled=False) == []
    assert make_windows([None], tokenizer, sizes, labelled=True) == []
    # A sequence as short as its label is left out: the label would be taken for one for each token.
    assert make_windows([Asked(("",), "", None, (1,))], tokenizer, sizes, labelled=True) == []


def test_windows_of_real_passages_give_back_every_answer(shared: Path) -> None:
    from litebert.data.readers import ReadOptions
    from litebert.data.squad import read_squad

    tokenizer = Tokenizer.from_pretrained(shared / "models/albert-english-vocab/30k-clean.model")
    data = shared / "data/squad/cs224n-dev-v2.0.json"
    records = [q for q in read_squad(data, ReadOptions(), True).train.records if q.answers][::9]
    asked = [
        Asked((q.question,), q.context, (q.answers[0].start, q.answers[0].end), (0,), (1,))
        for q in records
    ]
    features = make_windows(asked, tokenizer, WindowSizes(384, 64, 128), labelled=True)
    found: dict[int, str] = {}
    for feature in features:
        first, last, impossible = np.asarray(feature.encoded.label).tolist()
        if not impossible:
            window: Window = feature.details
            move = window.start - window.offset
            a, b = window.passage.text_of(first + move, last + move)
            found[feature.encoded.index] = window.passage.text[a:b]
    assert len(found) == len(records)
    wrong = [
        (q.answers[0].text, found[i])
        for i, q in enumerate(records)
        if q.answers[0].text != found[i]
    ]
    assert len(wrong) <= 0.01 * len(records), wrong[:5]  # answers that end inside a piece
