"""Texts to vectors, and vectors to files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from litebert.checkpoint.fs import FS, StorageError, use_fs
from litebert.data.tables import read_table
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.recipes.embed import (
    Embedder,
    EmbedOptions,
    column_of,
    embedded,
    table_texts,
    texts_of_stream,
)
from litebert.recipes.predictor import Predictor
from litebert.recipes.vector_files import FORMS, json_lines, require_form, write_vectors

TEXTS = ["the fine kettle is late", "", "a lamp", "the fine kettle is late", "Ünï\ud800 lamp"]


@pytest.fixture(scope="module")
def embedder(model_dir: Path) -> Embedder:
    return Embedder.load(model_dir)


def test_vectors_are_those_of_the_predictor(embedder: Embedder, model_dir: Path) -> None:
    texts = TEXTS[:4]
    vectors = embedder(texts)
    np.testing.assert_allclose(vectors, Predictor.load(model_dir).embed(texts), atol=1e-6)
    assert vectors.dtype == np.float32 and vectors.shape == (4, embedder.width)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert embedder([]).shape == (0, embedder.width)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_prefix_is_scaled_anew_and_options_change_the_fingerprint(
    embedder: Embedder, model_dir: Path, pooling: str
) -> None:
    plain = Embedder.load(
        model_dir, EmbedOptions.model_validate({"pooling": pooling, "normalize": False})
    )
    short = Embedder.load(model_dir, EmbedOptions.model_validate({"pooling": pooling, "dim": 4}))
    raw, cut = plain(TEXTS[:3]), short(TEXTS[:3])
    expected = raw[:, :4] / np.linalg.norm(raw[:, :4], axis=1, keepdims=True)
    np.testing.assert_allclose(cut, expected, atol=1e-5)
    assert len({embedder.fingerprint, plain.fingerprint, short.fingerprint}) == 3
    same = Embedder.load(model_dir, EmbedOptions(batch_tokens=64))
    assert same.fingerprint == embedder.fingerprint


def test_wrong_options_are_refused(model_dir: Path) -> None:
    with pytest.raises(SettingsError, match="vectors have"):
        Embedder.load(model_dir, EmbedOptions(dim=5000))
    with pytest.raises(SettingsError, match="max_length"):
        Embedder.load(model_dir, EmbedOptions(max_length=1000))(["a lamp"])


def test_blocks_keep_the_order_and_do_not_change_vectors(embedder: Embedder) -> None:
    texts = [f"lamp {i} is fine" for i in range(9)]
    blocks = list(embedded(embedder, iter(texts), block=4))
    assert [len(part) for part, _ in blocks] == [4, 4, 1]
    assert [text for part, _ in blocks for text in part] == texts
    joined = np.concatenate([vectors for _, vectors in blocks])
    np.testing.assert_allclose(joined, embedder(texts), atol=1e-5)


def test_streams_give_a_text_for_each_line() -> None:
    assert list(texts_of_stream(io.BytesIO(b"a lamp\r\n\nb\n"), None)) == ["a lamp", "", "b"]
    lines = b'{"body": "x", "n": 1}\n\n{"body": null}\n'
    assert list(texts_of_stream(io.BytesIO(lines), "body")) == ["x", ""]
    with pytest.raises(DataError, match="no field 'text'"):
        list(texts_of_stream(io.BytesIO(lines), None))


def test_tables_give_the_told_or_found_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,review,sentence2\n1,a fine lamp,x y\n2,,z w\n")
    assert table_texts(path, "sentence2")[0] == ["x y", "z w"]
    texts, notes = table_texts(path, None)
    assert texts == ["a fine lamp", ""] and "review" in notes[-1]
    with pytest.raises(SettingsError, match="no column"):
        table_texts(path, "revue")
    pair = tmp_path / "b.csv"
    pair.write_text("sentence1,sentence2\na fine lamp,x y\nan old one,z w\n")
    assert column_of(read_table(pair), None)[0] == "sentence1"


def blocks_of(vectors: np.ndarray) -> list[tuple[list[str], np.ndarray]]:
    return [(TEXTS[:2], vectors[:2]), (TEXTS[2:], vectors[2:])]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same_vectors(tmp_path: Path, form: str) -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    path = tmp_path / f"v{form}"
    path.write_bytes(b"old")
    assert write_vectors(path, blocks_of(vectors), 3, metadata={"key": "x"}) == 5
    texts: list[str] | None = None
    if form == ".npy":
        found = np.load(path, allow_pickle=False)
    elif form == ".safetensors":
        found = load_file(path)["vectors"]
    elif form == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found, texts = np.array([r["vector"] for r in rows], np.float32), [r["text"] for r in rows]
    else:
        table = pq.read_table(path).to_pydict()
        found, texts = np.array(table["vector"], np.float32), table["text"]
    np.testing.assert_allclose(found, vectors, rtol=1e-6)
    last = "Ünï\\ud800 lamp" if form == ".parquet" else TEXTS[4]  # UTF-8 cannot hold it, JSON can
    assert texts is None or texts == [*TEXTS[:4], last]
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", FORMS)
def test_no_rows_make_an_empty_file_of_the_form(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"v{form}"
    assert write_vectors(path, [], 3) == 0
    if form == ".npy":
        assert np.load(path).shape == (0, 3)
    if form == ".safetensors":
        assert load_file(path)["vectors"].shape == (0, 3)


@pytest.mark.parametrize("form", FORMS)
def test_a_fault_in_the_input_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, form: str
) -> None:
    def broken():
        yield ["a"], np.zeros((1, 3), np.float32)
        raise DataError("line 2 is broken")

    path = tmp_path / f"v{form}"
    path.write_bytes(b"old")
    with pytest.raises(DataError, match="broken"):
        write_vectors(path, broken(), 3)
    assert path.read_bytes() == b"old" and sorted(tmp_path.iterdir()) == [path]


class NoRename(FS):
    def before(self, operation: str, path: Path) -> None:
        if operation == "rename":
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"v{form}"
    path.write_bytes(b"old")
    with use_fs(NoRename()), pytest.raises(StorageError):
        write_vectors(path, [(["a"], np.zeros((1, 3), np.float32))], 3)
    assert path.read_bytes() == b"old" and sorted(tmp_path.iterdir()) == [path]


def test_other_endings_are_refused() -> None:
    assert require_form(Path("a.NPY")) == ".npy"
    for name in ("a", "a.csv", "a.npz"):
        with pytest.raises(SettingsError, match="allowed"):
            require_form(Path(name))
    assert list(json_lines([])) == []


def test_a_model_file_that_cannot_be_read_is_told(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("hashlib.file_digest", fail)
    with pytest.raises(CheckpointError, match="Input/output error"):
        Embedder.load(model_dir)
