"""Every tracker: takes any line of a log, goes on after a roll-back, and names its missing package."""

from __future__ import annotations

import importlib
import logging
import math
import tomllib
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import MagicMock

import pytest

from litebert.errors import MissingDependencyError
from litebert.train.trackers import TRACKERS, TrackedRun, Trackers

LINES: list[dict[str, Any]] = [
    {"kind": "train", "step": 10, "loss": 2.5, "terms": {"mlm": 2.0}, "grad_norm": math.inf},
    {"kind": "eval", "step": 10, "metrics": {"mlm_accuracy": 0.25}, "is_best": True},
    {"kind": "warning", "step": 11, "message": "the disk is full", "timing": {}},
    {"kind": "train", "step": 5, "loss": math.nan, "timing": {"eta_seconds": None}},
]
"""Numbers, no numbers, numbers that are none, and a step that comes again after a roll-back."""


def run_in(folder: Path) -> TrackedRun:
    return TrackedRun(folder=folder, settings={"seed": 1, "guard": {"enabled": True}}, step=4)


@pytest.mark.parametrize("name", list(TRACKERS))
def test_a_tracker_takes_every_line_until_it_is_closed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    package = MagicMock()
    monkeypatch.setattr(importlib, "import_module", lambda module: package)
    with caplog.at_level(logging.WARNING):
        trackers = Trackers([name], run_in(tmp_path))
        for line in LINES:
            trackers.log(line)
        before = len(package.mock_calls)
        trackers.close()
        assert len(package.mock_calls) > before
    assert not caplog.records


@pytest.mark.parametrize("name", list(TRACKERS))
def test_a_missing_package_is_named_with_an_extra_that_exists(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    def refuse(module: str) -> NoReturn:
        raise ImportError(module)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingDependencyError) as caught:
        Trackers([name], run_in(tmp_path))
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    assert caught.value.extra in project["optional-dependencies"]


@pytest.mark.parametrize("name", list(TRACKERS))
def test_a_tracker_says_what_it_is(name: str) -> None:
    assert TRACKERS.get(name).__doc__
