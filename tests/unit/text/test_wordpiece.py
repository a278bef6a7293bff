"""WordPiece: BERT's rules, and what the reference tokenizer gives on real Chinese text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import CheckpointError
from litebert.text import Tokenizer
from litebert.text.fast import WordPieceRules, parse_vocabulary, wordpiece
from litebert.text.special import SpecialTokens

BERT = SpecialTokens(pad="[PAD]", unk="[UNK]")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "Ü", "ü", "u", "北京"]


@pytest.mark.parametrize(
    ("text", "tokens", "slices"),
    [
        ("我们去北京。", list("我们去北京。"), list("我们去北京。")),
        ("Hello, WORLDS!", ["hello", ",", "wor", "##ld", "##s", "!"], None),
        (" Café 20", ["cafe", "2", "##0"], ["Café", "2", "0"]),
        ("xyz 我", ["[UNK]", "我"], ["xyz", "我"]),
        ("我[MASK]京", ["我", "[MASK]", "京"], ["我", "[MASK]", "京"]),
        ("hel\x00lo\ud800", ["hello"], ["hel\x00lo"]),
        ("2" * 101, ["[UNK]"], ["2" * 101]),
    ],
)
def test_text_follows_the_bert_rules(
    wordpiece: Tokenizer, text: str, tokens: list[str], slices: list[str] | None
) -> None:
    encoding = wordpiece.encode(text)
    assert encoding.tokens[1:-1] == tokens
    if slices is not None:
        assert [text[a:b] for a, b in encoding.offsets[1:-1]] == slices
    assert wordpiece.encode_batch([text, text])[1].ids == encoding.ids


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
def test_any_text_encodes_with_ordered_offsets(wordpiece: Tokenizer, text: str) -> None:
    encoding = wordpiece.encode(text)
    spans = encoding.offsets[1:-1]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert len(encoding.word_starts) == len(encoding)


@pytest.mark.parametrize(
    ("rules", "text", "tokens"),
    [
        (WordPieceRules(), "Ü", ["u"]),
        (WordPieceRules(strip_accents=False), "Ü", ["ü"]),
        (WordPieceRules(do_lower_case=False), "Ü", ["Ü"]),
        (WordPieceRules(tokenize_chinese_chars=False), "北京", ["北京"]),
        (WordPieceRules(), "北京", ["[UNK]", "[UNK]"]),
    ],
)
def test_declared_rules_are_followed(rules: WordPieceRules, text: str, tokens: list[str]) -> None:
    assert Tokenizer(wordpiece(WORDS, rules, BERT)).encode(text).tokens[1:-1] == tokens


def test_the_special_ids_come_from_the_vocabulary(chinese: Tokenizer) -> None:
    assert chinese.vocab_size == 21128
    ids = (chinese.pad_id, chinese.unk_id, chinese.cls_id, chinese.sep_id, chinese.mask_id)
    assert ids == (0, 100, 101, 102, 103)


@pytest.mark.parity
@pytest.mark.parametrize("language", ["zh", "hi", "de"])
def test_ids_equal_the_reference_on_real_text(
    shared: Path, chinese: Tokenizer, language: str
) -> None:
    transformers = pytest.importorskip("transformers")
    vocabulary = shared / "models/tf1-index/albert_base_zh_google/vocab_chinese.txt"
    reference = transformers.BertTokenizer(str(vocabulary))
    data = json.loads((shared / f"data/xquad/xquad.{language}.json").read_text("utf-8"))["data"]
    texts = [paragraph["context"] for article in data for paragraph in article["paragraphs"]][:100]
    ours = [encoding.ids for encoding in chinese.encode_batch(texts)]
    assert ours == [reference(text, truncation=False, verbose=False)["input_ids"] for text in texts]


@pytest.mark.parametrize(
    ("text", "message"), [("a\nb\n", "found 2"), ("a\nb\nc\na\nd\ne\n", "stands on line 1")]
)
def test_a_damaged_vocabulary_is_refused(text: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        parse_vocabulary(text)


def test_windows_line_ends_are_no_part_of_entries() -> None:
    assert parse_vocabulary("a\r\nb\r\nc\r\nd\r\ne\r\n") == list("abcde")


def test_an_interrupt_in_native_code_stays_an_interrupt(
    wordpiece: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    class Pipeline:
        encode_batch_fast = staticmethod(interrupted)

    monkeypatch.setattr(wordpiece._pieces, "_pipeline", Pipeline)
    with pytest.raises(KeyboardInterrupt):
        wordpiece.encode("some text")
