"""From text to prediction with onnxruntime and numpy alone: no torch, little memory, a quick start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litebert.runtime.session import Session

__all__ = ["Session"]


def __getattr__(name: str) -> Any:
    """Import the session on first use.

    Raises:
        AttributeError: not a public name.
    """
    if name != "Session":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from litebert.runtime.session import Session

    return Session
