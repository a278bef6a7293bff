"""Building a module without memory: shapes only, no random numbers drawn."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

__all__ = ["reserve", "skeleton"]

_DRAWS: Final = frozenset(
    {
        nn.init.kaiming_uniform_,
        nn.init.normal_,
        nn.init.trunc_normal_,
        nn.init.uniform_,
        Tensor.normal_,
        Tensor.uniform_,
    }
)


class _WithoutDraws(TorchFunctionMode):
    """Leaves out random initialisation, whose first use on `meta` would import 800 modules (seconds)."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in _DRAWS:
            return args[0] if args else next(iter((kwargs or {}).values()))
        return func(*args, **(kwargs or {}))


@contextmanager
def skeleton() -> Generator[None]:
    """Modules that are built inside have shapes and no memory; `reserve` gives it."""
    with torch.device("meta"), _WithoutDraws():
        yield


def reserve(module: nn.Module) -> None:
    """Give a skeleton memory on the CPU, its content undefined. Tensors that are no state stay.

    Differs from `to_empty`, whose first use would import the same 800 modules.
    """
    state: dict[str, Tensor] = module.state_dict()
    memory = {name: torch.empty(tensor.shape, dtype=tensor.dtype) for name, tensor in state.items()}
    module.load_state_dict(memory, assign=True)
