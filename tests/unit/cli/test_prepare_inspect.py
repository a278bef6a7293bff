"""`litebert prepare --inspect`: prepares nothing, shows examples; what is missing is said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent.parent / "data"))
from shard_fixture import make_shards

from litebert.cli import app


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shards(tmp_path_factory.mktemp("shards")).folder


def run(*arguments):
    return CliRunner().invoke(app, ["prepare", *map(str, arguments)])


def test_examples_are_shown_and_nothing_is_written(shards):
    before = {path: path.stat().st_mtime_ns for path in shards.rglob("*")}
    result = run("--inspect", shards, "--examples", 2)
    assert result.exit_code == 0, result.output
    assert "Example 2 of 2" in result.stdout and "sop:" in result.stdout
    assert {path: path.stat().st_mtime_ns for path in shards.rglob("*")} == before


def test_settings_of_a_run_are_used(shards, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text(
        '[data]\nshards = "elsewhere"\nmax_length = 40\n[objectives]\norder = "nsp"\n'
    )
    result = run("--inspect", shards, "--config", config)
    assert result.exit_code == 0, result.output
    assert "at most 37" in result.stdout and "nsp:" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--inspect", "a", "b"), "one shard folder, got 2"),
        (("a", "--out", "b"), "--tokenizer is needed"),
        (("a", "--tokenizer", "b"), "--out is needed"),
        (("--inspect", "a", "--examples", "0"), "allowed: 1 to 100"),
        (("--inspect", "missing"), "manifest.json"),
    ],
)
def test_what_is_wrong_is_said(arguments, message):
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in " ".join((result.stdout + result.stderr + str(result.exception)).split())
