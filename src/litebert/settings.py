"""TOML files and `--set` overrides become frozen, checked settings; settings become TOML again.

Every settings class derives from `Settings`. Precedence is default < preset < file < `--set`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from litebert.errors import SettingsError
from litebert.small_files import read_small

S = TypeVar("S", bound="Settings")
_MAX_TOML_BYTES = 16_000_000
_MAX_SHOWN = 8
"""Faults that one message lists."""


class Settings(BaseModel):
    """Base of all settings: immutable, and an unknown key is an error.

    Numbers are finite, and true or false is no number.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name is not None:
            allowed = cls.model_fields[info.field_name].annotation
            kinds = {allowed, *get_args(allowed)}
            if kinds & {int, float} and not kinds & {bool, Any}:
                raise ValueError(f"expected a number, got {str(value).lower()}")
        return value


def build_settings(
    kind: type[S],
    values: Mapping[str, Any],
    *,
    path: Path | None = None,
    overrides: Iterable[str] = (),
) -> S:
    """Check `values`, with `section.key=value` overrides on top, and return the settings.

    Raises:
        SettingsError: unknown key (with the nearest known one), wrong type or value.
    """
    merged = _deep_copy(values)
    for override in overrides:
        _apply_override(merged, override)
    try:
        return kind.model_validate(merged)
    except ValidationError as error:
        raise SettingsError(_explain(kind, error), path=path) from error


def load_settings(kind: type[S], path: Path, *, overrides: Iterable[str] = ()) -> S:
    """Read a TOML file into settings.

    Raises:
        SettingsError: file missing or not TOML, unknown key, wrong value.
    """
    return build_settings(kind, read_toml(path), path=path, overrides=overrides)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        SettingsError: file missing, unreadable or not TOML; the message names the line.
    """
    try:
        return tomllib.loads(read_small(path, _MAX_TOML_BYTES).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SettingsError(f"not UTF-8, so no settings file: {error}", path=path) from error
    except OSError as error:
        raise SettingsError(
            f"cannot read the settings file: {error.strerror}", path=path
        ) from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError; dates and numbers out of range
        raise SettingsError(f"not valid TOML: {error}", path=path) from error


def dump_toml(settings: Settings) -> str:
    """Return the canonical TOML of settings; `load_settings` reads it back to an equal object.

    A value of None is left out: TOML has no null, and None is the default wherever it is allowed.
    """
    lines: list[str] = []
    _dump_table(settings.model_dump(mode="json", exclude_none=True), (), lines)
    return "\n".join(lines).strip() + "\n"


def _dump_table(table: Mapping[str, Any], prefix: tuple[str, ...], lines: list[str]) -> None:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    nested = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if prefix and (plain or not nested):
        lines.extend(["", f"[{'.'.join(_toml_key(part) for part in prefix)}]"])
    lines.extend(f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items())
    for key, value in nested.items():
        _dump_table(cast(Mapping[str, Any], value), (*prefix, key), lines)


def _toml_key(key: str) -> str:
    return (
        key if key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key) else _quote(key)
    )


def _quote(text: str) -> str:
    # JSON escapes are TOML escapes, except that TOML forbids a bare DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        return text if any(c in text for c in ".en") else text + ".0"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(item) for item in cast(list[Any], value)) + "]"
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value).items()
        return "{" + ", ".join(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in pairs) + "}"
    return _quote(value) if isinstance(value, str) else str(value)


def _deep_copy(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _deep_copy(cast(Mapping[str, Any], value)) if isinstance(value, Mapping) else value
        for key, value in values.items()
    }


def _apply_override(values: dict[str, Any], override: str) -> None:
    dotted, equals, text = override.partition("=")
    keys = [part.strip() for part in dotted.split(".")]
    if not equals or not all(keys):
        raise SettingsError(f"--set {override!r} is not of the form section.key=value")
    table = values
    for key in keys[:-1]:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"--set {override!r}: {key!r} is a value, not a section")
        table = cast(dict[str, Any], inner)
    table[keys[-1]] = _parse_value(text.strip())


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text  # a bare word is a string: --set model.preset=tiny


def _explain(kind: type[Settings], error: ValidationError) -> str:
    parts: list[str] = []
    for item in error.errors()[:_MAX_SHOWN]:
        location = tuple(str(part)[:80] for part in item["loc"])
        dotted = ".".join(location) or kind.__name__
        if item["type"] == "extra_forbidden":
            parts.append(f"no setting {dotted!r}; {_hint(kind, location)}")
        else:
            message = item["msg"].removeprefix("Value error, ")
            parts.append(f"{dotted}: {message}" + got(item.get("input")))
    return "; ".join(parts)


def got(value: Any) -> str:
    """Return how a message quotes a wrong value; a whole table is not quoted, its fault is told."""
    return "" if isinstance(value, dict | BaseModel) else f" (got {value!r:.80})"


def _hint(kind: type[BaseModel], location: tuple[str, ...]) -> str:
    table: type[BaseModel] = kind
    for part in location[:-1]:
        annotation = table.model_fields[part].annotation if part in table.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return "see the settings reference"
        table = annotation
    names = list(table.model_fields)
    near = get_close_matches(location[-1], names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
