"""SentencePiece: ids as published, exact offsets, nothing crashes it."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import CheckpointError
from litebert.text import Encoding, Tokenizer
from litebert.text.normalize import TextRules
from litebert.text.special import SpecialTokens
from litebert.text.spiece import SpmPieces

TRICKY = "İﬁ½①℃한e\u0301\u0327ÅẞΣς``''\"  \t\n\u3000\u200b\u200d\u00ad\0\x01\ud800\udfff😀👩‍👧▁🇩🇪हिन्दीไทย日本,25,9"
TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from(TRICKY),
        st.sampled_from("ab ,.9"),
        st.characters(codec=None, exclude_categories=()),
    ),
    max_size=60,
) | st.lists(
    st.sampled_from(["[MASK]", "[SEP]", "<unk>", " ", "``", "25,", "The baker", "é", "½"]),
    max_size=12,
).map("".join)


def golden(shared: Path) -> list[dict[str, object]]:
    text = (shared / "models/albert-english-vocab/golden_tokenization.json").read_text("utf-8")
    rows: list[dict[str, object]] = json.loads(text)["rows"]
    return rows


def test_ids_and_tokens_equal_the_golden_ones_on_every_text(
    shared: Path, english: Tokenizer
) -> None:
    rows = golden(shared)
    assert len(rows) == 41
    for row in rows:
        encoding = english.encode(str(row["text"]), row.get("text_pair"))  # type: ignore[arg-type]
        assert encoding.ids == row["ids"], row["text"]
        assert encoding.tokens == row["tokens"]
        assert encoding.type_ids == row.get("token_type_ids", [0] * len(encoding))


def test_a_batch_gives_what_single_texts_give(shared: Path, english: Tokenizer) -> None:
    texts = [str(row["text"]) for row in golden(shared)]
    assert [e.ids for e in english.encode_batch(texts)] == [english.encode(t).ids for t in texts]


@pytest.mark.parametrize(
    ("text", "slices"),
    [
        ("Naïve Café!", ["Naïve", "Café", "!"]),
        ("e\u0301 a", ["", "e\u0301", "a"]),
        ("``Hi''", ["", "``", "Hi", "''"]),
        ("  a \n\t b ", ["a", "b"]),
        ("…", ["", "…", "", ""]),
        ("25, ok", ["25", ",", "ok"]),
        ("is [MASK].", ["is", "[MASK]", "", "."]),
        ("ﬁn", ["ﬁn"]),
        ("x\x00y", ["x", "\x00", "y"]),
    ],
)
def test_offsets_slice_the_original_text(english: Tokenizer, text: str, slices: list[str]) -> None:
    encoding = english.encode(text)
    assert [text[a:b] for a, b in encoding.offsets[1:-1]] == slices


def check_offsets(encoding: Encoding, text: str) -> None:
    spans = encoding.offsets[1:-1]
    assert len(encoding.offsets) == len(encoding.ids) == len(encoding.tokens)
    assert len(encoding.word_starts) == len(encoding.type_ids) == len(encoding.ids)
    assert len(encoding.special_mask) == len(encoding.sequence_ids) == len(encoding.ids)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(
        text[start:end] == text[start:end].strip() or end - start == 1 for start, end in spans
    )


@given(TEXTS)
def test_any_text_encodes_with_ordered_offsets_that_cover_each_character_once(
    small: Tokenizer, text: str
) -> None:
    check_offsets(small.encode(text), text)


@given(TEXTS)
def test_any_text_has_ordered_offsets_under_the_published_vocabulary(
    english: Tokenizer, text: str
) -> None:
    encoding = english.encode(text)
    check_offsets(encoding, text)
    visible = [c for c in text if english.encode(c).ids[1:-1]]
    if visible:
        assert len(encoding) > 2


LETTERS = st.sampled_from("abeinzİﬁ½①ℂ한ÅẞΣσ٣हि日กデｶﾞ９") | st.characters(
    categories=["L", "N", "M"]
)
WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=8), max_size=6)


@given(WORDS)
def test_the_slice_of_a_word_gives_the_pieces_of_that_word(
    english: Tokenizer, words: list[str]
) -> None:
    text = "  ".join(words)
    encoding = english.encode(text)
    start = 0
    for word in words:
        end = start + len(word)
        (blank,) = english.pieces("(").ids[:1]
        inside = [
            token_id
            for token_id, (a, b) in zip(encoding.ids[1:-1], encoding.offsets[1:-1], strict=True)
            if start <= a <= b <= end
        ]
        alone = english.encode(word).ids[1:-1]
        # A piece without characters of its own may sit on either edge of the word.
        assert [i for i in inside if i != blank] == [i for i in alone if i != blank]
        start = end + 2


@given(TEXTS)
def test_spans_give_back_their_piece(english: Tokenizer, text: str) -> None:
    source = english.pieces(text).source
    assert isinstance(source, SpmPieces)
    normalizer = source._normalizer
    aligned = normalizer.align(text)
    assert aligned.text == normalizer.normalize(text)
    assert len(aligned.starts) == len(aligned.ends) == len(aligned.text)
    assert list(aligned.starts) == sorted(aligned.starts)
    for start, end in zip(aligned.starts, aligned.ends, strict=True):
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize("keep_accents", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_declared_rules_are_followed(
    small: Tokenizer, small_folder: Path, keep_accents: bool, lower: bool
) -> None:
    data = (small_folder / "spiece.model").read_bytes()
    pieces = SpmPieces(data, TextRules(lower, keep_accents), SpecialTokens())
    tokenizer = Tokenizer(pieces)
    plain = tokenizer.encode("red lamps").ids
    assert (tokenizer.encode("RED Lamps").ids == plain) is lower
    assert (tokenizer.encode("réd lamps").ids == plain) is not keep_accents
    assert tokenizer.fingerprint != small.fingerprint or (lower and not keep_accents)


def test_unknown_pieces_are_counted(small: Tokenizer) -> None:
    assert small.unknown_count(small.encode("lamps 漢字 lamps")) == 1
    assert small.unknown_count(small.encode("red lamps")) == 0


def test_decode_gives_the_cleaned_text(small: Tokenizer) -> None:
    assert small.decode(small.encode("The  Old bicycle!").ids) == "the old bicycle!"


def test_a_tokenizer_can_be_sent_to_another_process(small: Tokenizer) -> None:
    copy = pickle.loads(pickle.dumps(small))  # noqa: S301
    assert copy.encode("two maps, 25,").ids == small.encode("two maps, 25,").ids
    assert copy.fingerprint == small.fingerprint


def test_a_vocabulary_without_the_special_tokens_is_refused(small_folder: Path) -> None:
    data = (small_folder / "spiece.model").read_bytes()
    with pytest.raises(CheckpointError, match="has no <s>"):
        SpmPieces(data, TextRules(), SpecialTokens(cls="<s>"))


def test_a_model_that_the_library_refuses_is_refused(
    small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def LoadFromSerializedProto(self, data: bytes) -> None:
            raise RuntimeError("broken table")

    monkeypatch.setattr(sentencepiece, "SentencePieceProcessor", Refusing)
    data = (small_folder / "spiece.model").read_bytes()
    with pytest.raises(CheckpointError, match="SentencePiece refuses the model: broken table"):
        SpmPieces(data, TextRules(), SpecialTokens())
