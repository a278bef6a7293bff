"""Every committed run can be read as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.settings import dump_toml, load_settings

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = sorted((ROOT / "configs" / "finetune").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_committed_run_reads_and_writes_back_equal(path: Path, tmp_path: Path) -> None:
    settings = load_settings(FinetuneSettings, path)
    copy = tmp_path / "copy.toml"
    copy.write_text(dump_toml(settings), encoding="utf-8")
    assert load_settings(FinetuneSettings, copy) == settings


def test_there_are_some() -> None:
    assert CONFIGS
