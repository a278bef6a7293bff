from __future__ import annotations

import json
from pathlib import Path

import pytest

from litebert.errors import CheckpointError, SettingsError
from litebert.model.presets import PRESETS
from litebert.recipes.describe import describe, find_config, table


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_has_sane_costs(name: str) -> None:
    costs = describe(name)
    assert costs.unique_bytes == 4 * costs.parameters
    assert sum(costs.parts.values()) == costs.parameters
    assert costs.unshared_parameters >= costs.parameters
    assert costs.activation_bytes_inference < costs.activation_bytes_training
    assert json.loads(json.dumps(costs.to_dict()))["name"] == name


def test_sharing_saves_weights_and_no_operations() -> None:
    shared, plain = describe("albert-base-v2"), describe("bert-base")
    assert shared.parameters < plain.parameters / 9
    assert shared.flops_per_token == pytest.approx(plain.flops_per_token, rel=0.01)
    text = "\n".join(shared.lines())
    assert "11,683,584 with pooler" in text
    assert "none saved" in text


def test_a_name_a_folder_or_a_file(model_dir: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "model-best").symlink_to(model_dir)
    for name in (model_dir, model_dir / "config.json", run):
        assert find_config(str(name)).hidden_size == 32


def test_what_is_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="did you mean 'bert-base'"):
        find_config("bert-bse")
    for name in ("no/where", "config.json"):
        with pytest.raises(CheckpointError, match="no such file or folder"):
            find_config(name)
    (tmp_path / "tiny").mkdir()
    assert find_config("tiny").hidden_size == 128  # a preset's name means the preset
    (tmp_path / "bad.json").write_text("[1")
    with pytest.raises(CheckpointError):
        find_config("bad.json")


def test_the_table_is_rectangular() -> None:
    rows = table([describe("tiny"), describe("bert-base")])
    assert {len(row) for row in rows} == {9}
    assert rows[2][-1] == "0.0%"
