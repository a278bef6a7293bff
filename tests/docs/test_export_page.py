"""The commands of the page on exports run, and it names every file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.cli import app

pytest.importorskip("onnx")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "export.md").read_text("utf-8")


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from litebert.checkpoint.folder import save_model
    from litebert.model.albert import AlbertWithHead
    from litebert.model.presets import preset

    config = preset("tiny", vocab_size=50).replace(
        hidden_size=16, embedding_size=8, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=32,
    )  # fmt: skip
    save_model(AlbertWithHead(config, "sequence").eval(), tmp_path / "MODEL")
    monkeypatch.chdir(tmp_path)
    block = re.findall(r"```text\n(.*?)```", PAGE, re.S)[0]
    for line in block.splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    for folder in ("exported", "small"):
        for path in (tmp_path / folder).rglob("*"):
            assert path.is_dir() or path.name in PAGE
