"""Put another version of the browser's runtime beside the page: `python tools/vendor_onnxruntime.py VERSION`.

The package comes from the npm registry by npm; its files stay as published, but for their names: hosts
know the kind of `.js`, and not all know `.mjs`. Licence and notices come with the Python package of the
same project. `tests/unit/export/test_web.py` holds the files against `VENDORED.json`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "onnxruntime-web"
PLACE = Path(__file__).resolve().parents[1] / "src/litebert/serve/page/local/onnxruntime"
FILES = {
    "dist/ort.wasm.bundle.min.mjs": "ort.wasm.bundle.min.js",
    "dist/ort-wasm-simd-threaded.wasm": "ort-wasm-simd-threaded.wasm",
}
"""Path in the package -> name here: the interface with its glue in one file, and the plain CPU build."""
NOTICES = {"LICENSE": "LICENSE", "ThirdPartyNotices.txt": "ThirdPartyNotices.txt"}


def main(version: str) -> None:
    """Fetch, unpack and describe."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["npm", "pack", "--silent", f"{PACKAGE}@{version}"],
            cwd=folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        archive = Path(folder) / done.stdout.strip().splitlines()[-1]
        found: dict[str, bytes] = {}
        with tarfile.open(archive) as files:
            for path, name in FILES.items():
                content = files.extractfile(f"package/{path}")
                found[name] = content.read() if content else b""
    own = importlib.metadata.distribution("onnxruntime")
    for path, name in NOTICES.items():
        found[name] = Path(str(own.locate_file(f"onnxruntime/{path}"))).read_bytes()
    PLACE.mkdir(exist_ok=True)
    for path in PLACE.iterdir():
        path.unlink()
    sources = {name: path for path, name in FILES.items()}
    listed: dict[str, dict[str, object]] = {}
    for name, data in found.items():
        (PLACE / name).write_bytes(data)
        listed[name] = {
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "from": sources.get(name, f"onnxruntime {own.version} for Python: {name}"),
        }
    values = {
        "package": PACKAGE,
        "version": version,
        "registry": "npm",
        "license": "MIT",
        "changes": "none; .mjs files are named .js",
        "files": listed,
    }
    (PLACE / "VENDORED.json").write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
