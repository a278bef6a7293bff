from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from litebert.serve import memory

SCRIPT = """
import pathlib, resource
from litebert.serve.memory import give_back_freed_memory
assert give_back_freed_memory()
held = lambda: int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
pin = []
before = held()
parts = []
for _ in range(200):
    parts.append(b"a" * 200_000)
    pin.append(b"b" * 999)
assert held() - before > 30_000_000
del parts
assert held() - before < 5_000_000, held() - before
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_large_buffers_go_back_to_the_system() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not memory.give_back_freed_memory()
