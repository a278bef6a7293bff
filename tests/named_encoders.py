"""A tiny stand-in for the encoder that comes with litebert: a folder of named encoders."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.bert_folders import VOCABULARY, write_vocabulary

NAME = "litebert-small-en"


def make_student(
    folder: Path,
    *,
    head: str = "embedding",
    seed: int = 0,
    has_pooler: bool = False,
    **options: object,
) -> None:
    """Write a model folder with random weights over the vocabulary of `tests.bert_folders`.

    Two heads of one seed have the same encoder.
    """
    import torch

    from litebert.checkpoint.folder import save_model
    from litebert.model.albert import AlbertWithHead
    from litebert.model.config import AlbertConfig
    from litebert.text.tokenizer import Tokenizer

    write_vocabulary(folder)
    tokenizer = Tokenizer.from_pretrained(folder)
    for path in folder.iterdir():
        path.unlink()
    config = AlbertConfig.from_dict(
        {
            "vocab_size": len(VOCABULARY), "embedding_size": 8, "hidden_size": 16,
            "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
            "max_position_embeddings": 40, "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0, "litebert": {"pooling": "mean"} | options,
        }
    )  # fmt: skip
    model = AlbertWithHead(config, head).eval()
    if not has_pooler:
        model.model.pooler = None
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, weight in [*model.model.named_parameters(), *model.heads.named_parameters()]:
            is_gain = "norm.weight" in name
            weight.copy_(torch.randn_like(weight) * 0.2 + (1.0 if is_gain else 0.0))
    save_model(model, folder, tokenizer)


def make_named_encoder(place: Path, name: str = NAME, **options: object) -> Path:
    """Write `place/name` as `tools/package_encoder.py` does, with a head for masked words."""
    from litebert.recipes.package import package_encoder

    student, words = place.parent / "student", place.parent / "words"
    make_student(student, **options)
    make_student(words, head="mlm", **options)
    return package_encoder(student, place / name, words=words, card="# A stand-in\n").path


@contextmanager
def named_encoders(place: Path, monkeypatch: object) -> Generator[Path]:
    """Let names mean the folders below `place`, in this process and in commands."""
    import pytest

    from litebert import models

    assert isinstance(monkeypatch, pytest.MonkeyPatch)
    before = models._places[0]
    # The variable must go with the folder: every command sets the folder from it anew.
    with monkeypatch.context() as inner:
        inner.setenv("LITEBERT_MODELS", str(place))
        models.set_folder(place)
        try:
            yield place
        finally:
            models.set_folder(before)
