"""Reading vocabularies from folders that may be wrong or hostile, and writing them."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
from pathlib import Path

import pytest
import tokenizers

from litebert.errors import CheckpointError
from litebert.text import Tokenizer, check_vocabulary_fits

TEXTS = [
    "Two maps, 25, red!",
    "  the ``old'' BICYCLE½ é\u0301 ",
    "[MASK] lamps [SEP] x",
    "",
    "漢字 £5",
]
SPM_FILES = {"spiece.model", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}


@pytest.fixture
def copy(small_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_folder, tmp_path / "copy"))


def test_a_saved_folder_reads_back_equal(small: Tokenizer, small_folder: Path, copy: Path) -> None:
    assert {path.name for path in small_folder.iterdir()} == SPM_FILES
    again = Tokenizer.from_pretrained(copy)
    assert again.fingerprint == small.fingerprint
    again.save_pretrained(copy / "new" / "folder")
    for name in SPM_FILES:
        assert (copy / "new/folder" / name).read_bytes() == (small_folder / name).read_bytes()


def test_a_wordpiece_folder_reads_back_equal(wordpiece: Tokenizer, tmp_path: Path) -> None:
    wordpiece.save_pretrained(tmp_path)
    again = Tokenizer.from_pretrained(tmp_path)
    assert again.fingerprint == wordpiece.fingerprint
    assert again.kind == "wordpiece"
    assert (tmp_path / "vocab.txt").is_file()
    again.save_pretrained(tmp_path)
    assert Tokenizer.from_pretrained(tmp_path).fingerprint == wordpiece.fingerprint


@pytest.mark.parametrize("kind", ["small", "wordpiece"])
def test_a_folder_with_only_tokenizer_json_works(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    origin: Tokenizer = request.getfixturevalue(kind)
    origin.save_pretrained(tmp_path)
    for name in ("spiece.model", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json"):
        (tmp_path / name).unlink(missing_ok=True)
    alone = Tokenizer.from_pretrained(tmp_path)
    assert alone.kind == "json"
    assert alone.vocab_size == origin.vocab_size
    for text in TEXTS:
        assert alone.encode(text, "pair").ids == origin.encode(text, "pair").ids
    assert alone.decode(alone.encode("two maps").ids) == origin.decode(
        origin.encode("two maps").ids
    )
    alone.save_pretrained(tmp_path / "again")
    assert (
        Tokenizer.from_pretrained(tmp_path / "again").encode("two").ids == alone.encode("two").ids
    )


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["small", "wordpiece"])
def test_transformers_reads_the_folder_with_equal_ids_and_types(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    transformers = pytest.importorskip("transformers")
    ours: Tokenizer = request.getfixturevalue(kind)
    ours.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    pipeline = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in TEXTS:
        encoding = ours.encode(text, "two maps, 30,")
        result = theirs(text, "two maps, 30,")
        assert result["input_ids"] == encoding.ids
        assert result["token_type_ids"] == encoding.type_ids
        assert pipeline.encode(text, "two maps, 30,").ids == encoding.ids
    assert theirs.model_max_length == 512
    assert theirs.mask_token_id == ours.mask_id
    assert theirs.pad_token_id == ours.pad_id


@pytest.mark.parity
def test_transformers_gives_the_golden_ids_from_our_folder(
    shared: Path, english: Tokenizer, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    english.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    golden = shared / "models/albert-english-vocab/golden_tokenization.json"
    for row in json.loads(golden.read_text("utf-8"))["rows"]:
        assert theirs(row["text"], row.get("text_pair"))["input_ids"] == row["ids"]


def test_one_file_or_an_only_model_is_enough(small: Tokenizer, copy: Path) -> None:
    assert Tokenizer.from_pretrained(copy / "spiece.model").fingerprint == small.fingerprint
    (copy / "spiece.model").rename(copy / "30k-clean.model")
    assert Tokenizer.from_pretrained(copy).fingerprint == small.fingerprint
    with pytest.raises(CheckpointError, match=r"must end in \.model"):
        (copy / "notes.md").write_text("x")
        Tokenizer.from_pretrained(copy / "notes.md")


def test_the_tokenizer_class_decides_between_two_vocabularies(
    wordpiece: Tokenizer, copy: Path
) -> None:
    (copy / "vocab.txt").write_bytes(wordpiece.files()["vocab.txt"])
    assert Tokenizer.from_pretrained(copy).kind == "sentencepiece"
    (copy / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizerFast"}')
    (copy / "special_tokens_map.json").unlink()
    assert Tokenizer.from_pretrained(copy).kind == "wordpiece"


def only(copy: Path, name: str, data: bytes) -> Path:
    for path in copy.iterdir():
        path.unlink()
    (copy / name).write_bytes(data)
    return copy


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("notes.md", b"x", "no vocabulary here"),
        ("spiece.model", b"", "is empty"),
        ("spiece.model", b"\x00" * 100, "not a SentencePiece model"),
        ("spiece.model", b"hello world" * 50, "not a SentencePiece model"),
        ("spiece.model", b"\x0a\xff\xff\xff\xff\x7f", "ends early"),
        ("vocab.txt", b"\xff\xfe", "not UTF-8"),
        ("vocab.txt", b"a\nb\nc\nd\ne\n", r"has no \[PAD\]"),
        ("tokenizer.json", b"{", "not valid JSON"),
        ("tokenizer.json", b"[" * 200_000, "not valid JSON"),
        ("tokenizer.json", b"[]", "expected an object"),
        ("tokenizer.json", b"{}", "known are Unigram and WordPiece"),
        ("tokenizer.json", b'{"model": {"type": "BPE"}}', "'BPE'"),
        ("tokenizer.json", b'{"model": {"type": "Unigram"}}', "cannot be used"),
    ],
)
def test_a_damaged_vocabulary_is_refused(copy: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        Tokenizer.from_pretrained(only(copy, name, data))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "not valid JSON"),
        ('{"do_lower_case": "yes"}', "must be true or false"),
        ('{"cls_token": ""}', "must be a word"),
        ('{"cls_token": {"content": 3}}', "must be a word"),
        ('{"cls_token": "<s>"}', "has no <s>"),
    ],
)
def test_a_damaged_configuration_is_refused(copy: Path, config: str, message: str) -> None:
    (copy / "special_tokens_map.json").unlink()
    (copy / "tokenizer_config.json").write_text(config)
    with pytest.raises(CheckpointError, match=message):
        Tokenizer.from_pretrained(copy)


def test_damage_that_shows_only_with_text_is_refused(small: Tokenizer, copy: Path) -> None:
    pipeline = json.loads(small.files()["tokenizer.json"])
    pipeline["model"]["unk_id"] = None
    with pytest.raises(CheckpointError, match="cannot be used"):
        Tokenizer.from_pretrained(only(copy, "tokenizer.json", json.dumps(pipeline).encode()))
    pipeline = json.loads(small.files()["tokenizer.json"])
    table = base64.b64encode(b"\x10\0\0\0" + b"x" * 20).decode()  # makes native code panic
    pipeline["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": table}
    with pytest.raises(CheckpointError, match="cannot be used"):
        Tokenizer.from_pretrained(only(copy, "tokenizer.json", json.dumps(pipeline).encode()))


def test_too_large_files_are_not_read(copy: Path) -> None:
    only(copy, "tokenizer.json", b"")
    os.truncate(copy / "tokenizer.json", 50_000_000)
    with pytest.raises(CheckpointError, match="allowed are 40,000,000"):
        Tokenizer.from_pretrained(copy)


def test_links_out_of_the_folder_are_not_followed(copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.model"
    (copy / "spiece.model").rename(outside)
    (copy / "spiece.model").symlink_to(outside)
    with pytest.raises(CheckpointError, match="outside of the model folder"):
        Tokenizer.from_pretrained(copy)


def test_the_links_of_the_hub_cache_are_followed(
    small: Tokenizer, copy: Path, tmp_path: Path
) -> None:
    blobs, revision = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    revision.mkdir(parents=True)
    (copy / "spiece.model").rename(blobs / "f00")
    (revision / "spiece.model").symlink_to(Path("../../blobs/f00"))
    assert Tokenizer.from_pretrained(revision).fingerprint == small.fingerprint


def test_a_missing_folder_and_a_folder_in_place_of_a_file_are_refused(
    copy: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="no such folder"):
        Tokenizer.from_pretrained(tmp_path / "absent")
    (copy / "spiece.model").unlink()
    (copy / "spiece.model").mkdir()
    with pytest.raises(CheckpointError, match="is a folder, expected a regular file"):
        Tokenizer.from_pretrained(copy)


def test_an_unreadable_file_is_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(CheckpointError, match="cannot be opened: denied"):
        Tokenizer.from_pretrained(copy)


def test_a_model_that_is_not_unigram_is_refused(copy: Path) -> None:
    data = (copy / "spiece.model").read_bytes()
    # Field 2 (trainer), length 2, inside it field 3 (model type) = 2 (byte pairs); the last wins.
    (copy / "spiece.model").write_bytes(data + b"\x12\x02\x18\x02")
    with pytest.raises(CheckpointError, match="type bpe; only unigram"):
        Tokenizer.from_pretrained(copy)


def test_random_damage_never_ends_in_anything_but_a_refusal(copy: Path) -> None:
    data = (copy / "spiece.model").read_bytes()
    random_source = random.Random(0)
    # The pieces come first, the normalisation table after them, the trainer's notes between.
    places = [*range(3000), *range(3000, len(data), 97)]
    refused = 0
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(3):
            position = random_source.choice(places)
            damaged[position] = random_source.randrange(256)
        try:
            Tokenizer.from_pretrained(only(copy, "spiece.model", bytes(damaged))).encode("two maps")
        except CheckpointError:
            refused += 1
    assert refused > 0


def test_a_folder_that_cannot_be_written_is_reported(small: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="cannot write the tokenizer"):
        small.save_pretrained(tmp_path / "file")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    small: Tokenizer, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in copy.iterdir()}

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointError, match="disk full"):
        small.save_pretrained(copy)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_a_vocabulary_that_does_not_fit_is_refused(
    small: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    check_vocabulary_fits(small, small.vocab_size)
    check_vocabulary_fits(small, small.vocab_size + 50)
    assert not caplog.records
    check_vocabulary_fits(small, 30_000)
    assert "check that they belong together" in caplog.text
    with pytest.raises(CheckpointError, match="they do not belong together"):
        check_vocabulary_fits(small, small.vocab_size - 1)
