"""`quantize` from folder to folder: readable by every command, trained with rounding, refused in time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.checkpoint.int8_pairs import can_saturate
from litebert.checkpoint.quantized import read_quantized
from litebert.cli import app
from litebert.errors import SettingsError
from litebert.model.quantization import Quantization
from litebert.recipes.compress_heal import HealOptions, heal
from litebert.recipes.compress_measure import MeasureOptions
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.predictor import Predictor
from litebert.recipes.quantize import QuantizeJob, quantize_folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Texts whose class follows from one word."""
    rows = [
        f"the {thing} is {word} today number {number},{label}"
        for number in range(3)
        for thing in ("kettle", "lamp", "chair", "radio")
        for word, label in (("broken", "bad"), ("lovely", "good"), ("quiet", "so-so"))
    ]
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_quantized_folder_serves_like_any_other(
    model_dir: Path, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    arguments = ["quantize", str(model_dir), "--out", str(out), "--data", str(table), "--json"]
    result = CliRunner().invoke(app, [*arguments, "--embeddings", "int4", "--group", "8"])
    assert result.exit_code == 0, result.output
    step = json.loads(result.stdout)["steps"][0]
    assert step["step"] == "quantize" and step["before"]["metric"] == "accuracy"
    assert step["facts"]["quantization"]["embeddings"] == "int4"
    assert [d["depth"] for d in step["facts"]["depths"]] == list(
        range(len(step["facts"]["depths"]))
    )
    assert step["after"]["weight_bytes"] < 0.5 * step["before"]["weight_bytes"]
    assert (out / "plots" / "quantization.svg").exists() and (out / "report.json").exists()
    matrices = read_quantized(out)
    assert not any(
        can_saturate(m.values) for name, m in matrices.items() if "embeddings" not in name
    )
    text = "the kettle is broken"
    a, b = (Predictor.load(f).predict([text])[0] for f in (model_dir, out))
    assert a.scores[a.label] == pytest.approx(b.scores[a.label], abs=0.05)  # type: ignore
    report = evaluate_folder(out, EvaluationJob(table))
    assert report.metric == "accuracy"
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 2 and "not empty" in again.output
    shown = CliRunner().invoke(app, ["info", str(out)])
    assert "token table int4" in shown.stdout
    with pytest.raises(SettingsError, match="quantized already"):
        quantize_folder(out, tmp_path / "twice", QuantizeJob(Quantization(), MeasureOptions()))
    assert not (tmp_path / "twice").exists()


def test_training_with_rounding_ends_on_the_grid(
    model_dir: Path, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    job = QuantizeJob(
        Quantization(activations="static"),
        MeasureOptions(EvaluationJob(table), rounds=1),
        HealOptions(table, epochs=2, learning_rate=2e-3, overrides=("train.batch_size=8",)),
    )
    report = quantize_folder(model_dir, out, job)
    assert report.facts["qat"]["steps"] > 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    first = read_quantized(out)
    assert first and not can_saturate(first["encoder.ffns.0.up.weight"].values)
    assert Predictor.load(out).predict(["the lamp is lovely"])[0].label in ("bad", "good", "so-so")


def test_healing_needs_a_task(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"has no task\.json"):
        heal(tmp_path, tmp_path / "x", HealOptions(tmp_path / "rows.csv"))
