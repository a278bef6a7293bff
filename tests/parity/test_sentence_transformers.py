"""Saved embedding models are folders of sentence-transformers, and give the same vectors there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from litebert.checkpoint.folder import save_model
from litebert.checkpoint.sentence_transformers import (
    sentence_transformers_files,
    write_sentence_transformers,
)
from litebert.errors import CheckpointError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.recipes.embed import Embedder, EmbedOptions
from litebert.text.vocabulary import train_vocabulary

TEXTS = [
    "the fox runs",
    "an ox stood there",
    "rain",
    "it rains on the fox and the ox " * 9,
    "Fox!",
    "",
]
STEPS = ["Transformer", "Pooling", "Normalize"]


def make_config(vocab_size: int = 60, **options: object) -> AlbertConfig:
    return AlbertConfig.from_dict(
        {
            "vocab_size": vocab_size,
            "embedding_size": 12,
            "hidden_size": 24,
            "num_hidden_layers": 3,
            "num_attention_heads": 3,
            "intermediate_size": 40,
            "max_position_embeddings": 32,
            "litebert": {"pooling": "mean"} | options,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = train_vocabulary(TEXTS[:5] * 3, 50, tmp_path_factory.mktemp("vocabulary"))
    config = make_config(tokenizer.vocab_size)
    torch.manual_seed(1)
    model = AlbertWithHead(config, "embedding")
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape) * 0.1)
    path = tmp_path_factory.mktemp("model")
    save_model(model, path, tokenizer)
    write_sentence_transformers(path, model.config, 16)
    return path


def test_the_files_are_as_documented(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    assert [module["type"] for module in modules] == [
        f"sentence_transformers.models.{step}" for step in STEPS
    ]
    assert [(m["idx"], m["name"], m["path"]) for m in modules] == [
        (0, "0", ""), (1, "1", "1_Pooling"), (2, "2", "2_Normalize")
    ]  # fmt: skip
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert pooling["word_embedding_dimension"] == 24
    chosen = [k for k, v in pooling.items() if k.startswith("pooling_mode_") and v]
    assert chosen == ["pooling_mode_mean_tokens"]
    lengths = json.loads((folder / "sentence_bert_config.json").read_text())
    assert lengths == {"max_seq_length": 16, "do_lower_case": False}
    general = json.loads((folder / "config_sentence_transformers.json").read_text())
    assert general["similarity_fn_name"] == "cosine"
    save_again = {path.name for path in folder.iterdir()}
    assert {"modules.json", "model.safetensors", "tokenizer.json"} <= save_again


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_transformers_and_mean_pooling_give_our_vectors(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    limit = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=limit, return_tensors="pt")
    with torch.inference_mode():
        hidden = theirs(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None].float()
    vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1).numpy()
    ours = Embedder.load(folder, EmbedOptions(max_length=limit))(TEXTS)
    np.testing.assert_allclose(ours, vectors, atol=1e-5)


def test_sentence_transformers_itself_gives_our_vectors(folder: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(
        Embedder.load(folder, EmbedOptions(max_length=16))(TEXTS), theirs, atol=1e-5
    )


def test_what_they_cannot_load_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="transformers has no such model"):
        sentence_transformers_files(make_config(positions="rotary"), 16)
    with pytest.raises(SettingsError, match="pooling is 'cls'"):
        sentence_transformers_files(make_config(pooling="cls"), 16)
    for length in (2, 33):
        with pytest.raises(SettingsError, match=r"3\.\.32"):
            sentence_transformers_files(make_config(), length)
    with pytest.raises(CheckpointError, match="no model folder"):
        write_sentence_transformers(tmp_path, make_config(), 16)
