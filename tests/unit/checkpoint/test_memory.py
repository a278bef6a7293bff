from __future__ import annotations

from pathlib import Path

from litebert.checkpoint.memory import available_memory_bytes

MEMINFO = "MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 50 kB\n"


def write(
    folder: Path, limit: str, used: str = "1000", stat: str = "anon 5\ninactive_file 200\n"
) -> Path:
    folder.mkdir()
    (folder / "memory.max").write_text(limit)
    (folder / "memory.current").write_text(used)
    (folder / "memory.stat").write_text(stat)
    return folder


def test_the_smaller_of_system_and_container_counts(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(MEMINFO)
    assert available_memory_bytes(meminfo, tmp_path / "none") == 50 * 1024
    assert available_memory_bytes(meminfo, write(tmp_path / "a", "max\n")) == 50 * 1024
    assert available_memory_bytes(meminfo, write(tmp_path / "b", "3000\n")) == 2200
    assert available_memory_bytes(meminfo, write(tmp_path / "c", "500\n")) == 0
    assert available_memory_bytes(meminfo, write(tmp_path / "d", "3000\n", stat="")) == 50 * 1024


def test_unknown_is_none(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("MemAvailable:\n")
    assert available_memory_bytes(tmp_path / "none", tmp_path / "none") is None
    assert available_memory_bytes(tmp_path / "odd", tmp_path / "none") is None
