from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest

from litebert.checkpoint.faults import FaultyFS
from litebert.checkpoint.fs import StorageError, use_fs
from litebert.train.log import MetricsLog, resident_bytes
from litebert.train.report import Reporter


def test_lines_are_there_at_once_and_hold_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    log = MetricsLog(path)
    log.open()
    log.write("train", 3, {"loss": math.nan, "metrics": {"x": math.inf}}, {"seconds": 1.0})
    line = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert line == {
        "kind": "train",
        "step": 3,
        "loss": "nan",
        "metrics": {"x": "inf"},
        "timing": {"seconds": 1.0},
    }
    log.sync()
    log.close()
    log.close()
    log.write("train", 4, {}, {})
    assert path.read_text().count("\n") == 1


def test_resuming_cuts_what_came_after_the_state(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    log.open()
    log.write("train", 1, {}, {})
    offset = log.offset
    log.write("train", 2, {}, {})
    log.close()
    log.open(offset)
    log.write("train", 2, {"again": True}, {})
    log.close()
    steps = [json.loads(line)["step"] for line in path.read_text().splitlines()]
    assert steps == [1, 2]
    path.write_text("")
    log.open(offset)  # the file was deleted or emptied meanwhile
    assert log.offset == 0
    log.close()


@pytest.mark.parametrize("fault", ["error", "short_write"])
def test_full_disk_costs_one_line_and_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    log.open()
    with use_fs(FaultyFS(2, fault=fault, times=2)), caplog.at_level(logging.WARNING):  # type: ignore[arg-type]
        for step in range(1, 6):
            log.write("train", step, {}, {})
    log.close()
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 4, 5]
    assert len(caplog.records) == 1


def test_a_folder_where_the_file_should_be(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write the metrics"):
        MetricsLog(tmp_path).open()


def test_without_a_path_nothing_happens() -> None:
    log = MetricsLog(None)
    log.open(5)
    log.write("train", 1, {}, {})
    assert log.offset == 0


def test_resident_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10e6 < resident_bytes() < 1e12

    def fail(self: Path, **options: str) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", fail)
    assert 10e6 < resident_bytes() < 1e12


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_warning_is_told_once(is_heard: bool, caplog: pytest.LogCaptureFixture) -> None:
    """To the listener, who shows it; to the log only where nobody listens."""
    heard: list[Any] = []
    metrics: Any = MetricsLog(None)
    nothing: Any = None
    reporter = Reporter(heard.append if is_heard else None, metrics, [], nothing, nothing)
    reporter.warned(3, "the disk is full")
    assert [event.message for event in heard] == ["the disk is full"] * is_heard
    assert [record.message for record in caplog.records] == ["step 3: the disk is full"] * (
        not is_heard
    )
