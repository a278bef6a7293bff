"""Folding by shards: what their texts feel decides what the cut table keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.checkpoint.saving import save_model
from litebert.compress.fold import FoldOptions
from litebert.errors import DataError
from litebert.model.albert import AlbertWithHead
from litebert.recipes.fold import (
    FOLD_FILE,
    SAMPLED_TEXTS,
    SAMPLED_TOKENS,
    count_pieces,
    fold_folder,
    sample_texts,
)
from litebert.recipes.pretrain.plan import make_plan


def unshared(plan: Any, folder: Path, width: int = 16) -> None:
    config = plan.config.replace(
        embedding_size=width, hidden_size=width, num_attention_heads=2, intermediate_size=24,
        num_hidden_groups=plan.config.num_hidden_layers,
        litebert={"sharing": "none", "project_embeddings": False},
    )  # fmt: skip
    torch.manual_seed(1)
    save_model(AlbertWithHead(config, "embedding"), folder, plan.tokenizer)


def test_texts_are_sampled_from_shards_and_half_of_them_are_mixed(wanted: Any) -> None:
    plan = make_plan(wanted(objectives={"order": "none"}))
    size = plan.config.vocab_size
    texts = sample_texts(plan.shards.folder, plan.tokenizer, size)
    assert len(texts) == SAMPLED_TEXTS and max(map(len, texts)) <= SAMPLED_TOKENS + 2
    for ids in texts:
        assert ids[0] == plan.tokenizer.cls_id and ids[-1] == plan.tokenizer.sep_id
        assert int(ids.min()) >= 0 and int(ids.max()) < size
    seen = set(np.flatnonzero(count_pieces(plan.shards.folder, plan.tokenizer, size)).tolist())
    assert all(set(ids[1:-1].tolist()) <= seen for ids in texts[::2])
    assert any(not set(ids[1:-1].tolist()) <= seen for ids in texts[1::2])
    again = sample_texts(plan.shards.folder, plan.tokenizer, size)
    assert all(torch.equal(a, b) for a, b in zip(texts, again, strict=True))


def test_the_cut_follows_the_shards(wanted: Any, tmp_path: Path) -> None:
    plan = make_plan(wanted(objectives={"order": "none"}))
    unshared(plan, tmp_path / "source")
    options = FoldOptions(embedding_size=6, depth_norms=True)
    fold_folder(tmp_path / "source", tmp_path / "plain", options)
    fold_folder(tmp_path / "source", tmp_path / "by", options, counts=plan.shards.folder)
    shares = [
        json.loads((tmp_path / name / FOLD_FILE).read_text())["explained_energy"]["6"]
        for name in ("plain", "by")
    ]
    assert shares[0] != shares[1] and all(0 < share < 1 for share in shares)


def test_shards_of_another_vocabulary_are_refused(
    wanted: Any, tmp_path: Path, model_dir: Path
) -> None:
    plan = make_plan(wanted(objectives={"order": "none"}))
    with pytest.raises(DataError, match="made with another tokenizer"):
        fold_folder(model_dir, tmp_path / "out", FoldOptions(blocks=1), counts=plan.shards.folder)
