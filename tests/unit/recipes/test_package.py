"""A packaged encoder: all its forms agree, it predicts words, and what does not belong is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.bert_folders import VOCABULARY
from tests.named_encoders import NAME, make_named_encoder, make_student, named_encoders

pytest.importorskip("onnx")

import litebert
from litebert.checkpoint.folder import load_model
from litebert.checkpoint.weights import find_weights
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.recipes.fill import fill_masks
from litebert.recipes.package import package_encoder
from litebert.recipes.predictor import Predictor
from litebert.runtime.session import Session
from litebert.text.tokenizer import Tokenizer

TEXTS = ["the kettle is broken", "a boat sails to the far harbour at night", ""]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packaged") / "encoders"
    make_named_encoder(folder)
    return folder


def test_one_folder_is_everything(place: Path) -> None:
    folder = place / NAME
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names >= {
        "config.json", "model.safetensors", "onnx/litebert_int8.onnx", "export.json", "task.json",
        "modules.json", "1_Pooling/config.json", "README.md", "vocab.txt", "tokenizer.json",
    }  # fmt: skip
    assert {entry.dtype for entry in find_weights(folder).entries.values()} == {"F16"}
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float32"


def test_a_pooler_of_the_teacher_is_left_out(tmp_path: Path) -> None:
    make_student(tmp_path / "student", has_pooler=True)
    assert any("pooler" in name for name in find_weights(tmp_path / "student").entries)
    done = package_encoder(tmp_path / "student", tmp_path / "out")
    assert not any("pooler" in name for name in find_weights(done.path).entries)


def test_half_precision_is_read_as_float32(place: Path, tmp_path: Path) -> None:
    make_student(tmp_path / "student")
    exact = dict(load_model(tmp_path / "student", "embedding").named_parameters())
    for name, weight in load_model(place / NAME, "embedding").named_parameters():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, exact[name].half().float())


def test_graph_and_torch_give_the_same_vectors(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with named_encoders(place, monkeypatch):
        model = litebert.load(NAME)
        assert isinstance(model, Session)
        ours = model.embed(TEXTS)
        theirs = Predictor.load(NAME).embed(TEXTS)
        assert (ours * theirs).sum(1).min() > 0.98
        assert Tokenizer.from_pretrained(NAME).vocab_size == model.tokenizer.vocab_size
        assert litebert.AlbertModel.from_pretrained(NAME).config.hidden_size == 16


def test_masks_are_filled_with_and_without_torch(place: Path, tmp_path: Path) -> None:
    text = "the [MASK] is broken and the [MASK] sails"
    without = fill_masks(place / NAME, text, top=40)
    make_student(tmp_path / "words", head="mlm")
    with_torch = fill_masks(tmp_path / "words", text, top=40)
    assert [len(mask) for mask in without] == [len(VOCABULARY)] * 2
    for ours, theirs in zip(without, with_torch, strict=True):
        found, wanted = ({f.piece: f.probability for f in mask} for mask in (ours, theirs))
        for piece in found.keys() & wanted.keys():
            assert found[piece] == pytest.approx(wanted[piece], abs=0.05)
    for model in (place / NAME, tmp_path / "words"):
        with pytest.raises(DataError, match=r"no \[MASK\]"):
            fill_masks(model, "no mask here")
        with pytest.raises(SettingsError, match="top is 0"):
            fill_masks(model, text, top=0)
    make_student(tmp_path / "vectors")
    with pytest.raises(CheckpointError, match="does not predict words"):
        fill_masks(tmp_path / "vectors", text)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sentence_transformers_gives_the_same_vectors(place: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    theirs = library.SentenceTransformer(str(place / NAME), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(Predictor.load(place / NAME).embed(TEXTS), theirs, atol=1e-5)


def test_an_encoder_that_transformers_cannot_compute_is_packaged_all_the_same(
    tmp_path: Path,
) -> None:
    folder = make_named_encoder(tmp_path / "encoders", depth_norms=True)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "litebert"
    assert not (folder / "modules.json").exists()
    assert litebert.load(folder).embed(TEXTS).shape == (3, 16)


def test_what_cannot_be_packaged_is_refused(place: Path, tmp_path: Path) -> None:
    student, words = tmp_path / "student", tmp_path / "words"
    make_student(student)
    make_student(words, head="mlm", seed=1)
    with pytest.raises(CheckpointError, match="trained on another one"):
        package_encoder(student, tmp_path / "out", words=words)
    with pytest.raises(SettingsError, match="--overwrite"):
        package_encoder(student, place / NAME)
    (tmp_path / "other").mkdir()
    with pytest.raises(SettingsError, match="no model folder"):
        package_encoder(student, tmp_path / "other", overwrite=True)
    with pytest.raises(CheckpointError, match="allowed are 10"):
        package_encoder(student, tmp_path / "out", most_runtime_bytes=10)
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "student", "words"]
    done = package_encoder(student, tmp_path / "out")
    again = package_encoder(student, tmp_path / "out", overwrite=True)
    assert done.runtime_bytes == again.runtime_bytes  # export.json holds a measured time
    assert "no head for masked words" in again.lines()[0]
