"""The gates that no linter has: file length, forbidden words and paths, the pinned torch.

Run by `make check`; prints each fault with its place and ends with 1 if there is any.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".cfg", ".cff", ""}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|farm)/|/home/[a-z]+/")
BAD_MODULE_NAMES = {"utils.py", "common.py", "helpers.py", "misc.py"}
TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!.*#\d+)")
PICKLE_READERS = {"src/litebert/checkpoint/unpickle.py"}  # the converter's isolated subprocess
PICKLE = re.compile(r"^\s*(?:import|from)\s+(?:pickle|dill|joblib|cloudpickle)\b")


def tracked_files() -> list[Path]:
    """Return the files git knows, tracked or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def faults_of(path: Path) -> list[str]:
    """Return what is wrong with one file, as `path:line: fault` strings."""
    name = path.relative_to(ROOT).as_posix()
    if path.suffix not in TEXT_SUFFIXES or name == "tools/check_tree.py":
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found: list[str] = []
    is_source = name.startswith("src/") and path.suffix == ".py"
    if is_source and len(lines) > MAX_LINES:
        found.append(f"{name}: {len(lines)} lines, at most {MAX_LINES}: split it by concept")
    if is_source and path.name in BAD_MODULE_NAMES:
        found.append(f"{name}: a module is named after what it holds")
    for number, line in enumerate(lines, start=1):
        if not name.startswith("tests/golden/") and MACHINE_PATH.search(line):
            found.append(f"{name}:{number}: absolute path of a machine")
        if path.suffix == ".py" and TODO.search(line):
            found.append(f"{name}:{number}: a TODO needs an issue number")
        if is_source and name not in PICKLE_READERS and PICKLE.search(line):
            found.append(f"{name}:{number}: nothing here loads pickles")
    return found


def environment_faults() -> list[str]:
    """Return what is wrong with the installed packages: another torch, or a CUDA build's."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = next(line.removeprefix("torch==") for line in pins if line.startswith("torch=="))
    installed = importlib.metadata.version("torch").partition("+")[0]
    return [] if installed == pinned else [f"torch {installed} is installed, pinned is {pinned}"]


def main() -> int:
    """Print all faults; return the exit code."""
    found = [fault for path in tracked_files() for fault in faults_of(path)] + environment_faults()
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
