"""A tiny model folder, made without training, for the tests of commands and recipes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ADJECTIVES = ("fine", "broken", "lovely", "late", "dented", "quiet", "heavy", "green")
THINGS = ("kettle", "lamp", "chair", "parcel", "radio", "book", "ladder", "carpet")
TEXTS = [f"the {a} {t} is {b}" for a in ADJECTIVES for t in THINGS for b in ADJECTIVES[:3]]

MakeModel = Callable[..., Path]


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """Return a function (kind, **task fields) -> model folder with random weights."""

    def make(kind: str = "multiclass", *, folder: Path | None = None, **fields: Any) -> Path:
        import torch

        from litebert.checkpoint.folder import save_model
        from litebert.model.albert import AlbertWithHead
        from litebert.model.presets import preset
        from litebert.tasks.classification import SequenceClassification
        from litebert.text.vocabulary import train_vocabulary

        path = folder or tmp_path_factory.mktemp("model")
        labels = {"regression": (), "binary": ("no", "yes")}.get(kind, ("bad", "good", "so-so"))
        metric = {"regression": "pearson", "multilabel": "micro_f1"}.get(kind, "accuracy")
        task = SequenceClassification(
            **({"kind": kind, "labels": labels, "metric": metric, "max_length": 32} | fields)
        )
        tokenizer = train_vocabulary(TEXTS, 64, tmp_path_factory.mktemp("vocabulary"))
        config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
            hidden_size=32,
            embedding_size=16,
            num_attention_heads=2,
            intermediate_size=48,
            max_position_embeddings=64,
            id2label=task.config_labels(),
            problem_type=task.problem_type,
            litebert={"head": task.head},
        )
        torch.manual_seed(7)
        model = AlbertWithHead(config, task.head)
        with torch.no_grad():
            for parameter in model.heads.parameters():
                parameter.mul_(20.0)  # answers that differ from text to text
        save_model(model, path, tokenizer, task.to_json())
        return path

    return make


@pytest.fixture(scope="session")
def model_dir(make_model: MakeModel) -> Path:
    """A classifier of three classes over the column `text`."""
    return make_model()


@pytest.fixture(scope="session")
def pair_dir(make_model: MakeModel) -> Path:
    """A classifier of two classes over the columns `first` and `second`."""
    return make_model("binary", text_columns=("first", "second"))
