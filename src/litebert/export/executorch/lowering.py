"""From parts to the bytes of a `.pte` file: torch.export, XNNPACK, one method for each part."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import nn

from litebert.errors import ExportError, MissingDependencyError
from litebert.export.executorch.parts import EMBED, HEAD, IntegerTable, Parts

__all__ = ["Program", "lowered", "program"]

_EXAMPLE: Final = 13
"""Tokens of the text that parts are traced with; a number that no dimension of a model is likely to be."""
_NOISY: Final = ("torch.utils._pytree", "torchao", "executorch", "root", "torch")


def lowered(parts: Parts, precision: str) -> bytes:
    """Return the file of a model.

    Args:
        parts: what becomes methods; with int8 they are changed.
        precision: fp32, or int8: weights with one scale for each output, inputs with one scale and
            zero point for each token as they come, tables with one scale for each row.

    Raises:
        ExportError: ExecuTorch refuses a part.
        MissingDependencyError: executorch or torchao is not installed.
    """
    with _quiet():
        exir: Any = _module("executorch.exir", "executorch")
        xnnpack: Any = _module(
            "executorch.backends.xnnpack.partition.xnnpack_partitioner", "executorch"
        )
        if precision == "int8":
            _make_integers(parts)
        try:
            with torch.no_grad():
                traced = dict(_traced(parts))
            edge = exir.to_edge_transform_and_lower(
                traced, partitioner=[xnnpack.XnnpackPartitioner()]
            )
            return bytes(edge.to_executorch().buffer)
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            raise ExportError(f"ExecuTorch refuses the model: {reason}") from error


def _traced(parts: Parts) -> Iterator[tuple[str, Any]]:
    """Yield each part as a graph of texts of any length up to the limit."""
    size = torch.export.Dim("tokens", min=1, max=parts.limit)
    whole = torch.ones(1, min(_EXAMPLE, parts.limit), dtype=torch.int64)
    # Three tensors: one object given twice would be traced as one input.
    text = (whole.clone(), whole.clone(), torch.zeros_like(whole))
    with torch.no_grad():
        hidden, bias = parts.embed(*text)

    def trace(module: nn.Module, inputs: tuple[Any, ...], places: tuple[int, ...]) -> Any:
        shapes = tuple({place: size} for place in places)
        return torch.export.export(module.eval(), inputs, dynamic_shapes=shapes, strict=False)

    yield EMBED, trace(parts.embed, text, (1, 1, 1))
    for name, step in parts.steps.items():
        yield name, trace(step, (hidden, bias), (0, 2))
    yield HEAD, trace(parts.head, (hidden, whole), (0, 1))


def _make_integers(parts: Parts) -> None:
    """Make int8 of linear layers and tables, in place."""
    torchao: Any = _module("torchao.quantization", "torchao")
    grain: Any = _module("torchao.quantization.granularity", "torchao")
    config = torchao.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int8, weight_granularity=grain.PerAxis(0)
    )
    done: set[int] = set()

    def is_new(module: nn.Module, _name: str) -> bool:
        # Parts share layers: the second time the weight is no longer a plain tensor.
        is_chosen = isinstance(module, nn.Linear) and id(module) not in done
        done.add(id(module))
        return is_chosen

    for module in parts.modules():
        torchao.quantize_(module, config, filter_fn=is_new)
    tables: Any = getattr(parts.embed, "tables")  # noqa: B009 - an attribute of one kind of module
    for name in ("token", "position", "token_type"):
        table = getattr(tables, name)
        if table is not None:
            setattr(tables, name, IntegerTable(table.weight.detach()))


class Program:
    """A loaded file: a text in, outputs out."""

    def __init__(self, data: bytes, order: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        """Load the methods of a file.

        Args:
            data: the file.
            order: names of the steps, as they run.
            outputs: names of what the head returns.
        """
        runtime: Any = _module("executorch.runtime", "executorch")
        self._program = runtime.Runtime.get().load_program(data)
        names = {EMBED, HEAD, *order}
        self._methods: Mapping[str, Any] = {
            name: self._program.load_method(name) for name in sorted(names)
        }
        self._order, self._outputs = order, outputs

    def __call__(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Run one text, [1, S] int64 each; returns copies, with a first dimension of 1."""
        hidden, bias = self._methods[EMBED].execute((ids, mask, types))
        for name in self._order:
            (hidden,) = self._methods[name].execute((hidden, bias))
        found = self._methods[HEAD].execute((hidden, mask))
        return {name: value.clone() for name, value in zip(self._outputs, found, strict=True)}


def program(data: bytes, order: tuple[str, ...], outputs: tuple[str, ...]) -> Program:
    """Return a loaded file."""
    with _quiet():
        return Program(data, order, outputs)


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            package, extra="mobile", purpose="litebert export executorch"
        ) from error


@contextmanager
def _quiet() -> Generator[None]:
    """Without what these packages tell on import about parts that no one asked for."""
    levels = {name: logging.getLogger(name).level for name in _NOISY}
    try:
        for name in _NOISY:
            logging.getLogger(name).setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
