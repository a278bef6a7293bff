"""Shards on disk: what was written is what is read, and every kind of damage is refused by name."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.shards import (
    Shard,
    ShardSet,
    ShardWriter,
    dtype_for,
    read_manifest,
    write_manifest,
)
from litebert.data.shards.format import ShardInfo
from litebert.errors import DataError

sys.path.insert(0, str(Path(__file__).parent))
from shard_fixture import make_shards, sample_documents

FLIPS = 12
"""Positions in each file at which one bit is turned."""


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> ShardSet:
    return make_shards(tmp_path_factory.mktemp("pristine"))


@pytest.fixture
def shards(pristine: ShardSet, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine.folder, tmp_path / "shards"))


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_counts_and_texts_come_back(pristine: ShardSet) -> None:
    from litebert.text.tokenizer import Tokenizer

    documents = sample_documents()
    assert pristine.num_documents == len(documents) == 24
    assert len(pristine.shards) == 3
    tokenizer = Tokenizer.from_pretrained(pristine.tokenizer_folder)
    assert tokenizer.fingerprint == pristine.tokenizer_fingerprint
    assert tokenizer.vocab_size == pristine.vocab_size
    found: list[list[str]] = []
    for shard in pristine.shards:
        for first, last in zip(shard.documents, shard.documents[1:], strict=False):
            found.append([])
            for sentence in range(first, last):
                a, b = int(shard.sentences[sentence]), int(shard.sentences[sentence + 1])
                found[-1].append(tokenizer.decode(shard.ids[a:b].tolist()))
                starts = shard.word_starts(a, b)
                assert starts.dtype == np.bool_
                pieces = tokenizer.pieces(documents[len(found) - 1][len(found[-1]) - 1])
                assert starts.tolist() == pieces.word_starts
    lowered = [[sentence.lower() for sentence in document] for document in documents]
    assert [[s.replace("⁇", "") for s in d] for d in found] == lowered or found == lowered


sentence = st.lists(st.tuples(st.integers(0, 65535), st.booleans()), min_size=0, max_size=12)


@given(st.lists(st.lists(sentence, max_size=4), min_size=1, max_size=6), st.integers(0, 40))
def test_any_documents_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, documents: list[Any], first: int
) -> None:
    folder = tmp_path_factory.mktemp("round")
    kept = [[s for s in document if s] for document in documents]
    kept = [document for document in kept if document]
    with ShardWriter(folder, 0, "uint16") as writer:
        for document in documents:
            writer.add_document(
                [
                    (np.asarray([i for i, _ in s], np.int32), np.asarray([w for _, w in s], bool))
                    for s in document
                ]
            )
        if not kept:
            with pytest.raises(DataError, match="holds no token"):
                writer.finish()
            return
        info = writer.finish()
    shard = Shard(folder, ShardInfo.from_json(info.to_json(), 0, "uint16"), "uint16")
    shard.check_sizes()
    shard.verify(65536)
    flat = [pair for document in kept for s in document for pair in s]
    assert shard.ids.tolist() == [i for i, _ in flat]
    begin = min(first, len(flat))
    assert shard.word_starts(begin, len(flat)).tolist() == [w for _, w in flat[begin:]]
    assert np.diff(shard.sentences).tolist() == [len(s) for d in kept for s in d]
    assert np.diff(shard.documents).tolist() == [len(d) for d in kept]
    assert not list(folder.glob(".*"))


def test_an_unfinished_shard_leaves_nothing(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, 0, "uint16") as writer:
        writer.add_document([(np.asarray([1, 2]), np.asarray([True, False]))])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sentences", "words"),
    [
        ([(np.asarray([1, 2]), np.asarray([True]))], "2 ids but 1 word starts"),
        ([(np.asarray([70_000]), np.asarray([True]))], "uint16 holds 0..65535"),
        ([(np.asarray([-1]), np.asarray([True]))], "ids lie in -1"),
    ],
)
def test_the_writer_refuses_what_does_not_fit(
    tmp_path: Path, sentences: list[Any], words: str
) -> None:
    with ShardWriter(tmp_path, 0, "uint16") as writer, pytest.raises(DataError, match=words):
        writer.add_document(sentences)


def test_the_writer_refuses_lengths_that_do_not_add_up(tmp_path: Path) -> None:
    one = np.ones(1, np.int64)
    with ShardWriter(tmp_path, 0, "uint32") as writer, pytest.raises(DataError, match="add up"):
        writer.add_documents(np.zeros(3, np.int64), np.zeros(3, bool), one, one)


def test_a_shard_that_is_full_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litebert.data.shards.writer.MAX_SHARD_TOKENS", 2)
    with ShardWriter(tmp_path, 0, "uint16") as writer, pytest.raises(DataError, match="new shard"):
        writer.add_document([(np.asarray([1, 2, 3]), np.ones(3, bool))])


def test_number_format_follows_the_vocabulary() -> None:
    assert dtype_for(65_536) == "uint16"
    assert dtype_for(65_537) == "uint32"


def test_shards_pickle_as_their_place(pristine: ShardSet) -> None:
    assert len(pickle.dumps(pristine)) < 10_000
    again = pickle.loads(pickle.dumps(pristine))  # noqa: S301
    assert again.fingerprint == pristine.fingerprint
    assert again.shards[1].ids.tolist() == pristine.shards[1].ids.tolist()


def test_a_full_check_passes_and_tells_how_far_it_is(shards: Path) -> None:
    seen: list[tuple[int, int]] = []
    ShardSet.open(shards, verify="full", on_progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_every_turned_bit_is_found(pristine: ShardSet, tmp_path: Path) -> None:
    for file in sorted(pristine.folder.glob("shard-00001.*")):
        folder = Path(shutil.copytree(pristine.folder, tmp_path / file.name))
        data = bytearray(file.read_bytes())
        for number in range(FLIPS):
            at = number * (len(data) - 1) // (FLIPS - 1)
            data[at] ^= 1 << number % 8
            (folder / file.name).write_bytes(data)
            with pytest.raises(DataError, match=file.name):
                ShardSet.open(folder, verify="full")
            data[at] ^= 1 << number % 8


def test_every_truncation_is_found_at_once(shards: Path) -> None:
    for file in sorted(shards.glob("shard-00002.*")):
        data = file.read_bytes()
        for keep in {0, 1, len(data) // 2, len(data) - 1}:
            file.write_bytes(data[:keep])
            with pytest.raises(DataError, match=f"{file.name}.*cut off"):
                ShardSet.open(shards)
        file.write_bytes(data + b"\0")
        with pytest.raises(DataError, match=file.name):
            ShardSet.open(shards)
        file.write_bytes(data)
    ShardSet.open(shards)


@pytest.mark.parametrize("part", ["ids", "words", "sentences", "documents"])
def test_a_missing_file_is_named(shards: Path, part: str) -> None:
    (shards / f"shard-00001.{part}.bin").unlink()
    with pytest.raises(DataError, match=f"shard-00001.{part}.bin: the file is missing"):
        ShardSet.open(shards)


def test_a_folder_in_the_place_of_a_file_is_refused(shards: Path) -> None:
    (shards / "shard-00000.ids.bin").unlink()
    (shards / "shard-00000.ids.bin").mkdir()
    with pytest.raises(DataError, match="no regular file"):
        ShardSet.open(shards)


def test_swapped_shards_are_found(shards: Path) -> None:
    first, second = shards / "shard-00000.ids.bin", shards / "shard-00001.ids.bin"
    size = min(first.stat().st_size, second.stat().st_size)
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)
    with pytest.raises(DataError, match=r"shard-0000[01]\.ids\.bin"):
        ShardSet.open(shards, verify="full" if len(a) == len(b) == size else "sizes")


def test_offsets_of_another_shard_are_found_without_reading_everything(shards: Path) -> None:
    path = shards / "shard-00000.sentences.bin"
    offsets = np.fromfile(path, np.uint32)
    offsets[-1] += 1
    offsets.tofile(path)
    with pytest.raises(DataError, match="not from 0 to"):
        ShardSet.open(shards)


def seal_again(folder: Path, part: str) -> None:
    """Make the manifest agree with a changed file."""
    import hashlib

    path = folder / f"shard-00000.{part}.bin"
    values = json.loads((folder / "manifest.json").read_text())
    values["shards"][0]["files"][part]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    infos = [ShardInfo.from_json(v, i, "uint16") for i, v in enumerate(values["shards"])]
    from litebert.text.tokenizer import Tokenizer

    write_manifest(folder, infos, Tokenizer.from_pretrained(folder / "tokenizer"))


def test_falling_offsets_are_refused_though_the_manifest_agrees(shards: Path) -> None:
    path = shards / "shard-00000.sentences.bin"
    offsets = np.fromfile(path, np.uint32)
    offsets[1], offsets[2] = offsets[2], offsets[1]
    offsets.tofile(path)
    seal_again(shards, "sentences")
    with pytest.raises(DataError, match="do not rise"):
        ShardSet.open(shards, verify="full")


def test_ids_beyond_the_vocabulary_are_refused_though_the_manifest_agrees(shards: Path) -> None:
    path = shards / "shard-00000.ids.bin"
    ids = np.fromfile(path, np.uint16)
    ids[3] = 60_000
    ids.tofile(path)
    seal_again(shards, "ids")
    with pytest.raises(DataError, match="id 60000 is outside"):
        ShardSet.open(shards, verify="full")


def test_a_newer_version_is_refused_with_its_number(shards: Path) -> None:
    edit_manifest(shards, format_version=7)
    with pytest.raises(DataError, match="format version 7, this litebert reads up to 1"):
        ShardSet.open(shards)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "other"}, "its format is 'other'"),
        ({"format_version": "1"}, "format version is '1'"),
        ({"vocab_size": -3}, "vocab_size is -3"),
        ({"vocab_size": 100_000}, "expected uint32"),
        ({"dtype": "float64"}, "dtype is 'float64'"),
        ({"shards": []}, "lists no shard"),
        ({"shards": [7]}, "expected a JSON object"),
        ({"num_tokens": 5}, "num_tokens is 5"),
        ({"fingerprint": "x"}, "fingerprint is 'x'"),
        ({"tokenizer_files": [{"name": "../x", "size": 1, "sha256": "y"}]}, "tokenizer file"),
        ({"tokenizer_files": [{"name": "x", "size": 1, "sha256": "y"}] * 17}, "17 tokenizer"),
        ({"tokenizer_files": 4}, "damaged"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(
    shards: Path, changes: dict[str, Any], words: str
) -> None:
    edit_manifest(shards, **changes)
    with pytest.raises(DataError, match=words):
        ShardSet.open(shards)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e.update(name="../etc"), "is named"),
        (lambda e: e.update(num_tokens=0), "num_tokens is 0"),
        (lambda e: e.update(num_tokens=1 << 40), "num_tokens is"),
        (lambda e: e.update(num_tokens=True), "num_tokens is True"),
        (lambda e: e.update(num_documents=e["num_tokens"] + 1), "contradict"),
        (lambda e: e["files"]["ids"].update(name="other.bin"), "not described"),
        (lambda e: e["files"]["ids"].update(sha256="no"), "not described"),
        (lambda e: e["files"]["words"].update(size=1 << 50), "should have"),
        (lambda e: e.pop("files"), "expected a JSON object"),
    ],
)
def test_an_entry_of_a_shard_that_lies_is_refused(shards: Path, change: Any, words: str) -> None:
    values = json.loads((shards / "manifest.json").read_text())
    change(values["shards"][0])
    (shards / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(DataError, match=words):
        read_manifest(shards)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000])
def test_a_manifest_that_is_no_object_is_refused(shards: Path, text: str) -> None:
    (shards / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="damaged"):
        ShardSet.open(shards)


def test_a_folder_without_manifest_says_how_to_finish_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="same command again"):
        ShardSet.open(tmp_path)


def test_a_manifest_that_cannot_be_read_is_refused(shards: Path) -> None:
    (shards / "manifest.json").unlink()
    (shards / "manifest.json").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        ShardSet.open(shards)


def test_a_changed_tokenizer_file_is_named(shards: Path) -> None:
    path = shards / "tokenizer" / "spiece.model"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"spiece\.model: the tokenizer file is not the one"):
        ShardSet.open(shards)
    path.unlink()
    with pytest.raises(DataError, match=r"spiece\.model: the file is missing"):
        ShardSet.open(shards)


def test_another_tokenizer_is_refused_by_name(pristine: ShardSet) -> None:
    pristine.check_tokenizer(pristine.tokenizer_fingerprint, "same")
    with pytest.raises(DataError, match="than my-tokenizer"):
        pristine.check_tokenizer("0" * 64, "my-tokenizer")


def test_the_fingerprint_follows_the_content(pristine: ShardSet, tmp_path: Path) -> None:
    other = make_shards(tmp_path, documents_per_shard=9)
    assert other.tokenizer_fingerprint == pristine.tokenizer_fingerprint
    assert other.fingerprint != pristine.fingerprint


def test_a_write_that_fails_leaves_the_old_manifest(
    shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litebert.data.shards.durable import write_atomic

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = (shards / "manifest.json").read_bytes()
    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        write_atomic(shards / "manifest.json", b"new")
    assert (shards / "manifest.json").read_bytes() == before
    assert not list(shards.glob(".*"))
