"""Fixtures of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# One hypothesis profile: no deadline (the machine is shared), derandomised so that CI is repeatable.
from hypothesis import settings as hypothesis_settings

hypothesis_settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True)
hypothesis_settings.register_profile("nightly", max_examples=5000, deadline=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and models beside the checkout; tests that need it skip without it."""
    folder = Path(os.environ.get("LITEBERT_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"real data not found at {folder} (set LITEBERT_SHARED)")
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT
