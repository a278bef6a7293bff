"""Train, shrink and ship parameter-shared text encoders (ALBERT and its kin).

The public names below are imported when they are first used, so `import litebert` needs neither
torch nor time. `AlbertModel`, `AlbertWithHead` and `Predictor` need the extra `train`, and so does
`load` for a model folder that is no export.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from litebert import models
    from litebert.checkpoint.pretrained import AlbertModel, AlbertWithHead
    from litebert.model.config import AlbertConfig
    from litebert.model.counting import parameter_count
    from litebert.model.presets import preset
    from litebert.model.resharing import resize_vocabulary, share, unshare
    from litebert.recipes.loading import load
    from litebert.recipes.predictor import Predictor
    from litebert.runtime.session import Session
    from litebert.text.tokenizer import Tokenizer

__version__ = "0.1.0"

_HOMES: Final = {
    "AlbertConfig": "litebert.model.config",
    "AlbertModel": "litebert.checkpoint.pretrained",
    "AlbertWithHead": "litebert.checkpoint.pretrained",
    "Predictor": "litebert.recipes.predictor",
    "Session": "litebert.runtime.session",
    "Tokenizer": "litebert.text.tokenizer",
    "load": "litebert.recipes.loading",
    "parameter_count": "litebert.model.counting",
    "preset": "litebert.model.presets",
    "resize_vocabulary": "litebert.model.resharing",
    "share": "litebert.model.resharing",
    "unshare": "litebert.model.resharing",
}

__all__ = [
    "AlbertConfig",
    "AlbertModel",
    "AlbertWithHead",
    "Predictor",
    "Session",
    "Tokenizer",
    "__version__",
    "load",
    "models",
    "parameter_count",
    "preset",
    "resize_vocabulary",
    "share",
    "unshare",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use.

    Raises:
        AttributeError: not a public name.
        MissingDependencyError: it needs torch, which is not installed.
    """
    if name == "models":
        return importlib.import_module("litebert.models")
    if name not in _HOMES:
        raise AttributeError(f"module 'litebert' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from litebert.errors import MissingDependencyError

        raise MissingDependencyError("torch", extra="train", purpose=f"litebert.{name}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
