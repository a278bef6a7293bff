from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from litebert.errors import SettingsError
from litebert.registry import Registry


def make() -> Registry[int]:
    registry: Registry[int] = Registry("number")
    registry.register("one")(1)
    registry.register("three")(3)
    return registry


def test_registered_items_come_back_by_name() -> None:
    registry = make()
    assert registry.get("one") == 1
    assert list(registry) == ["one", "three"]
    assert "one" in registry
    assert len(registry) == 2


def test_a_name_is_registered_once() -> None:
    with pytest.raises(SettingsError, match="registered twice"):
        make().register("one")(2)


def test_a_near_miss_is_suggested_and_a_far_one_lists_all() -> None:
    with pytest.raises(SettingsError, match="did you mean 'three'"):
        make().get("thre")
    with pytest.raises(SettingsError, match="known: one, three"):
        make().get("zzz")


def test_a_dotted_path_reaches_outside_the_project() -> None:
    assert make().get("math:pi") == pytest.approx(3.14159, abs=1e-5)
    for path in ("math:nothing", "no_such_module:x", ":x"):
        with pytest.raises(SettingsError, match="cannot import number"):
            make().get(path)


def test_whatever_a_foreign_module_does_is_a_settings_error(tmp_path, monkeypatch) -> None:
    (tmp_path / "raises_on_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for path in ("raises_on_import:x", "..relative:x", "math:", "a\0b:x", "x" * 10_000 + ":y"):
        with pytest.raises(SettingsError, match="cannot import number") as caught:
            make().get(path)
        assert len(str(caught.value)) < 600
    with pytest.raises(SettingsError) as caught:
        make().get("x" * 100_000)
    assert len(str(caught.value)) < 600


def test_where_functions_are_registered_a_path_must_name_one() -> None:
    registry: Registry[object] = Registry("function")
    registry.register("len")(len)
    assert "math:sqrt" not in registry
    assert registry.get("math:sqrt") is math.sqrt
    assert "math:sqrt" in registry  # used once by its path, known from then on
    with pytest.raises(SettingsError, match="is a float; name a function or a class"):
        registry.get("math:pi")


def test_a_declared_name_is_known_at_once_and_imported_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry: Registry[object] = Registry("number")
    (tmp_path / "home_of_seven.py").write_text(
        "import builtins\nbuiltins.numbers_for_test.register('seven')(7)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("builtins.numbers_for_test", registry, raising=False)
    registry.register("one")(1)
    registry.declare("home_of_seven", "seven")
    assert list(registry) == ["one", "seven"] and "seven" in registry and len(registry) == 2
    with pytest.raises(SettingsError, match="did you mean 'seven'"):
        registry.get("sevn")
    assert "home_of_seven" not in sys.modules
    assert registry.get("seven") == 7 == registry.get("seven")
    assert list(registry) == ["one", "seven"]
