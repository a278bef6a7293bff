"""A vocabulary cut to a corpus cuts every text of it up as before."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import CheckpointError, SettingsError
from litebert.text.spm_model import keep_pieces, parse_spm
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

WORDS = (
    "the kettle",
    "boils",
    "on 12,",
    "3,000 stoves",
    "ünder",
    "unbelievable",
    "e-mail",
    "(see)",
)
LEARNT = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS[:3]]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(LEARNT), st.text(max_size=30), st.sampled_from(["", " ", "[MASK] x"])
    ),
    min_size=1,
    max_size=5,
)


@cache
def spm() -> Tokenizer:
    import tempfile

    return train_vocabulary(LEARNT, 120, Path(tempfile.mkdtemp()))


@cache
def wordpiece() -> Tokenizer:
    import tempfile

    words = "the kettle ket ##tle ##t boils bo ##ils on un ##der ##believ ##able believ e mail , - ( ) see"
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    folder = Path(tempfile.mkdtemp())
    known = dict.fromkeys([*entries, *words.split()])
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in known))
    return Tokenizer.from_pretrained(folder)


@pytest.mark.parametrize("make", [spm, wordpiece])
@given(texts=TEXTS)
def test_texts_of_the_corpus_keep_their_pieces(make: object, texts: list[str]) -> None:
    tokenizer: Tokenizer = make()  # type: ignore
    small, old = tokenizer.narrowed(tokenizer.used_ids(texts))
    assert old == sorted(set(old)) and len(old) == small.vocab_size
    for text in texts:
        before, after = tokenizer.encode(text), small.encode(text)
        assert [old[token] for token in after.ids] == list(before.ids)
        assert [small.token(i) for i in after.ids] == [tokenizer.token(i) for i in before.ids]
        assert after.offsets == before.offsets
    assert [small.token(i) for i in range(5)] == [tokenizer.token(old[i]) for i in range(5)]


def test_what_is_never_used_goes_and_characters_stay(tmp_path: Path) -> None:
    tokenizer = spm()
    small, _ = tokenizer.narrowed(tokenizer.used_ids(["the kettle boils"]))
    assert small.vocab_size < tokenizer.vocab_size
    other = small.encode("unbelievable ünder")
    assert small.unknown_count(other) == 0
    small.save_pretrained(tmp_path)
    again = Tokenizer.from_pretrained(tmp_path)
    assert again.fingerprint == small.fingerprint
    assert again.encode("the kettle boils on").ids == small.encode("the kettle boils on").ids


@pytest.mark.parametrize("make", [spm, wordpiece])
@pytest.mark.parametrize("less", [0, 3, 6])
def test_only_so_many_pieces_stay(make: object, less: int) -> None:
    tokenizer: Tokenizer = make()  # type: ignore
    size = tokenizer.vocab_size - less
    small, old = tokenizer.cut(size)
    assert small.vocab_size == len(old) == size
    assert [small.token(i) for i in range(size)] == [tokenizer.token(i) for i in old]
    assert small.encode("[MASK] x").ids[1] == small.mask_id
    other = small.encode("the kettle boils, unbelievable")
    assert small.unknown_count(other) == 0


def test_the_frequent_ones_stay(tmp_path: Path) -> None:
    tokenizer = wordpiece()
    counts = tokenizer.piece_counts(["mail mail mail", "kettle the"])
    assert counts[tokenizer.encode("mail").ids[1]] == 3
    number_of = {tokenizer.token(i): i for i in range(tokenizer.vocab_size)}
    words = [word for word in number_of if len(word.removeprefix("##")) > 1 and "[" not in word]
    small, old = tokenizer.cut(tokenizer.vocab_size - len(words) + 2, counts)
    assert number_of["mail"] in old and number_of["see"] not in old
    small.save_pretrained(tmp_path)
    assert Tokenizer.from_pretrained(tmp_path).fingerprint == small.fingerprint
    by_order, _ = tokenizer.cut(tokenizer.vocab_size - len(words) + 2)
    kept = {by_order.token(i) for i in range(by_order.vocab_size)}
    assert {"the", "kettle"} <= kept and "mail" not in kept


def test_letters_of_other_scripts_go_first(tmp_path: Path) -> None:
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "a", "##a", "b", "ж", "##ж", "中",
               "。", "€", "aж", "ab", "##ba"]  # fmt: skip
    (tmp_path / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries), "utf-8")
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    small, _ = tokenizer.cut(12)
    kept = [small.token(i) for i in range(small.vocab_size)]
    assert kept == [*entries[:5], "a", "##a", "b", "。", "€", "ab", "##ba"]
    with_letter, _ = tokenizer.cut(15)
    kept = {with_letter.token(i) for i in range(with_letter.vocab_size)}
    assert {"aж", "ж", "##ж"} <= kept and not {"中", "[unused0]"} & kept


def test_a_size_that_cannot_be_is_refused() -> None:
    for size in (3, wordpiece().vocab_size + 1):
        with pytest.raises(SettingsError, match=rf"cannot have {size} pieces: \d+ have to stay"):
            wordpiece().cut(size)


def test_a_model_with_all_its_pieces_is_the_same_model() -> None:
    tokenizer = spm()
    data = tokenizer.files()["spiece.model"]
    model = parse_spm(data)
    assert parse_spm(keep_pieces(data, range(len(model.pieces)))) == model


def test_a_pipeline_of_unknown_kind_is_refused(tmp_path: Path) -> None:
    files = spm().files()
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (tmp_path / name).write_bytes(files[name])
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json alone"):
        tokenizer.narrowed({1, 2})


def test_the_official_vocabulary_keeps_real_texts(shared: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(shared / "models" / "albert-english-vocab")
    path = shared / "models" / "albert-english-vocab" / "golden_tokenization.json"
    import json

    golden = json.loads(path.read_text(encoding="utf-8"))
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("text", "pair", "a", "b") and isinstance(inner, str):
                    found.append(inner)
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(golden)
    assert len(found) >= 40
    small, old = tokenizer.narrowed(tokenizer.used_ids(found))
    assert small.vocab_size < 0.4 * tokenizer.vocab_size
    for text in found:
        assert [old[i] for i in small.encode(text).ids] == list(tokenizer.encode(text).ids)
