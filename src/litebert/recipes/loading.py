"""The model behind a path, computed by what is there: an export without torch, else torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from litebert.models import locate
from litebert.runtime.exported import is_exported

if TYPE_CHECKING:
    from litebert.recipes.exit_run import ExitRun
    from litebert.runtime.stages import ExitStages
    from litebert.runtime.text_model import TextModel

__all__ = ["limit_depth", "load"]


def load(folder: str | Path) -> TextModel:
    """Load a model folder, the best model of a run folder, an export, or `litebert-small-en`.

    An export (a folder with `export.json`, or one of its graphs) needs neither torch nor its time.

    Raises:
        CheckpointError: no model, or one that is incomplete or inconsistent.
        MissingDependencyError: a model folder, and torch is not installed.
    """
    path = locate(folder)
    if is_exported(path):
        from litebert.runtime.session import Session

        return Session(path)
    try:
        from litebert.recipes.predictor import Predictor
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from litebert.errors import MissingDependencyError

        raise MissingDependencyError(
            "torch", extra="train", purpose=f"the folder {path}"
        ) from error
    return Predictor.load(path)


def limit_depth(
    model: TextModel, folder: Path, *, depth: int | None = None, exit_when: str | None = None
) -> ExitRun | ExitStages | None:
    """Let a model run fewer depths; see `litebert.recipes.exit_run.set_exit`.

    Raises:
        SettingsError: no such depth or rule, or a task without exits.
        CheckpointError: a damaged `exits.json`, or an export that cannot stop between depths.
    """
    if is_exported(locate(folder)):
        from litebert.runtime.session import Session

        assert isinstance(model, Session)  # noqa: S101 - as `load` gave it
        model.depth = depth
        model.set_exit(exit_when)
        return model.exits
    if depth is None and exit_when is None:
        return None
    from litebert.recipes.exit_run import set_exit
    from litebert.recipes.predictor import Predictor

    assert isinstance(model, Predictor)  # noqa: S101 - as `load` gave it
    return set_exit(model, folder, depth=depth, exit_when=exit_when)
