"""Which tensor of a folder fills which weight of a model, and every way in which that can fail.

Decided from names, shapes and types alone, before memory is reserved: `match` plans, `fill` reads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import torch
from torch import Tensor
from typing_extensions import Buffer

from litebert.checkpoint.keys import Resolved, head_part
from litebert.checkpoint.memory import available_memory_bytes
from litebert.checkpoint.quantized import QuantizedEntry, read_matrix
from litebert.checkpoint.weights import TensorEntry, WeightFiles, read_into
from litebert.errors import CheckpointError

__all__ = ["OUR_PREFIX", "Match", "check_memory", "fill", "match"]

_log = logging.getLogger(__name__)

OUR_PREFIX: Final = "model."
"""What a model with a head puts before the names of its encoder."""

_SHOWN: Final = 3
_FLOAT_TYPES: Final = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}


@dataclass(frozen=True, slots=True)
class Match:
    """A plan that has been checked: every weight is read or, if that was allowed, new."""

    sources: dict[str, list[TensorEntry]] = field(default_factory=dict[str, list[TensorEntry]])
    """Name in the model's state -> tensors to read, more than one where a tied weight is repeated."""
    fresh: list[str] = field(default_factory=list[str])
    """Parts that the folder does not have and that get new weights: heads, or `pooler`."""
    unused: list[str] = field(default_factory=list[str])
    """Parts that the folder has and this model does not: heads, or `pooler`."""


def match(
    state: Mapping[str, Tensor],
    files: WeightFiles,
    found: Resolved,
    *,
    allow_new_head: bool,
    allow_missing_pooler: bool,
    is_quiet: bool = False,
) -> Match:
    """Plan the loading of `files` into a model.

    Args:
        state: the model's state; only names and shapes are used, so it may be on `meta`.
        files: what the folder holds.
        found: the folder's names in our terms.
        allow_new_head: a head that is absent, incomplete or of another shape becomes new, whole.
        allow_missing_pooler: the same for the pooler.
        is_quiet: do not log what is left out and what is new.

    Raises:
        CheckpointError: weights missing, unexpected, given twice, of another shape or no floats.
    """
    if found.repeated:
        raise CheckpointError(f"weights given twice: {_listed(found.repeated)}", path=files.path)
    wanted = {name.removeprefix(OUR_PREFIX): name for name in state}
    parts = {head_part(name) for name in wanted}
    unused = {head_part(name) for name in found.sources if name not in wanted}
    unexpected = found.unknown + [
        found.sources[name][0]
        for name in found.sources
        if name not in wanted and (head_part(name) is None or head_part(name) in parts)
    ]
    sources = _without_foreign_decoder(found.sources, keep="mlm" in parts)
    missing = [name for name in wanted if name not in sources]
    misshaped = [
        f"{stored} is {list(files.entries[stored].shape)}, expected {list(state[full].shape)}"
        for name, full in wanted.items()
        for stored in sources.get(name, ())
        if files.entries[stored].shape != tuple(state[full].shape)
    ]
    bad_shape = {
        name
        for name, full in wanted.items()
        if any(files.entries[s].shape != tuple(state[full].shape) for s in sources.get(name, ()))
    }
    fresh = _allowed_parts(
        [*missing, *bad_shape], allow_new_head=allow_new_head, allow_pooler=allow_missing_pooler
    )
    _refuse(
        [name for name in missing if head_part(name) not in fresh],
        unexpected,
        misshaped if any(head_part(name) not in fresh for name in bad_shape) else [],
        files.path,
    )
    plan = {
        full: [files.entries[stored] for stored in sources[name]]
        for name, full in wanted.items()
        if head_part(name) not in fresh
    }
    _check_types(plan.values(), files.path)
    left_out = sorted(part for part in unused - parts if part is not None)
    if left_out and not is_quiet:
        _log.info("%s: weights not used by this model: %s", files.path, ", ".join(left_out))
    if fresh and not is_quiet:
        _log.warning("%s: new, untrained weights for: %s", files.path, ", ".join(sorted(fresh)))
    return Match(plan, sorted(fresh), left_out)


