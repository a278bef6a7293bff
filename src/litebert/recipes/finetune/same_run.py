"""Whether a run that goes on is still the one that was started: its settings and its data files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from litebert.errors import CheckpointError
from litebert.files import check_file, read_json
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.settings import build_settings, dump_toml
from litebert.train.state import FREE_SETTINGS

if TYPE_CHECKING:
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.recipes.run_folder import RunFolder

__all__ = ["require_same_data", "require_same_settings", "settings_facts"]

FACTS: Final = "data.json"
_MAX_BYTES: Final = 1 << 28
_FREE: Final = frozenset({"num_seeds", "has_baselines", "data.train", "data.eval"}) | {
    f"train.{name}" for name in FREE_SETTINGS
}
"""Settings that may change: more seeds, files that were moved, and what only rounds otherwise."""


def settings_facts(settings: FinetuneSettings) -> dict[str, Any]:
    """Return settings as they will be read from their file, as plain values."""
    read = build_settings(FinetuneSettings, tomllib.loads(dump_toml(settings)))
    return read.model_dump(mode="json")


def require_same_settings(folder: RunFolder, settings: FinetuneSettings) -> None:
    """Refuse settings that were changed by hand since the run was started.

    Raises:
        CheckpointError: names each of them, with both values.
    """
    before = _facts(folder).get("settings")
    if not isinstance(before, dict):
        return  # begun by a version that did not keep them
    was = dict(_flat(cast("dict[str, Any]", before)))
    now = dict(_flat(settings_facts(settings)))
    # A name that only the newer side has came with a later version, unless its table is free in form.
    changed = [
        name
        for name in sorted(was.keys() | now.keys())
        if name not in _FREE and was.get(name) != now.get(name) and _is_comparable(name, was, now)
    ]
    if changed:
        shown = "; ".join(f"{n} was {was.get(n)!r:.80}, is {now.get(n)!r:.80}" for n in changed[:8])
        raise CheckpointError(
            f"cannot resume with other settings: {shown}; put the old ones back, or train in another "
            "folder",
            path=folder.config,
        )


def require_same_data(folder: RunFolder, plan: AnyPlan) -> None:
    """Refuse files to train on, to score on or to test on that have changed since the start.

    Raises:
        CheckpointError: names the file.
    """
    parts = _facts(folder).get("parts")
    listed = cast("list[Any]", parts) if isinstance(parts, list) else []
    known = {part["role"]: part.get("sha256") for part in listed if "role" in part}
    for role, _, table in plan.parts():
        before = known.get(role)
        if table is not None and before and table.sha256 != before:
            raise CheckpointError(
                f"cannot resume with other data: the {role} file has changed since the run was started "
                f"(sha256 {before[:12]}, now {table.sha256[:12]}); restore it, or train in another folder",
                path=table.path,
            )


def _facts(folder: RunFolder) -> dict[str, Any]:
    path = folder.path / FACTS
    return {} if check_file(path) is None else read_json(path, max_bytes=_MAX_BYTES)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
        elif value is not None and value != {}:
            yield prefix + name, value


def _is_comparable(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if name in was or name.startswith(("task.", "model.config.", "loss.class_weights.")):
        return True
    # Unknown before: either newly set by hand over None, or new in this version with its default.
    plain = dict(
        _flat(FinetuneSettings.model_validate({"data": {"train": ""}}).model_dump(mode="json"))
    )
    return plain.get(name) != now[name]
