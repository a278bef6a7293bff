"""Runs of the real model with the optimizers of pretraining: stopped and resumed, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.events import Event, Stepped
from litebert.train.loop import fit
from litebert.train.settings import TrainSettings
from litebert.train.stop import StopRequest

CONFIG = {
    "vocab_size": 24,
    "embedding_size": 4,
    "hidden_size": 8,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.1,
}


def make_model() -> AlbertWithHead:
    torch.manual_seed(0)
    return AlbertWithHead(AlbertConfig.from_dict(CONFIG), "sequence")


def rates(folder: Path) -> list[float]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [entry["learning_rate"] for entry in map(json.loads, lines) if entry["kind"] == "train"]


@pytest.mark.parametrize("name", ["lamb", "muon"])
def test_a_run_resumes_bit_for_bit(name: str, make_examples: Any, tmp_path: Path) -> None:
    settings = TrainSettings(
        optimizer=name,
        schedule="wsd",
        learning_rate=0.01,
        batch_size=8,
        max_steps=8,
        save_steps=3,
        log_steps=1,
        threads=1,
        device="cpu",
        precision="fp32",
    )
    data = make_examples(24)
    whole = make_model()
    fit(whole, data, settings, state_dir=tmp_path / "whole")
    for n in (1, 4, 7):
        folder, stop, cut = tmp_path / str(n), StopRequest(), make_model()

        def on_event(event: Event, n: int = n, stop: StopRequest = stop) -> None:
            if isinstance(event, Stepped) and event.step == n:
                stop.request(15)

        first = fit(make_model(), data, settings, state_dir=folder, stop=stop, on_event=on_event)
        assert (first.status, first.step) == ("interrupted", n)
        fit(cut, data, settings, state_dir=folder, resume=True)
        assert rates(folder) == rates(tmp_path / "whole")
        saved, expected = cut.state_dict(), whole.state_dict()
        assert all(torch.equal(saved[key], expected[key]) for key in expected)
    assert rates(tmp_path / "whole")[-1] < 0.01
