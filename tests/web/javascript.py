"""The page's own code, run by node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "src" / "litebert" / "serve" / "page" / "local"
SCRIPT = Path(__file__).with_name("tokenize.mjs")
MAX_LENGTH = 12


def tokenize(data: dict[str, Any], texts: Sequence[str], place: Path) -> list[dict[str, Any]]:
    """Return ids, spans, words and a cut pair for each text; skipped where there is no node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine; install it: apt-get install nodejs")
    folder = place / "local"
    folder.mkdir(parents=True)
    for path in LOCAL.glob("*.js"):
        shutil.copy(path, folder / path.name)
    (folder / "package.json").write_text('{"type": "module"}')
    asked, told = place / "asked.json", place / "told.json"
    asked.write_text(json.dumps({"data": data, "texts": list(texts), "maxLength": MAX_LENGTH}))
    done = subprocess.run(
        [node, str(SCRIPT), str(folder), str(asked), str(told)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(told.read_text("utf-8"))
