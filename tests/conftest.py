"""Fixtures of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# One hypothesis profile: no deadline (the machine is shared), derandomised so that CI is repeatable.
from hypothesis import settings as hypothesis_settings

if TYPE_CHECKING:
    from tests.chromium import Browser

hypothesis_settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True)
hypothesis_settings.register_profile("nightly", max_examples=5000, deadline=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def no_named_encoders(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Hide the encoders of the package, so that tests do the same in a checkout with and without them.

    What is tested with one makes its own folder of named encoders, see `tests/named_encoders.py`.
    """
    from litebert.models import set_folder

    folder = tmp_path_factory.mktemp("no-encoders")
    before = os.environ.get("LITEBERT_MODELS")
    os.environ["LITEBERT_MODELS"] = str(folder)
    set_folder(folder)
    yield
    set_folder(None)
    if before is None:
        del os.environ["LITEBERT_MODELS"]
    else:
        os.environ["LITEBERT_MODELS"] = before


@pytest.fixture(scope="session")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of named encoders with a stand-in for that of the package; it is not written to."""
    pytest.importorskip("onnx")
    from tests.named_encoders import make_named_encoder

    folder = tmp_path_factory.mktemp("packaged") / "encoders"
    make_named_encoder(folder)
    return folder


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


@pytest.fixture(scope="session")
def browser_runtime() -> Path:
    """The folder of onnxruntime-web beside the page; tests that need it skip where npm did not bring it."""
    folder = ROOT / "src/litebert/serve/page/local/onnxruntime"
    if not list(folder.glob("*.wasm")):
        pytest.skip("onnxruntime-web is not here: python tools/vendor_onnxruntime.py (needs npm)")
    return folder


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    """A headless Chromium; tests that need it skip where there is none."""
    from tests.chromium import MISSING, Browser, find_chromium

    if find_chromium() is None:
        pytest.skip(MISSING)
    process = Browser(tmp_path_factory.mktemp("chromium") / "profile")
    yield process
    process.close()
