from __future__ import annotations

import importlib.metadata
import json
import os
import time
from pathlib import Path

import pytest

from litebert.recipes import doctor
from litebert.recipes.doctor import Check, Diagnosis, diagnose


def named(diagnosis: Diagnosis, name: str) -> Check:
    return next(check for check in diagnosis.checks if check.name == name)


def test_a_healthy_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    diagnosis = diagnose(quick=True)
    assert json.loads(json.dumps(diagnosis.to_dict()))["format_version"] == 1
    assert all(check.remedy for check in diagnosis.checks if check.verdict != "ok")
    assert "usable CPUs" in named(diagnosis, "processor").found
    assert list(tmp_path.iterdir()) == []


def test_numbers_are_measured_unless_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "number formats" not in [check.name for check in diagnose(quick=True).checks]
    assert "fp32" in named(diagnose(), "number formats").found

    def broken() -> None:
        raise OSError("libgomp.so.1: cannot open shared object file\nmore")

    monkeypatch.setattr("litebert.train.precision.choose_precision", broken)
    check = named(diagnose(), "number formats")
    assert check.verdict == "problem"
    assert check.found.endswith("cannot open shared object file")


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("torch", "numpy"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    diagnosis = diagnose(quick=True)
    base, extra = named(diagnosis, "packages: base"), named(diagnosis, "packages: train")
    assert (base.verdict, extra.verdict) == ("problem", "note")
    assert "numpy" in base.found
    assert extra.remedy == "if you need it, install the extra 'train' of litebert"
    assert not diagnosis.is_healthy


@pytest.mark.parametrize(
    ("version", "verdict"), [("2.14.1+cpu", "note"), ("2.9.1", "problem"), ("2.13.0", None)]
)
def test_releases_of_torch_to_avoid(
    monkeypatch: pytest.MonkeyPatch, version: str, verdict: str | None
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    found = [check.verdict for check in diagnose(quick=True).checks if check.name == "torch"]
    assert found == ([verdict] if verdict else [])


def test_a_poor_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "available_memory_bytes", lambda: 500_000_000)
    monkeypatch.setattr(doctor, "cgroup_quota", lambda: 0.5)
    monkeypatch.setattr(doctor, "_cpu_flags", lambda: {"neon", "sse2"})
    monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(time, "gmtime", lambda: time.struct_time((1970, 1, 1, 0, 0, 0, 3, 1, 0)))
    diagnosis = diagnose(quick=True)
    assert named(diagnosis, "memory").verdict == "note"
    assert "0.5 GB available" in named(diagnosis, "memory").found
    assert named(diagnosis, "processor").verdict == "note"
    assert "quota 0.5" in named(diagnosis, "processor").found
    assert named(diagnosis, "clock").verdict == "problem"


def test_a_disk_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refuse)
    check = named(diagnose(quick=True), "disk")
    assert (check.verdict, check.found) == ("problem", "cannot write here: Read-only file system")


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage)
    assert named(diagnose(quick=True), "disk").verdict == "problem"


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert named(diagnose(quick=True), "memory").found == "size unknown on this system"
