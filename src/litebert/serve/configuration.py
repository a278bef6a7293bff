"""Where the settings of a server come from: options, variables, a TOML file, defaults; in this order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.errors import CheckpointError, SettingsError
from litebert.models import locate
from litebert.runtime.exported import is_exported
from litebert.serve.environment import environment_values
from litebert.serve.settings import ServeSettings, named_models
from litebert.settings import build_settings, read_toml

__all__ = ["Resolved", "resolve"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings and their origins.

    Attributes:
        settings: checked.
        origins: "option", "variable", "file" or "default" by name.
    """

    settings: ServeSettings
    origins: dict[str, str]

    def shown(self) -> dict[str, Any]:
        """Return settings with their origins, keys left out."""
        values = self.settings.model_dump(mode="json")
        return {
            name: {"value": value, "from": self.origins.get(name, "default")}
            for name, value in values.items()
        }


def resolve(
    sources: Sequence[str],
    flags: Mapping[str, Any],
    variables: Mapping[str, str],
    config: Path | None,
    overrides: Sequence[str] = (),
    *,
    prepare: Callable[[Path], Path] | None = None,
) -> Resolved:
    """Put the layers together.

    Args:
        sources: `FOLDER` and `NAME=FOLDER`.
        flags: options by the name of their setting; None: not given.
        variables: of the environment.
        config: TOML file.
        overrides: `name=value`, as strong as options.
        prepare: makes an export of a folder that is none; None: such a folder is refused.

    Raises:
        SettingsError: an unknown setting, a wrong value, no model.
        CheckpointError: a folder that is no export.
    """
    file = read_toml(config) if config is not None else {}
    if config is not None and isinstance(file.get("models"), dict):
        # Paths in a file are meant from where the file is.
        file["models"] = {
            name: str(config.parent / str(folder)) for name, folder in file["models"].items()
        }
    given = environment_values(variables)
    options = {name: value for name, value in flags.items() if value is not None}
    served_name = variables.get("SERVED_MODEL_NAME") or None
    if sources:
        options["models"] = named_models(list(sources), served_name)
    elif variables.get("MODEL_ID"):
        given["models"] = named_models([variables["MODEL_ID"]], served_name)
    merged = file | given | options
    if "models" not in merged:
        raise SettingsError(
            "no model is named; give the folder of an export: litebert serve FOLDER"
        )
    settings = build_settings(ServeSettings, merged, path=config, overrides=overrides)
    models = {name: locate(folder) for name, folder in settings.models.items()}
    for name, folder in models.items():
        if not is_exported(folder):
            if prepare is None or not _is_model(folder):
                raise _no_export(folder)
            models[name] = prepare(folder)
    settings = settings.model_copy(update={"models": models})
    names = [override.partition("=")[0].partition(".")[0].strip() for override in overrides]
    origins = (
        dict.fromkeys(file, "file")
        | dict.fromkeys(given, "variable")
        | dict.fromkeys([*options, *names], "option")
    )
    return Resolved(settings, origins)


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or (folder / "model-best").is_dir()


def _no_export(folder: Path) -> CheckpointError:
    """What is said about a folder that cannot be served, before anything listens."""
    if _is_model(folder):
        return CheckpointError(
            "is a model folder; export it first: litebert export onnx "
            f"{folder} --out {folder.name}-onnx",
            path=folder,
        )
    return CheckpointError(
        "there is no export; give a folder that `litebert export onnx` made", path=folder
    )
