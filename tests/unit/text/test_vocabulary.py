"""Learning a vocabulary: repeatable, never cryptic, nothing left out."""

from __future__ import annotations

from pathlib import Path

import pytest
import sentencepiece

from litebert.errors import DataError, SettingsError
from litebert.text import train_vocabulary
from litebert.text.spm_model import CONTROL, USER_DEFINED, parse_spm

WORDS = "river stone lantern bright morning quiet orchard copper willow meadow harbour winter"
SENTENCES = [
    f"{a} {b}{a[:3]} {c}{b[-2:]}"
    for a in WORDS.split()
    for b in WORDS.split()
    for c in WORDS.split()
]


def test_the_same_texts_give_the_same_bytes(tmp_path: Path) -> None:
    train_vocabulary(SENTENCES[:600], 60, tmp_path / "a")
    train_vocabulary(iter(SENTENCES[:600]), 60, tmp_path / "b")
    assert {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "b").iterdir()
    }


def test_the_fixed_pieces_stand_where_the_published_ones_do(tmp_path: Path) -> None:
    tokenizer = train_vocabulary(SENTENCES, 60, tmp_path)
    model = parse_spm((tmp_path / "spiece.model").read_bytes())
    assert model.pieces[:5] == ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    assert model.pieces[5:13] == ("(", ")", '"', "-", ".", "–", "£", "€")
    assert set(model.kinds[2:5]) == {CONTROL}
    assert set(model.kinds[5:13]) == {USER_DEFINED}
    assert tokenizer.vocab_size == 60
    assert (tokenizer.pad_id, tokenizer.cls_id, tokenizer.mask_id) == (0, 2, 4)


def test_too_few_texts_give_a_smaller_vocabulary_and_a_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO")
    tokenizer = train_vocabulary(SENTENCES[:30], 5000, tmp_path)
    assert 13 < tokenizer.vocab_size < 5000
    assert f"{tokenizer.vocab_size} pieces instead of 5000" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_a_number_before_a_comma_is_never_unknown(tmp_path: Path) -> None:
    sentences = [
        f"{word} 1822, {word} 22 {other} 7 228" for word in WORDS.split() for other in "ab"
    ]
    tokenizer = train_vocabulary(sentences * 4, 60, tmp_path)
    for number in ("1822,", "22,", "(22,", "1,822,"):
        encoding = tokenizer.encode(f"{number} river")
        assert tokenizer.unknown_count(encoding) == 0


def test_languages_without_blanks_work(tmp_path: Path) -> None:
    sentences = ["今日は天気がいいので散歩に行きました。", "明日は雨が降るそうです。"] * 20
    tokenizer = train_vocabulary(sentences, 60, tmp_path, character_coverage=0.9995)
    assert tokenizer.unknown_count(tokenizer.encode(sentences[0])) == 0
    text = "".join(sentences)
    encoding = tokenizer.encode(text)
    assert "".join(text[a:b] for a, b in encoding.offsets) == text


def test_a_long_text_is_cut_and_not_skipped(tmp_path: Path) -> None:
    long_text = " ".join(SENTENCES[:200]) + " zebra" * 300 + " " + "quux" * 1500
    tokenizer = train_vocabulary([long_text], 110, tmp_path)
    assert tokenizer.unknown_count(tokenizer.encode("zebra quux")) == 0


def test_accents_stay_only_when_asked(tmp_path: Path) -> None:
    kept = train_vocabulary(["Überfluß für Größe"] * 30, 50, tmp_path / "k", keep_accents=True)
    assert kept.unknown_count(kept.encode("für")) == 0
    assert kept.encode("fur").ids != kept.encode("für").ids
    cased = train_vocabulary(["Ab aB"] * 30, 30, tmp_path / "c", lower_case=False)
    assert cased.encode("Ab").ids != cased.encode("ab").ids


def test_odd_characters_in_the_corpus_are_survived(tmp_path: Path) -> None:
    train_vocabulary([*SENTENCES[:200], "a\0b", "c\td", "▁x▅", "\ud800", "", " \n "], 110, tmp_path)


def test_losing_vowel_signs_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hindi = ["हिन्दी में लिखो और पढ़ो"] * 20
    train_vocabulary(hindi, 40, tmp_path / "a", keep_accents=True)
    assert "keep_accents" not in caplog.text
    train_vocabulary(hindi, 40, tmp_path / "b")
    assert "use keep_accents=True" in caplog.text


@pytest.mark.parametrize("texts", [[], ["", "  ", "\n"]])
def test_an_empty_corpus_is_refused(tmp_path: Path, texts: list[str]) -> None:
    with pytest.raises(DataError, match="holds no text"):
        train_vocabulary(texts, 100, tmp_path)


def test_wrong_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2: a text must be a string, got NoneType"):
        train_vocabulary(["a", None], 100, tmp_path)  # type: ignore[list-item]
    with pytest.raises(SettingsError, match="no room beside 13 fixed pieces"):
        train_vocabulary(SENTENCES, 13, tmp_path)
    with pytest.raises(SettingsError, match="character_coverage"):
        train_vocabulary(SENTENCES, 100, tmp_path, character_coverage=1.5)
    with pytest.raises(SettingsError, match="use at least"):
        train_vocabulary(SENTENCES, 20, tmp_path)


def test_any_other_refusal_of_the_trainer_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", fail)
    with pytest.raises(DataError, match="cannot learn from these texts: no luck"):
        train_vocabulary(SENTENCES, 60, tmp_path)
