"""Put the browser's runtime beside the page: `python tools/vendor_onnxruntime.py [VERSION] [--if-possible]`.

Without a version the files are those that `VENDORED.json` pins, by size and sha256; with one they are pinned
anew. The package comes from the npm registry by npm; its files stay as published, but for their names: hosts
know the kind of `.js`, and not all know `.mjs`. Licence and notices come with the Python package of the same
project. They are built into wheels, not kept in the repository.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "onnxruntime-web"
PLACE = Path(__file__).resolve().parents[1] / "src/litebert/serve/page/local/onnxruntime"
PINS = PLACE / "VENDORED.json"
FILES = {
    "dist/ort.wasm.bundle.min.mjs": "ort.wasm.bundle.min.js",
    "dist/ort-wasm-simd-threaded.wasm": "ort-wasm-simd-threaded.wasm",
}
"""Path in the package -> name here: the interface with its glue in one file, and the plain CPU build."""
NOTICES = ("LICENSE", "ThirdPartyNotices.txt")


def described(found: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """Return size, digest and origin of each file."""
    sources = {name: path for path, name in FILES.items()}
    own = importlib.metadata.version("onnxruntime")
    return {
        name: {
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "from": sources.get(name, f"onnxruntime {own} for Python: {name}"),
        }
        for name, data in found.items()
    }


def is_there(pins: dict[str, Any]) -> bool:
    """Whether the files that are pinned lie in their place."""
    paths = {name: PLACE / name for name in pins["files"]}
    if not all(path.is_file() for path in paths.values()):
        return False
    return described({name: path.read_bytes() for name, path in paths.items()}) == pins["files"]


def fetch(version: str) -> dict[str, bytes]:
    """Return the files of a version."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["npm", "pack", "--silent", f"{PACKAGE}@{version}"],
            cwd=folder, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with tarfile.open(Path(folder) / done.stdout.strip().splitlines()[-1]) as files:
            for path, name in FILES.items():
                content = files.extractfile(f"package/{path}")
                found[name] = content.read() if content else b""
    own = importlib.metadata.distribution("onnxruntime")
    for name in NOTICES:
        found[name] = Path(str(own.locate_file(f"onnxruntime/{name}"))).read_bytes()
    return found


def main() -> int:
    """Fetch, compare and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="?", help="pin this one; default: what is pinned")
    parser.add_argument("--if-possible", action="store_true", help="without npm only say so")
    told = parser.parse_args()
    pins: dict[str, Any] = json.loads(PINS.read_text(encoding="utf-8"))
    if told.version is None and is_there(pins):
        return 0
    try:
        if shutil.which("npm") is None:
            raise OSError("npm is not installed")
        found = fetch(told.version or pins["version"])
    except (OSError, subprocess.CalledProcessError) as error:
        print(
            f"the runtime of `litebert export web` was not fetched: {error}; its tests will be skipped. "
            "Install npm and run: python tools/vendor_onnxruntime.py",
            file=sys.stderr,
        )
        return 0 if told.if_possible else 1
    if told.version is not None:
        pins |= {"version": told.version, "files": described(found)}
        PINS.write_text(json.dumps(pins, indent=2) + "\n", encoding="utf-8")
    elif (files := described(found)) != pins["files"]:
        print(f"what came is not what {PINS.name} pins: {json.dumps(files)}", file=sys.stderr)
        return 1
    for name, data in found.items():
        temporary = PLACE / f"{name}.tmp"
        temporary.write_bytes(data)
        temporary.replace(PLACE / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
