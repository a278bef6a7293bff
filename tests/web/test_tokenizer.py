"""The tokenizer of the page beside the one in Python: ids, places, words and cut pairs are equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.web.javascript import MAX_LENGTH, tokenize
from tests.web.texts import golden_texts

from litebert.data.tagged.record import split_words
from litebert.errors import ExportError
from litebert.export.web.tokenizer import tokenizer_data
from litebert.text.fast import FastPieces, WordPieceRules, wordpiece
from litebert.text.folder import read_pieces
from litebert.text.special import SpecialTokens
from litebert.text.spiece import SpmPieces
from litebert.text.tokenizer import Tokenizer

TEXTS = golden_texts()
BERT = SpecialTokens(pad="[PAD]", unk="[UNK]")


def compare(pieces: SpmPieces | FastPieces, place: Path, texts: list[str] = TEXTS) -> None:
    """Refuse any difference."""
    tokenizer = Tokenizer(pieces)
    data = json.loads(json.dumps(tokenizer_data(pieces, has_words=True)))
    found = tokenize(data, texts, place)
    for number, (text, told) in enumerate(zip(texts, found, strict=True)):
        encoding = tokenizer.encode(text)
        assert told["ids"] == encoding.ids, text
        assert [tuple(span) for span in told["spans"]] == encoding.offsets, text
        if text.strip():
            assert tuple(map(tuple, told["words"])) == split_words(text), text
        pair = texts[(number + 1) % len(texts)]
        cut = tokenizer.encode(
            text, pair, max_length=MAX_LENGTH, keep="tail" if number % 2 else "head"
        )
        ids, spans, types, truncated = told["cut"]
        assert (ids, types, truncated) == (cut.ids, cut.type_ids, cut.truncated), text
        assert [tuple(span) for span in spans] == cut.offsets, text


def words_of(texts: list[str]) -> list[str]:
    """A vocabulary with most characters of the texts, and some of their words."""
    import tokenizers

    normalizer: Any = tokenizers.normalizers.BertNormalizer()
    words = [word for text in texts if "\ud800" not in text
             for word in normalizer.normalize_str(text).split()]  # fmt: skip
    letters = sorted({letter for word in words for letter in word})
    kept = [letter for number, letter in enumerate(letters) if number % 9]
    inner = [f"##{letter}" for number, letter in enumerate(letters) if number % 7]
    stems = sorted({word[:4] for word in words if len(word) > 5})
    tails = sorted({f"##{word[4:7]}" for word in words if len(word) > 6})
    return list(dict.fromkeys([*BERT.words, *kept, *inner, *stems, *tails]))


@pytest.mark.parametrize(
    "rules",
    [
        WordPieceRules(),
        WordPieceRules(do_lower_case=False, tokenize_chinese_chars=False),
        WordPieceRules(strip_accents=False),
    ],
)
def test_wordpiece(rules: WordPieceRules, tmp_path: Path) -> None:
    compare(wordpiece(words_of(TEXTS), rules, BERT), tmp_path)


@pytest.mark.parametrize("keeps", [False, True])
def test_sentencepiece(keeps: bool, tmp_path: Path) -> None:
    from litebert.text.vocabulary import train_vocabulary

    train_vocabulary(TEXTS[:120], 1300, tmp_path / "vocabulary", lower_case=not keeps,
                     keep_accents=keeps, character_coverage=0.98)  # fmt: skip
    pieces = read_pieces(tmp_path / "vocabulary")
    assert isinstance(pieces, SpmPieces)
    compare(pieces, tmp_path)


def test_the_published_vocabulary(shared: Path, tmp_path: Path) -> None:
    compare(read_pieces(shared / "models" / "albert-english-vocab" / "30k-clean.model"), tmp_path)


def test_a_pipeline_of_bert_is_known(tmp_path: Path) -> None:
    pieces = wordpiece(words_of(TEXTS), WordPieceRules(), BERT)
    values = json.loads(pieces.pipeline_json)
    token = {"id": 0, "content": "[PAD]", "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(values | {"added_tokens": [token]}))
    known = read_pieces(tmp_path)
    assert known.kind == "json"
    a, b = (tokenizer_data(found, has_words=False) for found in (known, pieces))
    assert a | {"fingerprint": ""} == b | {"fingerprint": ""}


@pytest.mark.parametrize("fault", ["normalizer", "added"])
def test_other_pipelines_are_refused(fault: str, tmp_path: Path) -> None:
    values = json.loads(wordpiece(words_of(TEXTS), WordPieceRules(), BERT).pipeline_json)
    if fault == "normalizer":
        values["normalizer"] = {"type": "Lowercase"}
    for number, word in enumerate(("[PAD]", *(["[CLS]"] if fault == "added" else []))):
        token = {"id": 2 * number, "content": word, "single_word": False, "lstrip": number == 1,
                 "rstrip": False, "normalized": False, "special": True}  # fmt: skip
        values["added_tokens"].append(token)
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(ExportError, match=r"the page\s+knows"):
        tokenizer_data(read_pieces(tmp_path), has_words=False)
