from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from litebert.errors import SettingsError
from litebert.settings import Settings, build_settings, dump_toml, load_settings, read_toml


class Inner(Settings):
    rate: float = Field(default=0.5, ge=0)
    words: tuple[str, ...] = ()
    limit: int | None = None


class Outer(Settings):
    name: str = "x"
    is_on: bool = False
    inner: Inner = Inner()
    table: dict[str, str] = Field(default_factory=dict)


def test_file_then_overrides(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('name = "y"\n[inner]\nrate = 2\n', encoding="utf-8")
    settings = load_settings(
        Outer, path, overrides=["inner.rate=3", "is_on=true", "name=bare word"]
    )
    assert settings == Outer(name="bare word", is_on=True, inner=Inner(rate=3.0))


def test_an_unknown_key_names_the_nearest_known_one() -> None:
    with pytest.raises(SettingsError, match=r"no setting 'inner\.rat'; did you mean 'rate'"):
        build_settings(Outer, {"inner": {"rat": 1}})
    with pytest.raises(SettingsError, match="known: name, is_on, inner, table"):
        build_settings(Outer, {"qqqq": 1})
    with pytest.raises(SettingsError, match="see the settings reference"):
        build_settings(Deep, {"outers": [{"qq": 1}]})


class Deep(Settings):
    outers: tuple[Outer, ...] = ()


def test_a_wrong_value_is_quoted() -> None:
    with pytest.raises(SettingsError, match=r"inner\.rate: .*\(got -1\)"):
        build_settings(Outer, {"inner": {"rate": -1}})


@pytest.mark.parametrize("override", ["", "noequals", "=1", "a..b=1", ".=1"])
def test_a_malformed_override_is_refused(override: str) -> None:
    with pytest.raises(SettingsError, match="not of the form"):
        build_settings(Outer, {}, overrides=[override])


def test_an_override_cannot_go_through_a_value() -> None:
    with pytest.raises(SettingsError, match="is a value, not a section"):
        build_settings(Outer, {"name": "a"}, overrides=["name.first=b"])


def test_broken_and_missing_files_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "b.toml"
    broken.write_text("a = \n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"b\.toml.*not valid TOML.*line 1"):
        read_toml(broken)
    with pytest.raises(SettingsError, match="cannot read the settings file"):
        read_toml(tmp_path / "none.toml")
    broken.write_text("a = " + "[" * 50_000, encoding="utf-8")
    with pytest.raises(SettingsError, match="not valid TOML"):
        read_toml(broken)
    binary = tmp_path / "c.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="not UTF-8, so no settings file"):
        read_toml(binary)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Outer().name = "z"  # type: ignore[misc]


any_text = st.text(st.characters(codec="utf-8"))


@given(
    name=any_text,
    is_on=st.booleans(),
    rate=st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    words=st.lists(any_text, max_size=4),
    table=st.dictionaries(any_text, any_text, max_size=4),
)
def test_what_is_dumped_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    is_on: bool,
    rate: float,
    words: list[str],
    table: dict[str, str],
) -> None:
    settings = Outer(
        name=name, is_on=is_on, inner=Inner(rate=rate, words=tuple(words)), table=table
    )
    path = tmp_path_factory.mktemp("toml") / "dump.toml"
    path.write_bytes(dump_toml(settings).encode("utf-8"))
    assert load_settings(Outer, path) == settings


@pytest.mark.parametrize(
    "override", ["inner.rate=true", "inner.limit=false", "inner.rate=nan", "inner.rate=inf"]
)
def test_truth_and_infinity_are_no_numbers(override: str) -> None:
    with pytest.raises(SettingsError, match=r"inner\."):
        build_settings(Outer, {}, overrides=[override])


def test_a_message_stays_short_whatever_is_given() -> None:
    values = {f"{'k' * 5000}{i}": "v" * 5000 for i in range(50)}
    for wrong in (values, {"inner": values}, {"name": values}, {"table": 3}):
        with pytest.raises(SettingsError) as caught:
            build_settings(Outer, wrong)
        assert len(str(caught.value)) < 3000


@given(st.text(max_size=40))
def test_any_override_is_settings_or_a_settings_error(text: str) -> None:
    for override in (text, f"inner.rate={text}", f"{text}=1"):
        try:
            build_settings(Outer, {}, overrides=[override])
        except SettingsError:
            continue
