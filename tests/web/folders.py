"""Tiny exports of every kind that the page answers, and the pages with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import serve_folders

from litebert.export.web.site import PAGE, write_site

KINDS = (*serve_folders.KINDS, "qa2")
BLANK = "blank.html"
"""A page of the site that runs nothing by itself."""


def task_of(kind: str) -> Any:
    """The task of a kind."""
    if kind == "qa2":
        from litebert.tasks.span import SquadV2Task

        return SquadV2Task(max_length=48, max_query_length=16, doc_stride=16)
    return serve_folders.task_of(kind)


def make_folder(kind: str, root: Path, precision: str = "int8") -> Path:
    """Write an export of random weights."""
    task = task_of(kind)
    with patch("tests.serve_folders.task_of", lambda _: task):
        return serve_folders.make_folder(kind, root, precision=precision)


def make_site(folder: Path, out: Path) -> Path:
    """Write the page of an export, with a blank page beside it."""
    write_site(folder, out)
    policy = next(
        line
        for line in (PAGE / "index.html").read_text("utf-8").splitlines()
        if "Security-Policy" in line
    )
    (out / BLANK).write_text(
        f'<!doctype html><meta charset="utf-8">{policy}<link rel="icon" href="icon.svg">'
    )
    return out


def manifest_of(site: Path) -> dict[str, Any]:
    """The manifest of a page."""
    return json.loads((site / "model" / "manifest.json").read_text("utf-8"))
