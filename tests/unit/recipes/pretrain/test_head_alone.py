"""A head for masked words on an encoder that stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.checkpoint.saving import save_model
from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel
from litebert.recipes.fold import count_pieces
from litebert.recipes.pretrain.plan import make_plan
from litebert.recipes.pretrain.run import new_model, run_plan
from litebert.recipes.run_folder import RunFolder
from litebert.train.stop import StopRequest

MLM = {"order": "none"}


def saved_encoder(wanted: Any, folder: Path) -> AlbertModel:
    plan = make_plan(wanted(objectives=MLM))
    torch.manual_seed(7)
    encoder = AlbertModel(plan.config, add_pooler=False)
    save_model(encoder, folder, plan.tokenizer)
    return encoder


def test_only_the_head_is_trained_and_it_begins_with_counts(wanted: Any, tmp_path: Path) -> None:
    encoder = saved_encoder(wanted, tmp_path / "encoder")
    settings = wanted(
        objectives=MLM,
        model={"source": str(tmp_path / "encoder"), "config": {}, "train": "head"},
        train={"max_steps": 2, "learning_rate": 0.01},
    )
    plan = make_plan(settings)
    model = new_model(plan)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == {
        f"heads.mlm.{name}"
        for name in ("bias", "dense.weight", "dense.bias", "norm.weight", "norm.bias")
    }
    counts = count_pieces(plan.shards.folder, plan.tokenizer, plan.config.vocab_size).numpy()
    bias = model.get_parameter("heads.mlm.bias").detach().numpy()
    order = np.argsort(counts, kind="stable")
    assert (np.diff(bias[order]) >= -1e-6).all()
    assert bias.max() > bias.min()

    folder = RunFolder.create(tmp_path / "run", name="run")
    outcome = run_plan(plan, folder, on_event=lambda event: None, stop=StopRequest())
    assert outcome.result.step == 2
    again = new_model(make_plan(settings.model_copy(update={"model": settings.model.model_copy(
        update={"source": str(folder.last)})})))  # fmt: skip
    # The encoder is the same, the head is not what it was, and a head that is there is gone on with.
    for name, weight in encoder.named_parameters():
        assert torch.equal(weight, again.get_parameter(f"model.{name}"))
    assert not torch.equal(again.get_parameter("heads.mlm.bias"), torch.from_numpy(bias))


def test_random_encoders_are_refused(wanted: Any) -> None:
    with pytest.raises(SettingsError, match="would stay random"):
        make_plan(wanted(objectives=MLM, model={"train": "head"}))