def fill(state: Mapping[str, Tensor], plan: Match, path: Path) -> None:
    """Read every planned tensor into `state`, whose tensors are float32 on the CPU.

    Half precision and float64 are converted. A tied weight that is stored twice must be equal.

    Raises:
        CheckpointError: a file changed meanwhile, copies differ, or numbers that are not finite.
    """
    for name, copies in plan.sources.items():
        target = state[name]
        _read(copies[0], target)
        if not bool(target.sum().isfinite()) and not bool(target.isfinite().all()):
            raise CheckpointError(
                f"tensor {copies[0].name!r} has numbers that are not finite; "
                "the training diverged or the file is damaged",
                path=copies[0].path,
            )
        for entry in copies[1:]:
            other = torch.empty_like(target)
            _read(entry, other)
            if not torch.equal(other, target):
                raise CheckpointError(
                    f"tensors {copies[0].name!r} and {entry.name!r} are one weight of an ALBERT but "
                    "differ; the model was not trained as an ALBERT",
                    path=path,
                )


def check_memory(state: Mapping[str, Tensor], path: Path) -> None:
    """Refuse a model that does not fit into memory, before any is reserved.

    Raises:
        CheckpointError: more bytes needed than the system can give.
    """
    sizes = [tensor.numel() * 4 for tensor in state.values()]
    needed, available = sum(sizes) + max(sizes, default=0), available_memory_bytes()
    if available is not None and needed > available:
        raise CheckpointError(
            f"needs {needed:,} bytes of memory to load, {available:,} are free; "
            "free some or use a larger machine",
            path=path,
        )


def _allowed_parts(names: Iterable[str], *, allow_new_head: bool, allow_pooler: bool) -> set[str]:
    parts = (head_part(name) for name in names)
    return {
        part
        for part in parts
        if part is not None and (allow_pooler if part == "pooler" else allow_new_head)
    }


def _without_foreign_decoder(
    sources: Mapping[str, list[str]], *, keep: bool
) -> dict[str, list[str]]:
    """A second copy of the token table belongs to the MLM head; without that it is not compared."""
    return {name: stored if keep else stored[:1] for name, stored in sources.items()}


def _refuse(
    missing: Sequence[str], unexpected: Sequence[str], misshaped: Sequence[str], path: Path
) -> None:
    faults: list[str] = []
    cures: list[str] = []
    if missing:
        faults.append(f"{len(missing)} weights are missing: {_listed(missing)}")
        parts = {head_part(name) for name in missing}
        if parts <= {"pooler"}:
            cures.append("to start with a new pooler, pass allow_missing_pooler")
        elif None not in parts:
            cures.append("to start with a new head, pass allow_new_head")
            if "pooler" in parts:
                cures.append("and for a new pooler allow_missing_pooler")
    if unexpected:
        faults.append(f"{len(unexpected)} weights are unexpected: {_listed(unexpected)}")
    if misshaped:
        faults.append(
            f"{len(misshaped)} weights have another shape: {'; '.join(misshaped[:_SHOWN])}"
        )
        cures.append("check that config.json belongs to these weights")
        cures.append("to replace a head of another size by a new one, pass allow_new_head")
    if faults:
        cures = cures or ["are these the weights of an ALBERT, and is config.json theirs?"]
        raise CheckpointError("; ".join(faults + cures), path=path)


def _check_types(copies: Iterable[Sequence[TensorEntry]], path: Path) -> None:
    wrong = [
        f"{entry.name} is {entry.dtype}"
        for entries in copies
        for entry in entries
        if entry.dtype not in _FLOAT_TYPES and not isinstance(entry, QuantizedEntry)
    ]
    if wrong:
        raise CheckpointError(
            f"{len(wrong)} weights are no floating-point numbers: {'; '.join(wrong[:_SHOWN])}; "
            f"allowed are {', '.join(_FLOAT_TYPES)}",
            path=path,
        )


def _read(entry: TensorEntry, target: Tensor) -> None:
    if isinstance(entry, QuantizedEntry):
        target.copy_(torch.from_numpy(read_matrix(entry).dequantize()))
        return
    dtype = _FLOAT_TYPES[entry.dtype]
    raw = target if dtype == target.dtype else torch.empty(entry.shape, dtype=dtype)
    flat = raw.detach().reshape(-1)
    if flat.numel():
        read_into(entry, memoryview(cast(Buffer, flat.view(torch.uint8).numpy())))
    if raw is not target:
        target.copy_(raw)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name:.120}" for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
