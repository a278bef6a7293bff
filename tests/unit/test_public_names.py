"""The public names of the package: imported when first used, and with a remedy where torch is missing."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import litebert
from litebert.errors import MissingDependencyError


@pytest.mark.parametrize("name", [name for name in litebert.__all__ if name != "__version__"])
def test_every_public_name_is_there(name: str) -> None:
    item = getattr(litebert, name)
    assert item.__name__ in (name, f"litebert.{name}")  # a module has its whole name
    assert item.__doc__


def test_the_names_that_must_hold() -> None:
    wanted = {"AlbertConfig", "AlbertModel", "AlbertWithHead", "Tokenizer", "load"}
    assert wanted <= set(litebert.__all__) == set(dir(litebert))
    for name in ("from_pretrained", "save_pretrained"):
        assert callable(getattr(litebert.AlbertModel, name))
        assert callable(getattr(litebert.AlbertWithHead, name))
    assert {"predict", "embed"} <= set(dir(litebert.Predictor))


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'AlbertTokenizer'"):
        litebert.__getattr__("AlbertTokenizer")


@pytest.mark.parametrize(
    ("missing", "expected"), [("torch", MissingDependencyError), ("numpy", ModuleNotFoundError)]
)
def test_a_missing_package_is_named(
    missing: str, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(expected, match=missing) as caught:
        litebert.__getattr__("AlbertModel")
    if missing == "torch":
        assert "litebert[train]" in str(caught.value)
