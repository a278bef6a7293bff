"""What schemathesis sends, made from the OpenAPI document: valid, invalid and missing values, and in sequence."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.attack.clients import beside, learn
from benchmarks.attack.models import make_models, questions
from benchmarks.attack.server import Server

__all__ = ["fuzz"]

EXAMPLES = 20
"""For each operation and phase, at most."""
UNTOLD = "positive_data_acceptance"
"""The document can't say which texts a model takes: the right form and yet 404 or 422 is no fault."""


async def fuzz(root: Path, program: str) -> dict[str, Any]:
    """Run it against a server of all kinds of models; every failure of a check counts as wrong."""
    path = shutil.which(program)
    if path is None:
        return {
            "not_measured": f"no program {program!r}; pip install schemathesis in an environment of its own"
        }
    folders = make_models(root)
    server = Server(*(f"{k}={v}" for k, v in folders.items()), "--set", "watch=false")
    report = root / "events.ndjson"
    command = [
        path, "run", f"http://127.0.0.1:{server.port}/openapi.json", "--checks", "all", "--exclude-checks", UNTOLD,
        "--max-examples", str(EXAMPLES), "--continue-on-failure", "--no-shrink", "--seed", "1", "--no-color",
        "--request-timeout", "20", "--report", "ndjson", "--report-ndjson-path", str(report),
    ]  # fmt: skip
    try:
        asked = await learn(server.port, questions())
        async with beside(server.port, asked, clients=1, pause=0.1) as tally:
            run = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, cwd=root
            )
        code = server.end()
    finally:
        server.kill()
    if run.returncode:
        print(run.stdout, run.stderr)
    # Headings of the report: an operation between lines, and under it each check that failed.
    failures = re.findall(r"(?m)^- (ST\d+ .+)$|^_{3,} (.+) _{3,}$", run.stdout)
    told = [check or f"{operation}:" for check, operation in failures]
    counts = _answers(report)
    version = subprocess.run(
        [path, "--version"], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    return {
        "schemathesis": version, "requests": sum(counts.values()), "answers": dict(sorted(counts.items())),
        "wrong": sum(bool(check) for check, _ in failures), "failures": told, "server_errors": sum(
            number for status, number in counts.items() if status.startswith("5") and status not in ("503", "504")
        ), "clients_beside": tally.summary(), "exit_code": code,
        "tracebacks": sum("Traceback" in line for line in server.lines), "command_exit_code": run.returncode,
    }  # fmt: skip


def _answers(report: Path) -> Counter[str]:
    """Return how many answers had each status."""
    counts: Counter[str] = Counter()

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            if isinstance(value.get("status_code"), int) and "headers" in value:
                counts[str(value["status_code"])] += 1
            for item in value.values():
                walk(item)

    for line in report.read_text().splitlines():
        walk(json.loads(line))
    return counts
