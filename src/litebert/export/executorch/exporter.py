"""`litebert export executorch`: a `.pte` file for phones, run and compared in ExecuTorch's own runtime."""

from __future__ import annotations

import copy
import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch

from litebert.errors import ExportError
from litebert.export.base import EXPORTERS, Artifact, Options
from litebert.export.executorch.lowering import Program, lowered, program
from litebert.export.executorch.parts import EMBED, HEAD, Parts, make_parts
from litebert.export.onnx.checks import ALLOWANCE, unique_bytes
from litebert.export.onnx.source import Source
from litebert.export.verify import Runner

__all__ = ["PROGRAM_BYTES", "ExecuTorchExporter"]

PROGRAM_BYTES: Final = 65_536
"""For what is no weight: operators, shapes and names of one method."""


@EXPORTERS.register("executorch")
class ExecuTorchExporter:
    """One file with a method for each part; the host runs a shared block as often as it has depths.

    Texts run one by one and unpadded, so nothing is computed for padding; of padded batches each row
    is run with its mask. LayerNorms, biases and the parts of single depths stay float32.
    """

    precisions: Sequence[str] = ("fp32", "int8")
    tolerances: Mapping[str, float] = {"fp32": 1e-4}

    def artifacts(self, source: Source, options: Options) -> Iterator[Artifact]:
        """Yield one file for each number format."""
        for precision in options.precisions:
            parts = make_parts(copy.deepcopy(source.model))
            data = lowered(parts, precision)
            is_tied = source.parts.head in ("mlm", "pretraining")
            _check_size(data, source, parts, precision, is_tied=is_tied)
            suffix = "" if precision == "fp32" else f"_{precision}"
            facts: dict[str, Any] = {
                "executorch": importlib.metadata.version("executorch"),
                "methods": [EMBED, *parts.order, HEAD],
                "outputs": list(parts.outputs),
                "max_tokens": parts.limit,
                "stored_twice": ["embeddings.token"] if is_tied else [],
            }
            run = _runner(data, parts)
            yield Artifact({f"executorch/model{suffix}.pte": data}, "plain", precision, run, facts)


def _check_size(
    data: bytes, source: Source, parts: Parts, precision: str, *, is_tied: bool
) -> None:
    """Refuse a file that stores a weight more often than it must.

    Raises:
        ExportError: it is larger than the weights.
    """
    unique = unique_bytes(source.parts, precision)
    if is_tied:  # once to look up, once to multiply with: two libraries, each with its own form
        table = source.parts.weight("embeddings.token.weight")
        unique += table.size * (4 if precision == "fp32" else 1)
    methods = len(parts.steps) + 2
    allowed = ALLOWANCE * unique + PROGRAM_BYTES * methods
    if len(data) > allowed:
        raise ExportError(
            f"the {precision} file has {len(data):,} bytes, the weights {unique:,}: some are stored twice; "
            "this is a fault of litebert, please report it"
        )


def _runner(data: bytes, parts: Parts) -> Runner:
    """Return what runs padded batches, row by row."""
    loaded: list[Program] = []

    def run(inputs: Mapping[str, Any]) -> dict[str, Any]:
        if not loaded:
            loaded.append(program(data, parts.order, parts.outputs))
        names = ("input_ids", "attention_mask", "token_type_ids")
        given = [torch.from_numpy(np.ascontiguousarray(inputs[name])) for name in names]
        rows = [
            loaded[0](*(part[row : row + 1].contiguous() for part in given))
            for row in range(len(given[0]))
        ]
        return {name: np.concatenate([row[name].numpy() for row in rows]) for name in parts.outputs}

    return run
