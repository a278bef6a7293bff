"""Teachers with other pieces, teachers of other libraries, and classifiers, through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.bert_folders import WORDS, make_bert
from typer.testing import CliRunner, Result

from litebert.cli import app

pytest.importorskip("transformers")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def succeed(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of text, shards of them, and a folded student."""
    folder = tmp_path_factory.mktemp("teachers")
    make_bert(folder / "bert")
    words = [word for word in WORDS if word.isalpha()]
    lines = [
        " ".join(words[(n * k) % len(words)] for k in range(3, 3 + 4 + n % 9)) + "."
        for n in range(1, 90)
    ]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", "utf-8")
    succeed("prepare", folder / "text.txt", "--tokenizer", folder / "bert", "--out",
            folder / "shards", "--documents", "line", "--sentences", "lines", "-j", 1)  # fmt: skip
    succeed("fold", folder / "bert", "--out", folder / "fold")
    return folder


SENTENCE_LEVEL = """
[student]
source = "{student}"
[data]
max_length = 24
eval_examples = 16
[distill]
pooled = 1.0
similarity = 1.0
[train]
batch_size = 8
max_steps = 6
threads = 1
precision = "fp32"
device = "cpu"
"""


@pytest.mark.parametrize("kind", ["albert", "distilbert"])
def test_other_pieces(base: Path, tmp_path: Path, model_dir: Path, kind: str) -> None:
    """A teacher of another vocabulary teaches whole texts, and says what it cannot teach."""
    teacher: Any = model_dir
    if kind == "distilbert":
        teacher = tmp_path / "distilbert"
        make_bert(teacher, "DistilBertModel", dim=16, n_layers=2, n_heads=2, hidden_dim=24)
    config = tmp_path / "student.toml"
    config.write_text(SENTENCE_LEVEL.format(student=base / "fold"))
    words = ["distill", teacher, config, base / "text.txt", "--out", tmp_path / "out"]
    refused = run(*words, "--set", "distill.hidden=1.0")
    assert refused.exit_code == 2
    assert "into other pieces" in refused.output
    refused = run("distill", teacher, config, base / "shards", "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert "give the texts themselves" in refused.output.replace("\n", " ")
    succeed(*words)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["after"]["pooled_loss"] < summary["before"]["pooled_loss"]


def test_a_classifier_teaches_its_answers(model_dir: Path, tmp_path: Path) -> None:
    rows = ["text,label"]
    for n in range(96):
        kind = ("fine", "broken", "late")[n % 3]
        rows.append(
            f"the {('kettle', 'lamp', 'chair')[n % 7 % 3]} is {kind},{('good', 'bad', 'so-so')[n % 3]}"
        )
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    config = tmp_path / "student.toml"
    config.write_text(
        SENTENCE_LEVEL.format(student="tiny").replace(
            "pooled = 1.0\nsimilarity = 1.0", "soft = 1.0\nlabels = 0.5"
        )
        + "[student.config]\nhidden_size = 16\nembedding_size = 8\nnum_attention_heads = 2\n"
        "intermediate_size = 16\nnum_hidden_layers = 2\nmax_position_embeddings = 32\n"
    )
    words = ["distill", model_dir, config, tmp_path / "data.csv", "--out", tmp_path / "out"]
    output = succeed(*words, "--data", tmp_path / "data.csv", "--set", "train.learning_rate=5e-3",
                     "--set", "train.max_steps=30")  # fmt: skip
    assert "before" in output
    report = json.loads((tmp_path / "out" / "model-last" / "report.json").read_text())
    assert report["steps"][-1]["after"]["metric"] == "accuracy"
    assert report["steps"][-1]["after"]["examples"] == 96
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["after"]["soft_loss"] < summary["before"]["soft_loss"]
    task = json.loads((tmp_path / "out" / "model-last" / "task.json").read_text())
    assert task["labels"] == ["bad", "good", "so-so"]
    succeed("predict", tmp_path / "out", "the kettle is fine")
    unscored = run(*words[:-1], tmp_path / "other", "--max-drop", "0.1")
    assert unscored.exit_code == 2
    assert "--data" in unscored.output
