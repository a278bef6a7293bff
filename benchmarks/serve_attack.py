"""`litebert serve` under attack and for long: requests that were lost, wrong or hung, all of which must be none.

`python -m benchmarks.serve_attack [FOLDER] [--only PART ...] [--soak-seconds 600]`: FOLDER is an exported encoder whose
answers in company are measured besides those of tiny models, which are made here and attacked. Part `fuzz` wants
schemathesis, in an environment of its own: `python -m venv E && E/bin/pip install schemathesis`, then
`--schemathesis E/bin/schemathesis`. Each part replaces its own row of `benchmarks/results/serve-attack.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.attack.company import company
from benchmarks.attack.ending import endings
from benchmarks.attack.engine import killed_engines, reloads
from benchmarks.attack.fuzz import fuzz
from benchmarks.attack.raw import malformed
from benchmarks.attack.slow import slow_clients
from benchmarks.attack.soak import soak

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "serve-attack.json"


def parts(told: argparse.Namespace) -> dict[str, Callable[[Path], Awaitable[dict[str, Any]]]]:
    """Each part of the proof, by name."""
    return {
        "malformed": malformed,
        "slow": slow_clients,
        "fuzz": lambda root: fuzz(root, told.schemathesis),
        "company": lambda root: company(root, told.folder),
        "killed": killed_engines,
        "killed_with_spare": lambda root: killed_engines(root, "--set", "spare_engine=true"),
        "reloads": reloads,
        "endings": endings,
        "soak": lambda root: soak(root, told.soak_seconds),
    }


def faults(value: Any) -> int:
    """All requests of a row that were lost, wrong or hung."""
    if isinstance(value, dict):
        here = sum(
            int(value[key]) for key in ("lost", "wrong", "hung") if isinstance(value.get(key), int)
        )
        return here + sum(faults(item) for item in value.values())
    return sum(map(faults, value)) if isinstance(value, list) else 0


def record(name: str, row: dict[str, Any]) -> None:
    """Put a row in place of the one that was there."""
    found = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    found[name] = row
    RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--soak-seconds", type=float, default=600.0)
    parser.add_argument("--schemathesis", default="schemathesis")
    told = parser.parse_args()
    known = parts(told)
    for name in told.only:
        if name not in known:
            parser.error(f"no part {name!r}; there is: {', '.join(known)}")
    for name in told.only or known:
        load, start = os.getloadavg()[0], time.time()
        with tempfile.TemporaryDirectory() as scratch:
            row = asyncio.run(known[name](Path(scratch)))
        row = {
            "faults": faults(row), **row,
            "machine": {"cpus": os.cpu_count(), "load_before": round(load, 1), "python": platform.python_version()},
            "seconds": round(time.time() - start, 1), "date": time.strftime("%Y-%m-%d"),
        }  # fmt: skip
        record(name, row)
        print(
            name,
            json.dumps(
                {key: value for key, value in row.items() if key != "rows"}, ensure_ascii=False
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
