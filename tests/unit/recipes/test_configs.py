"""Every committed run can be read as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from litebert.model.presets import preset
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.settings import Settings, dump_toml, load_settings

ROOT = Path(__file__).resolve().parents[3]
KINDS: dict[str, type[Settings]] = {"finetune": FinetuneSettings, "pretrain": PretrainSettings}
CONFIGS = [
    (kind, path)
    for kind, folder in ((kind, ROOT / "configs" / name) for name, kind in KINDS.items())
    for path in sorted(folder.glob("*.toml"))
]


@pytest.mark.parametrize(("kind", "path"), CONFIGS, ids=lambda value: getattr(value, "name", ""))
def test_a_committed_run_reads_and_writes_back_equal(
    kind: type[Settings], path: Path, tmp_path: Path
) -> None:
    settings = load_settings(kind, path)
    copy = tmp_path / "copy.toml"
    copy.write_text(dump_toml(settings), encoding="utf-8")
    assert load_settings(kind, copy) == settings


def test_there_are_some_of_each_kind() -> None:
    assert {kind for kind, _ in CONFIGS} == set(KINDS.values())


@pytest.mark.parametrize("path", [path for kind, path in CONFIGS if kind is PretrainSettings])
def test_the_shape_of_a_committed_pretraining_run_is_one(path: Path) -> None:
    model = load_settings(PretrainSettings, path).model
    if model.source.startswith("runs/"):  # made by the command above it in the file
        assert f"litebert pretrain configs/pretrain/{path.name}" in path.read_text(encoding="utf-8")
        return
    assert preset(model.source, **model.config).num_hidden_layers > 1
