"""Word starts in several scripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.text import Tokenizer
from litebert.text.words import character_boundaries, word_boundaries, word_flags


def words(text: str) -> list[str]:
    starts = [index for index, flag in enumerate(word_boundaries(text)) if flag]
    ends = [*starts[1:], len(text)][: len(starts)]
    return [text[a:b].strip() for a, b in zip(starts, ends, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't stop, it's 3.14!", ["don't", "stop", ",", "it's", "3.14", "!"]),
        ("Straßenbahn fährt um 7 Uhr.", ["Straßenbahn", "fährt", "um", "7", "Uhr", "."]),
        ("हिन्दी में लिखो।", ["हिन्दी", "में", "लिखो", "।"]),
        ("كيف الحال؟", ["كيف", "الحال", "؟"]),
        ("我去北京。", ["我", "去", "北", "京", "。"]),
        ("東京タワーへ行きました", ["東", "京", "タワー", "へ", "行", "きました"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("👩‍👧 👍🏽", ["👩‍👧", "👍🏽"]),
        ("e\u0301a x\u200by", ["e\u0301a", "x\u200b", "y"]),
        ("", []),
    ],
)
def test_words_begin_where_the_script_says(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_lone_blank_mark_begins_the_word_and_its_word_does_not() -> None:
    assert word_flags("a (b", [(0, 1), (2, 2), (2, 3), (3, 4)]) == [True, True, False, True]


def test_further_parts_of_one_character_begin_no_word() -> None:
    assert word_flags("½x", [(0, 1), (1, 1), (1, 1), (1, 2)]) == [True, False, False, False]


def test_special_tokens_begin_no_word(small: Tokenizer) -> None:
    encoding = small.encode("red lamps", "two maps")
    flags = encoding.word_starts
    assert all(not flag for flag, mask in zip(flags, encoding.special_mask, strict=True) if mask)
    assert sum(flags) == 4


@given(st.text(max_size=40))
def test_white_space_never_begins_a_word_and_every_first_letter_does(text: str) -> None:
    flags = word_boundaries(text)
    assert len(flags) == len(text)
    for index, character in enumerate(text):
        if character.isspace():
            assert not flags[index]
        elif index == 0 or text[index - 1].isspace():
            assert flags[index]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab c", ["a", "b", "c"]),
        ("e\u0301a", ["e\u0301", "a"]),
        ("हिन्दी", ["हि", "न्", "दी"]),
        ("김민수는", ["김", "민", "수", "는"]),
        ("a\U0001f469\u200d\U0001f4bb\U0001f44d\U0001f3fd!",
         ["a", "\U0001f469\u200d\U0001f4bb", "\U0001f44d\U0001f3fd", "!"]),
        ("\u0301 \u200db", ["\u0301", "\u200db"]),
        ("", []),
    ],
)  # fmt: skip
def test_characters_keep_their_marks(text: str, expected: list[str]) -> None:
    starts = [index for index, flag in enumerate(character_boundaries(text)) if flag]
    ends = [*starts[1:], len(text)][: len(starts)]
    assert [text[a:b].strip() for a, b in zip(starts, ends, strict=True)] == expected


@given(st.text(max_size=30))
def test_every_word_begins_with_a_character(text: str) -> None:
    words_begin, characters = word_boundaries(text), character_boundaries(text)
    assert all(character for word, character in zip(words_begin, characters, strict=True) if word)
