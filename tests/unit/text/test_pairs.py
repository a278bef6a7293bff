"""Pairs, truncation, windows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.text import Tokenizer, windows
from litebert.text.encoding import PieceText
from litebert.text.pairs import assemble

CLS, SEP = 2, 3


class NoSource:
    def spans(self, text: str) -> list[tuple[int, int]]:
        return [(index, index + 1) for index in range(len(text))]

    def token(self, token_id: int) -> str:
        return str(token_id)


def letters(count: int, first: int = 100) -> PieceText:
    return PieceText("x" * count, list(range(first, first + count)), NoSource())


def cut(a: int, b: int | None, limit: int | None, **rules: str) -> tuple[list[int], int]:
    second = None if b is None else letters(b, 200)
    encoding = assemble(
        letters(a),
        second,
        cls_id=CLS,
        sep_id=SEP,
        max_length=limit,
        **rules,  # type: ignore[arg-type]
    )
    assert limit is None or len(encoding) <= limit
    return encoding.ids, encoding.truncated


def test_a_pair_has_types_masks_and_sequences() -> None:
    encoding = assemble(letters(2), letters(1, 200), cls_id=CLS, sep_id=SEP)
    assert encoding.ids == [2, 100, 101, 3, 200, 3]
    assert encoding.type_ids == [0, 0, 0, 0, 1, 1]
    assert encoding.special_mask == [1, 0, 0, 1, 0, 1]
    assert encoding.sequence_ids == [None, 0, 0, None, 1, None]
    assert encoding.offsets == [(0, 0), (0, 1), (1, 2), (0, 0), (0, 1), (0, 0)]
    assert encoding.truncated == 0


def official_truncation(a: list[int], b: list[int], room: int) -> None:
    while len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()


@given(st.integers(0, 12), st.integers(0, 12), st.integers(3, 30))
def test_longest_first_is_the_official_rule(a: int, b: int, limit: int) -> None:
    first, second = list(range(100, 100 + a)), list(range(200, 200 + b))
    official_truncation(first, second, limit - 3)
    ids, dropped = cut(a, b, limit)
    assert ids == [CLS, *first, SEP, *second, SEP]
    assert dropped == a + b - len(first) - len(second)


def test_the_other_rules_cut_one_text() -> None:
    assert cut(4, 4, 8, truncation="only_first") == ([2, 100, 3, 200, 201, 202, 203, 3], 3)
    assert cut(4, 4, 8, truncation="only_second") == ([2, 100, 101, 102, 103, 3, 200, 3], 3)
    assert cut(4, 4, 8, truncation="only_second", keep="tail")[0][-2] == 203
    assert cut(4, None, 4, keep="tail") == ([2, 102, 103, 3], 2)
    assert cut(4, None, None) == ([2, 100, 101, 102, 103, 3], 0)


@pytest.mark.parametrize(
    ("counts", "limit", "rules", "message"),
    [
        ((4, None), 1, {}, "below the 2 special tokens"),
        ((4, 4), 2, {}, "below the 3 special tokens"),
        ((4, None), 4, {"truncation": "only_second"}, "needs a pair"),
        ((1, 9), 8, {"truncation": "only_first"}, "the other text alone has 9 pieces and 5 fit"),
        ((4, 4), 8, {"truncation": "longest"}, "'longest' is unknown"),
        ((4, 4), 8, {"keep": "middle"}, "'middle' is unknown"),
    ],
)
def test_an_impossible_limit_is_refused(
    counts: tuple[int, int | None], limit: int, rules: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        cut(*counts, limit, **rules)


@given(st.integers(0, 30), st.integers(4, 12), st.data())
def test_windows_cover_every_piece_in_order(words: int, limit: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, limit - 2))
    parts = windows(Counting(), "x" * words, max_length=limit, stride=stride)
    seen: set[int] = set()
    for number, part in enumerate(parts):
        assert len(part) <= limit
        inner = part.ids[1:-1]
        assert inner == list(range(100 + number * stride, 100 + number * stride + len(inner)))
        assert part.offsets[1:-1] == [(i - 100, i - 99) for i in inner]
        seen.update(inner)
    assert seen == set(range(100, 100 + words))


class Counting:
    cls_id, sep_id = CLS, SEP

    def pieces(self, text: str) -> PieceText:
        return letters(len(text))


def test_windows_of_a_pair_repeat_the_question(small: Tokenizer) -> None:
    passage = "the old bicycle, two maps, a wool coat, 25, no, 30 tickets. " * 4
    parts = windows(small, "red lamps?", passage, max_length=20, stride=7)
    question = small.pieces("red lamps?").ids
    whole = small.encode(passage)
    assert len(parts) > 2
    for number, part in enumerate(parts):
        assert part.ids[1 : len(question) + 1] == question
        start = 1 + 7 * number
        inner = part.offsets[len(question) + 2 : -1]
        assert inner == whole.offsets[start : start + len(inner)]
        assert part.type_ids[-1] == 1


@pytest.mark.parametrize(
    ("limit", "stride", "message"), [(2, 1, "leaves no room"), (6, 5, "1..4"), (6, 0, "1..4")]
)
def test_windows_that_would_lose_pieces_are_refused(limit: int, stride: int, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        windows(Counting(), "xxxxx", max_length=limit, stride=stride)


def test_a_long_text_is_cut_by_characters_first(small: Tokenizer) -> None:
    text = "lamps " * 5000
    head = small.encode(text, max_length=8)
    tail = small.encode(text, max_length=8, keep="tail")
    assert head.ids == small.encode("lamps " * 100, max_length=8).ids
    assert head.truncated > 0
    start, end = tail.offsets[-2]
    assert text[start:end] == text[: len(text) - 1][-(end - start) :]
    assert all(b > 29_000 for _, b in tail.offsets[1:-1])


def test_only_strings_are_encoded(small: Tokenizer) -> None:
    with pytest.raises(DataError, match="a text must be a string, got float"):
        small.encode(float("nan"))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="got NoneType"):
        small.encode_batch([("a", None)])  # type: ignore[list-item]


def test_only_ids_of_the_vocabulary_are_decoded(small: Tokenizer) -> None:
    with pytest.raises(DataError, match="outside the vocabulary"):
        small.decode([small.vocab_size])
    assert small.decode([]) == ""
