from __future__ import annotations

import os
from pathlib import Path

import pytest

import litebert.runtime.threads as threads_module
from litebert.runtime.threads import cgroup_quota, choose_threads, usable_cpus


@pytest.mark.parametrize(
    ("text", "quota"),
    [("max 100000", None), ("150000 100000", 1.5), ("50000 100000", 0.5), ("x", None)],
)
def test_quota_of_version_2(tmp_path: Path, text: str, quota: float | None) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert cgroup_quota(tmp_path) == quota


@pytest.mark.parametrize(("text", "quota"), [("-1", None), ("200000", 2.0)])
def test_quota_of_version_1(tmp_path: Path, text: str, quota: float | None) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(text)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert cgroup_quota(tmp_path) == quota


def test_cpus_are_cut_by_the_quota_and_the_affinity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 5}, raising=False)
    assert usable_cpus(tmp_path) == 4
    (tmp_path / "cpu.max").write_text("250000 100000")
    assert usable_cpus(tmp_path) == 3
    (tmp_path / "cpu.max").write_text("1000 100000")
    assert usable_cpus(tmp_path) == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    (tmp_path / "cpu.max").unlink()
    assert usable_cpus(tmp_path) == os.cpu_count()


def test_threads_never_exceed_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "usable_cpus", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert choose_threads() == 4
    assert choose_threads(2) == 2
    assert choose_threads(64) == 4
    for text, threads in (("3", 3), ("64", 4), ("2,1", 2), ("0", 4), ("x", 4), ("", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert choose_threads() == threads
    assert choose_threads(1) == 1


def test_the_smallest_quota_of_the_groups_around_counts(tmp_path: Path) -> None:
    membership = tmp_path / "membership"
    membership.write_text("1:cpu:/old\n0::/outer/inner\n")
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    assert cgroup_quota(tmp_path, membership) is None
    (inner / "cpu.max").write_text("max 100000")
    (inner.parent / "cpu.max").write_text("150000 100000")
    assert cgroup_quota(tmp_path, membership) == 1.5
    (inner / "cpu.max").write_text("50000 100000")
    (tmp_path / "cpu.max").write_text("400000 100000")
    assert cgroup_quota(tmp_path, membership) == 0.5
    for hostile in ("0::/../../etc\n", "0::/\n", "", "\x00\n0::"):
        membership.write_text(hostile)
        assert cgroup_quota(tmp_path, membership) == 4.0
    assert cgroup_quota(tmp_path, tmp_path / "absent") == 4.0
