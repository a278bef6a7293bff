"""Folders with exit heads: every weight comes back, and other readers compute the last depth."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from litebert.checkpoint.folder import load_model, save_model, untrained_parts
from litebert.errors import CheckpointError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig

ATOL = 1e-5
"""Float32, other order of sums."""


def build(**options) -> AlbertWithHead:
    torch.manual_seed(0)
    config = AlbertConfig.from_dict(
        {
            "vocab_size": 30,
            "embedding_size": 8,
            "hidden_size": 16,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "intermediate_size": 24,
            "max_position_embeddings": 32,
            "initializer_range": 0.3,
            "id2label": {0: "no", 1: "yes", 2: "perhaps"},
            "litebert": {"exit_heads": True, **options},
        }
    )
    model = AlbertWithHead(config).eval()
    with torch.no_grad():
        model.exits.weight.normal_()
        model.exits.bias.normal_()
    return model


@pytest.mark.parametrize("options", [{}, {"positions": "rotary"}])
def test_all_weights_come_back(tmp_path: Path, options):
    model = build(**options)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.config == model.config
    assert again.config.model_type == ("litebert" if options else "albert")
    for (name, mine), other in zip(
        model.state_dict().items(), again.state_dict().values(), strict=True
    ):
        assert torch.equal(mine, other), name


def test_other_labels_start_new_exits(tmp_path: Path):
    save_model(build(), tmp_path / "model")
    changes = {"id2label": {0: "a", 1: "b"}}
    assert untrained_parts(tmp_path / "model", "sequence", changes=changes) == ("exits", "sequence")
    with pytest.raises(CheckpointError, match="another shape"):
        load_model(tmp_path / "model", changes=changes)
    new = load_model(tmp_path / "model", changes=changes, allow_new_head=True)
    assert not new.exits.weight.any()
    without = load_model(tmp_path / "model", changes={"litebert": {"exit_heads": False}})
    assert without.exits is None
    plain = build()
    plain.exits = None
    plain.config = plain.config.replace(litebert={"exit_heads": False})
    save_model(plain, tmp_path / "plain")
    asked = load_model(
        tmp_path / "plain", changes={"litebert": {"exit_heads": True}}, allow_new_head=True
    )
    assert not asked.exits.weight.any()


def test_transformers_computes_the_last_depth(tmp_path: Path):
    transformers = pytest.importorskip("transformers")
    model = build()
    save_model(model, tmp_path / "model")
    theirs = transformers.AlbertForSequenceClassification.from_pretrained(tmp_path / "model").eval()
    ids = torch.randint(5, 30, (2, 7))
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, model(ids).logits, atol=ATOL, rtol=0)
