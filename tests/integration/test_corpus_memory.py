"""Reading a corpus takes the same memory whatever its size; measured in a process of its own."""

from __future__ import annotations

import gzip
import lzma
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BLOCK_BYTES = 1 << 20
MAX_GROWTH_MB = 40.0
"""Buffers and one document; 64 MB of text held whole would be far beyond."""

PROGRAM = """
import resource, sys
from pathlib import Path
from litebert.data.corpus import CorpusOptions, read_documents

stream = read_documents([Path(sys.argv[1])], CorpusOptions(), on_fault=print)
size = len(next(stream).text)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size += sum(len(document.text) for document in stream)
print(size, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def block() -> bytes:
    """One megabyte that a compressor cannot shorten much, however often it is repeated."""
    words = [
        f"{number:x}" for number in random.Random(1).choices(range(1 << 28), k=BLOCK_BYTES // 8)
    ]
    lines = (" ".join(words[at : at + 60]) for at in range(0, len(words), 60))
    return "\n\n".join(lines).encode() + b"\n\n"


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "txt.xz"])
def test_memory_stays_flat(tmp_path: Path, suffix: str) -> None:
    path, data = tmp_path / f"a.{suffix}", block()
    if suffix == "txt":
        path.write_bytes(data * 64)
    elif suffix == "txt.gz":
        path.write_bytes(gzip.compress(data, 1) * 64)
    else:
        path.write_bytes(lzma.compress(data, preset=0) * 64)
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    size, growth = result.stdout.split()
    assert int(size) > 0.98 * 64 * len(data)
    assert float(growth) < MAX_GROWTH_MB
