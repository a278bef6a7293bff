"""Pretraining with weights split over two ranks gives what whole weights give, and can change over."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "data"))
from pretrain_processes import metrics
from shard_fixture import make_shards
from sharding_script import OPTIMIZERS, STOP_STEP, TRAIN

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SCRIPT = Path(__file__).with_name("sharding_script.py")
LOSS_RTOL = 1e-5
"""Sums in another order: float32 rounding, grown over ten steps."""
WEIGHTS_ATOL = 2e-5
"""The same for weights of about 1; AdamW makes small gradients large."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Return the folder of all runs, and for each rank: run -> facts."""
    folder = tmp_path_factory.mktemp("sharding")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(SCRIPT), str(folder),
         str(make_shards(folder).folder), str(port)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, json.loads((folder / "found.json").read_text(encoding="utf-8"))


def losses(folder: Path) -> list[float]:
    return [line["loss"] for line in metrics(folder) if "loss" in line]


def check_equal(folder: Path, other: Path) -> None:
    assert len(losses(folder)) == TRAIN["max_steps"]
    np.testing.assert_allclose(losses(folder), losses(other), rtol=LOSS_RTOL)
    for name in ("model.safetensors", "config.json"):
        assert (folder / "model-last" / name).stat().st_size == (
            other / "model-last" / name
        ).stat().st_size
    found, wanted = (load_file(f / "model-last" / "model.safetensors") for f in (folder, other))
    assert found.keys() == wanted.keys()
    for name, values in found.items():
        assert values.shape == wanted[name].shape
        np.testing.assert_allclose(values, wanted[name], rtol=0, atol=WEIGHTS_ATOL)


@pytest.mark.parametrize("name", [*OPTIMIZERS, "rtd"])
def test_split_weights_train_as_whole_ones(runs, name: str) -> None:
    """Losses, norms, evaluations, model folder and saved states, whatever each rank has to do."""
    folder, _ = runs
    split, whole = folder / f"{name}-split", folder / f"{name}-whole"
    check_equal(split, whole)
    for line, other in zip(metrics(split), metrics(whole), strict=True):
        assert line.keys() == other.keys()


def test_saved_states_have_the_same_tensors(runs) -> None:
    folder, _ = runs
    shapes = []
    for way in ("whole", "split"):
        states = sorted((folder / f"adamw-{way}" / "checkpoints").glob("step-*"))
        files = [file for state in states for file in sorted(state.glob("*.safetensors"))]
        assert files
        shapes.append(
            [(f.name, n, t.shape, t.dtype) for f in files for n, t in sorted(load_file(f).items())]
        )
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", ["from-whole", "from-split", "from-two"])
def test_a_stopped_run_goes_on_in_the_other_way(runs, name: str) -> None:
    """From whole to split weights and back, and from two split ranks to one process."""
    folder, ranks = runs
    assert ranks[1]["from-two"]["status"] == "interrupted"
    assert ranks[1]["from-two"]["step"] == STOP_STEP + 1, "the ranks agree in the next step"
    check_equal(folder / name, folder / "adamw-whole")


@pytest.mark.parametrize("name", [*OPTIMIZERS, "rtd"])
def test_each_rank_holds_half(runs, name: str) -> None:
    """Weights and optimizer memory; the first dimension of a weight may be odd."""
    _, ranks = runs
    wholes = [rank[f"{name}-whole"] for rank in ranks]
    parts = [rank[f"{name}-split"] for rank in ranks]
    for key in ("weights", "memory"):
        assert wholes[0][key] == wholes[1][key] == parts[0][key] + parts[1][key]
        assert max(part[key] for part in parts) < 0.52 * wholes[0][key]
    assert parts[0]["bytes"] == 4 * wholes[0]["weights"]


@pytest.mark.parametrize("name", ["adamw-split", "from-whole"])
def test_what_a_rank_does_not_hold_is_freed(runs, name: str) -> None:
    """Also after resuming from a whole state: a part must be no view of the whole."""
    _, ranks = runs
    whole = ranks[0]["adamw-whole"]["bytes_held"]
    assert whole == 4 * (ranks[0]["adamw-whole"]["weights"] + ranks[0]["adamw-whole"]["memory"])
    assert max(rank[name]["bytes_held"] for rank in ranks) < 0.55 * whole


def test_a_lost_rank_is_named(runs) -> None:
    _, ranks = runs
    assert "rank 0 of 2 cannot reach the others" in ranks[0]["lost"]
    assert "--resume" in ranks[0]["lost"]
