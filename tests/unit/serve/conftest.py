"""Tiny exported folders of every kind, and sessions over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.serve_folders import make_folder

from litebert.runtime import Session

Folder = Callable[[str], Path]
Open = Callable[[str], Session]


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    root = tmp_path_factory.mktemp("serve")
    return cache(lambda kind: make_folder(kind, root / "models"))


@pytest.fixture(scope="session")
def open_session(folder_of: Folder) -> Open:
    return cache(lambda kind: Session(folder_of(kind), threads=1))
