"""`litebert fold` and `litebert distill` from a BERT folder to a student, killed and gone on with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.bert_folders import WORDS, make_bert
from typer.testing import CliRunner, Result

from litebert.checkpoint.folder import load_model
from litebert.cli import app

pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 300
SETTINGS = """
[student]
source = "{student}"
[data]
max_length = 24
short_fraction = 0.5
eval_examples = 16
[distill]
hidden = 1.0
pooled = 1.0
similarity = 0.5
relation = 0.5
relation_heads = 2
[train]
batch_size = 8
max_steps = 24
learning_rate = 3e-3
log_steps = 4
eval_steps = 8
save_steps = 3
threads = 1
precision = "fp32"
device = "cpu"
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def succeed(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher, shards of its pieces, a folded student, and settings."""
    folder = tmp_path_factory.mktemp("distill")
    make_bert(folder / "bert")
    words = [word for word in WORDS if word.isalpha()]
    lines = [
        " ".join(words[(n * k) % len(words)] for k in range(3, 3 + 4 + n % 9)) + "."
        for n in range(1, 260)
    ]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", "utf-8")
    succeed("prepare", folder / "text.txt", "--tokenizer", folder / "bert", "--out",
            folder / "shards", "--documents", "line", "--sentences", "lines", "-j", 1)  # fmt: skip
    succeed("fold", folder / "bert", "--out", folder / "fold", "-E", 8, "--depth-norms",
            "--lora-rank", 2, "--counts", folder / "shards")  # fmt: skip
    (folder / "student.toml").write_text(SETTINGS.format(student=folder / "fold"), "utf-8")
    return folder


def distil(base: Path, out: Path, *more: object) -> list[object]:
    return ["distill", base / "bert", base / "student.toml", base / "shards", "--out", out, *more]


@pytest.fixture(scope="module")
def finished(base: Path) -> Path:
    out = base / "whole"
    succeed(*distil(base, out))
    return out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model-last" / "model.safetensors")


def test_the_folded_folder_says_what_it_is(base: Path) -> None:
    config = json.loads((base / "fold" / "config.json").read_text())
    assert (config["model_type"], config["embedding_size"]) == ("litebert", 8)
    assert (config["litebert"]["lora_rank"], config["litebert"]["sharing"]) == (2, "all")
    report = json.loads((base / "fold" / "fold.json").read_text())
    assert report["parameters_after"] < report["parameters_before"]
    assert set(report["explained_energy"]) == {"8", "16"}
    assert load_model(base / "fold").head == "embedding"
    wrong = run("fold", base / "bert", "--out", base / "new", "--keep", "0,x")
    assert wrong.exit_code == 2 and "a number from 0, or one for each block" in wrong.output
    result = run("fold", base / "bert", "--out", base / "fold")
    assert result.exit_code == 2
    assert "not empty" in result.output


def test_a_student_comes_nearer(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["steps"] == 24
    for name in ("hidden_loss", "pooled_loss", "relation_loss"):
        assert summary["after"][name] < summary["before"][name]
    model = finished / "model-last"
    report = json.loads((model / "report.json").read_text())
    assert report["steps"][-1]["step"] == "distill"
    assert report["steps"][-1]["before"]["parameters"] > report["steps"][-1]["after"]["parameters"]
    card = (model / "README.md").read_text()
    assert "## Compression" in card
    assert "litebert distill" in card or "distill" in card
    assert (model / "plots" / "curves.svg").exists()
    assert (model / "task.json").exists()


def test_a_student_with_fewer_pieces_learns_from_the_same_shards(base: Path) -> None:
    size = len((base / "bert" / "vocab.txt").read_text().splitlines()) - 12
    narrow = base / "narrow"
    succeed("prune", base / "fold", "--out", narrow, "--vocab-size", size)
    settings = base / "narrow.toml"
    text = SETTINGS.format(student=narrow).replace(
        "eval_examples = 16", 'eval_examples = 16\nreplaced_fraction = 0.5\nreplaced_by = "rank"'
    )
    settings.write_text(text, "utf-8")
    out = base / "narrow-run"
    result = run("distill", base / "bert", settings, base / "shards", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"in {size} of the teacher's" in result.output
    summary = json.loads((out / "summary.json").read_text())
    for name in ("hidden_loss", "pooled_loss", "relation_loss"):
        assert summary["after"][name] < summary["before"][name]
    assert load_model(out / "model-last").config.vocab_size == size
    wide = run("distill", narrow, base / "student.toml", base / "shards", "--out", base / "wide")
    assert wide.exit_code == 2
    assert "cut texts into other pieces" in wide.output


def test_folding_is_scored_on_pairs(base: Path) -> None:
    pairs = [f"{a}\t{b}\t{n % 5}" for n, (a, b) in enumerate(pairwise(WORDS[8:29]))]
    rows = ["sentence1\tsentence2\tscore", *pairs]
    table = base / "pairs.tsv"
    table.write_text("\n".join(rows) + "\n", "utf-8")
    told = succeed("fold", base / "bert", "--out", base / "scored", "--data", table, "--task",
                   "similarity", "--json")  # fmt: skip
    assert "spearman" in told


def test_a_start_that_was_killed_is_done_again(base: Path) -> None:
    out = base / "begun"
    out.mkdir()
    (out / "command.txt").write_text("litebert distill bert student.toml shards\n")
    refused = run(*distil(base, out))
    assert refused.exit_code == 2
    succeed(*distil(base, out, "--resume", "--set", "train.max_steps=1"))
    assert (out / "config.toml").exists() and (out / "model-last").is_dir()


def test_killed_runs_go_on_bit_for_bit(base: Path, finished: Path) -> None:
    out = base / "killed"
    command = [sys.executable, "-m", "litebert", *map(str, distil(base, out))]
    process = subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    states = out / "checkpoints"
    end = time.monotonic() + PATIENCE_SECONDS
    while (
        not (out / "metrics.jsonl").exists()
        or '"step": 4' not in (out / "metrics.jsonl").read_text()
    ):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert states.is_dir()
    assert not (out / "model-last").exists()
    refused = run(*distil(base, out))
    assert refused.exit_code == 2
    assert "--resume" in refused.output
    changed = run(*distil(base, out, "--resume", "--set", "distill.hidden=2.0"))
    assert changed.exit_code == 65
    assert "cannot resume with other settings" in changed.output
    succeed(*distil(base, out, "--resume"))
    for name, expected in weights(finished).items():
        assert torch.equal(weights(out)[name], expected), name


def test_a_damaged_cache_is_named(base: Path, finished: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(finished / "teacher", cache)
    for path in cache.glob("*/shard-000000.bin"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    result = run(*distil(base, tmp_path / "out", "--set", f"data.cache={cache}"))
    assert result.exit_code == 65
    assert "shard-000000.bin" in result.output
    assert "damaged" in result.output


def test_a_preset_of_another_width_learns_through_a_projection(base: Path, tmp_path: Path) -> None:
    settings = SETTINGS.format(student="tiny").replace("relation_heads = 2", "relation_heads = 4")
    settings = settings.replace("[data]", """[student.config]
hidden_size = 8
embedding_size = 8
num_attention_heads = 2
intermediate_size = 16
num_hidden_layers = 2
max_position_embeddings = 24
[data]""")  # fmt: skip
    (tmp_path / "student.toml").write_text(settings)
    succeed("distill", base / "bert", tmp_path / "student.toml", base / "shards", "--out",
            tmp_path / "out", "--set", "train.max_steps=10")  # fmt: skip
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["after"]["hidden_loss"] < summary["before"]["hidden_loss"]
    stored = weights(tmp_path / "out")
    assert not any("project" in name and name.startswith("project") for name in stored)
