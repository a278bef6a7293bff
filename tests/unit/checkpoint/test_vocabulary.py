from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from litebert.checkpoint.folder import load_encoder, load_model, save_model
from litebert.checkpoint.weights import read_header
from litebert.errors import CheckpointError
from litebert.text.tokenizer import Tokenizer

Make = Callable[..., Any]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_vocabulary(folder: Path, entries: int) -> None:
    folder.mkdir(exist_ok=True)
    words = [*SPECIAL, *(f"w{i}" for i in range(entries - len(SPECIAL)))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    write_vocabulary(tmp_path / "vocabulary", 19)
    return Tokenizer.from_pretrained(tmp_path / "vocabulary")


def test_the_vocabulary_is_saved_with_the_weights(
    tmp_path: Path, make_model: Make, tokenizer: Tokenizer
) -> None:
    folder = tmp_path / "m"
    save_model(make_model(), folder, tokenizer)
    assert set(tokenizer.files()) <= {path.name for path in folder.iterdir()}
    _, metadata = read_header(folder / "model.safetensors")
    assert metadata["litebert.vocabulary"].startswith("vocab.txt ")
    assert Tokenizer.from_pretrained(folder).fingerprint == tokenizer.fingerprint
    assert load_model(folder)


def test_an_exchanged_vocabulary_is_refused(
    tmp_path: Path, make_model: Make, tokenizer: Tokenizer
) -> None:
    folder = tmp_path / "m"
    save_model(make_model(), folder, tokenizer)
    text = (folder / "vocab.txt").read_text()
    (folder / "vocab.txt").write_text(text.replace("w1\nw2", "w2\nw1"))
    with pytest.raises(CheckpointError, match=r"vocab\.txt: is not the vocabulary"):
        load_model(folder)
    assert load_model(folder, check_tokenizer=False)
    (folder / "vocab.txt").unlink()
    assert load_model(folder)  # tokenizer.json still stands for it


def test_a_vocabulary_that_is_too_large_is_refused(
    tmp_path: Path, make_model: Make, saved: Path
) -> None:
    write_vocabulary(tmp_path / "large", 20)
    with pytest.raises(CheckpointError, match="do not belong together"):
        save_model(make_model(), tmp_path / "m", Tokenizer.from_pretrained(tmp_path / "large"))
    assert not (tmp_path / "m").exists()
    write_vocabulary(saved, 20)
    for load in (load_model, load_encoder):
        with pytest.raises(CheckpointError, match=f"{saved}.*do not belong together"):
            load(saved)
    write_vocabulary(saved, 19)
    assert load_model(saved)


def test_a_broken_tokenizer_is_refused(saved: Path) -> None:
    (saved / "tokenizer.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load_model(saved)


def test_strange_metadata_is_no_stamp(saved: Path) -> None:
    path = saved / "model.safetensors"
    write_vocabulary(saved, 19)
    for stamp in ("", "x", "../vocab.txt 00", "vocab.txt"):
        save_file(load_file(path), path, {"format": "pt", "litebert.vocabulary": stamp})
        if stamp == "vocab.txt":
            with pytest.raises(CheckpointError, match="is not the vocabulary"):
                load_model(saved)
        else:
            assert load_model(saved)


def test_saving_without_tokenizer_keeps_the_one_that_is_there(
    tmp_path: Path, make_model: Make, tokenizer: Tokenizer
) -> None:
    folder = tmp_path / "m"
    save_model(make_model(), folder, tokenizer)
    save_model(make_model(seed=1), folder)
    assert Tokenizer.from_pretrained(folder).fingerprint == tokenizer.fingerprint
    assert load_model(folder)
