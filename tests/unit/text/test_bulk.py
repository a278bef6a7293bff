"""Many texts at once give the ids and word starts that one text at a time gives."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.text.bulk import BulkEncoder
from litebert.text.bulk_words import SPACE, bulk_boundaries, kind_table
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary
from litebert.text.words import word_boundaries

LEARNT_FROM = [
    "The baker's 3.5 kg of flour - 1,000 loaves... wasn't enough, she said.",
    "Der Bäcker verkauft am Morgen größere Brötchen, fünf für 2,50 €; nachmittags nicht.",
    "El panadero vendió doce panes; ¿quién los compró? ¡Nadie!",
    "Пекарь испёк двенадцать булок и ушёл домой.",
    "बेकर ने सुबह बारह रोटियाँ बेचीं और घर चला गया।",
    "باع الخبّاز اثني عشر رغيفًا في الصباح، ثم ذهب إلى البيت.",
    "面包师早上卖了十二个面包，然后回家了。",
    "パン屋さんは朝に12個のパンを売って、家に帰りました。コーヒーも飲んだ。",
    "ร้านขนมปังขายขนมปังสิบสองก้อน",
    "빵집 주인은 아침에 빵 열두 개를 팔았다.",
]
ODD = [
    *("", " ", "\t", "``quoted'' and '''thrice'''", "½ cup, ⅓ more", "a…b … c", "x\u200dy", "e\u0301te\u0301"),
    *("👩\u200d👩\u200d👧 family", "👍🏽 ok", "don\u2019t", "3.14.15", "a\u00adb", "\u0301lone", "[MASK] it", "<unk>"),
    *("A[CLS]B[SEP]", "ﬁne", "㌔グラム", "ｶﾞｷﾞ", "ａｂｃ", "\ud800x", "a\u00a8b", "▁x ▁ y", "क्‍ष", "１２３"),
    *("ǅungla İstanbul ß ẞ", "\u200bzero\u200bwidth", "tab\tand\u3000wide", "۱۲۳٫۴", "·a·b·", "a'b'c'", "'tis"),
    *("𝒳𝒴 math 𠀀𠀁", "ΟΔΟΣ", "\x00\x01 control", "\ufffd\ufffd", "سَلَامٌ", "เก้า", "한국어", "각"),
]  # fmt: skip


@pytest.fixture(scope="module", params=["lower", "kept"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = request.param == "kept"
    path = tmp_path_factory.mktemp("bulk")
    train_vocabulary(LEARNT_FROM * 30, 600, path, lower_case=not kept, keep_accents=kept)
    return path


def assert_equal(bulk: BulkEncoder, tokenizer: Tokenizer, texts: list[str]) -> int:
    """Compare with the slow way, and return how many texts went it."""
    found = bulk.encode(texts)
    assert len(found.lengths) == len(texts)
    ends = np.cumsum(found.lengths)
    unknown = 0
    for text, length, end in zip(texts, found.lengths, ends, strict=True):
        wanted = tokenizer.pieces(text)
        assert found.ids[end - length : end].tolist() == wanted.ids, text
        assert found.word_starts[end - length : end].tolist() == wanted.word_starts, text
        unknown += wanted.ids.count(tokenizer.unk_id)
    assert found.num_unknown == unknown
    return found.num_slow


def spelled_out(tokenizer: Tokenizer, text: str) -> bool:
    special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    return any(word in text for word in special)


def test_equal_on_scripts_and_oddities(folder: Path) -> None:
    tokenizer, bulk = Tokenizer.from_pretrained(folder), BulkEncoder.from_pretrained(folder)
    assert bulk.size == tokenizer.vocab_size
    assert assert_equal(bulk, tokenizer, LEARNT_FROM) == 0
    assert_equal(bulk, tokenizer, [text for text in ODD if not spelled_out(tokenizer, text)])
    assert bulk.encode([]).ids.tolist() == []


def test_what_a_text_comes_with_does_not_matter(folder: Path) -> None:
    bulk = BulkEncoder.from_pretrained(folder)
    texts = [*ODD, *LEARNT_FROM]
    together = bulk.encode(texts)
    alone = [bulk.encode([text]) for text in texts]
    assert together.ids.tolist() == [i for part in alone for i in part.ids]
    assert together.word_starts.tolist() == [w for part in alone for w in part.word_starts]


characters = st.one_of(
    st.sampled_from(sorted(set("".join(LEARNT_FROM + ODD)))),
    st.sampled_from("   ''``.,…½\u200d\u0301\u00ad"),
    st.characters(),
)


@given(st.lists(st.text(characters, max_size=24), max_size=8))
def test_equal_on_any_text(folder: Path, texts: list[str]) -> None:
    tokenizer, bulk = _loaded(folder)
    assert_equal(bulk, tokenizer, [text for text in texts if not spelled_out(tokenizer, text)])


@given(st.text(characters, max_size=60))
def test_boundaries_are_those_of_words(text: str) -> None:
    codes = np.frombuffer((text + "\n").encode("utf-32-le", "surrogatepass"), np.uint32)
    begins, hard = bulk_boundaries(_KINDS(codes))
    if not len(hard):
        assert begins[:-1].tolist() == [bool(flag) for flag in word_boundaries(text)]
    assert _KINDS(codes)[-1] == SPACE


def test_special_tokens_in_a_text_are_text(folder: Path) -> None:
    tokenizer, bulk = Tokenizer.from_pretrained(folder), BulkEncoder.from_pretrained(folder)
    special = {tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id, tokenizer.pad_id}
    found = bulk.encode(["a [MASK] b", "[CLS][SEP]<pad>", "plain"])
    assert not special.intersection(found.ids.tolist())
    assert len(found.lengths) == 3


def test_wordpiece_and_json_pipelines_are_equal_too(folder: Path, tmp_path: Path) -> None:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "bak", "##er", "##'", "'"]
    vocabulary += ["s", ".", ",", "3", "5", "面", "##s", "brot", "a", "##b", "…", "cafe"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    texts = [
        "The baker's 3.5 面包 Brot.",
        "ab, Café…",
        "unknown words here",
        *LEARNT_FROM,
        *ODD[:8],
    ]
    tokenizer, bulk = Tokenizer.from_pretrained(tmp_path), BulkEncoder.from_pretrained(tmp_path)
    assert_equal(bulk, tokenizer, texts)
    only = tmp_path / "json"
    only.mkdir()
    (only / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    assert_equal(BulkEncoder.from_pretrained(only), Tokenizer.from_pretrained(only), texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["de", "es", "zh", "ar", "hi", "ru", "ja", "novel", "book"])
def test_equal_on_real_texts(shared: Path, tmp_path: Path, name: str) -> None:
    texts = real_texts(shared / "data", name)[:TEXTS]
    tokenizer = train_vocabulary(
        texts,
        2000 if name != "zh" else 3500,
        tmp_path,
        keep_accents=name in ("hi", "ar"),
        character_coverage=0.999,
    )
    slow = assert_equal(BulkEncoder.from_pretrained(tmp_path), tokenizer, texts)
    assert slow <= 0.05 * len(texts)


TEXTS = 150


def real_texts(data: Path, name: str) -> list[str]:
    """Paragraphs of one language; `[SEP]`, which the Japanese ones spell out, is taken away."""
    if name in ("novel", "book"):
        folder = {"novel": "german_novels", "book": "classic_books"}[name]
        path = sorted((data / "corpora" / folder).rglob("*.xz"))[0]
        text = lzma.decompress(path.read_bytes()).decode("utf-8", "replace")
        return [line for line in text.splitlines() if line]
    file = "jglue/jsquad-v1.3/valid-v1.3.json" if name == "ja" else f"xquad/xquad.{name}.json"
    values = json.loads((data / file).read_text(encoding="utf-8"))
    paragraphs = [p for article in values["data"] for p in article["paragraphs"]]
    return [p["context"].replace("[SEP]", " ") for p in paragraphs]


_KINDS = kind_table()
_LOADED: dict[Path, tuple[Tokenizer, BulkEncoder]] = {}


def _loaded(folder: Path) -> tuple[Tokenizer, BulkEncoder]:
    if folder not in _LOADED:
        _LOADED[folder] = Tokenizer.from_pretrained(folder), BulkEncoder.from_pretrained(folder)
    return _LOADED[folder]
