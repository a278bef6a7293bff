from __future__ import annotations

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
