"""A packed graph in onnxruntime: rows in, named outputs out. Interface: docs/reference/exported-folder.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.errors import CheckpointError, SettingsError
from litebert.runtime.onnx_file import OnnxFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from litebert.runtime.packing import PackedRows

__all__ = ["Graph"]

FORMAT_VERSION: Final = 1
PREFIX: Final = "litebert."
_REQUIRED: Final = frozenset({"input_ids", "sequence_ids"})
_KNOWN: Final = frozenset(
    {
        "input_ids",
        "token_type_ids",
        "position_ids",
        "sequence_ids",
        "first_positions",
        "masked_positions",
        "depth",
        "start_depth",
        "hidden_in",
        "exit_threshold",
        "exit_temperature",
    }
)


class Graph:
    """A packed graph, ready to run.

    Attributes:
        head: head word, or None for an encoder alone.
        depths: depths of the model, L.
        precision: fp32, fp16 or int8.
        hidden_size: numbers of a hidden state, H.
        max_positions: tokens of the longest sequence; None where the graph sets no limit.
        output_names: what `run` can give.
        has_stages: whether `run` can go on from the states of a depth.
        state_name: output with these states.
    """

    def __init__(self, file: OnnxFile, *, threads: int, path: Path | None = None) -> None:
        """Load the bytes of a checked file.

        Raises:
            CheckpointError: no packed graph, or one that onnxruntime refuses.
        """
        facts = _facts(file.metadata, path)
        self.head: str | None = facts["head"]
        self.depths: int = facts["depth"]
        self.precision: str = facts["precision"]
        self.max_positions: int | None = facts["max_positions"]
        self._path = path
        self._session = _open(file.data, threads, path)
        inputs = {value.name for value in self._session.get_inputs()}
        # An input with a default value is listed elsewhere.
        inputs |= {value.name for value in self._session.get_overridable_initializers()}
        if _REQUIRED - inputs or inputs - _KNOWN:
            raise CheckpointError(
                f"its inputs are {sorted(inputs)}; this is no packed graph of `litebert export onnx`",
                path=path,
            )
        self._inputs = frozenset(inputs)
        shapes = {value.name: value.shape for value in self._session.get_outputs()}
        width = shapes.get("last_hidden_state", [None])[-1]
        if not isinstance(width, int):
            raise CheckpointError("it has no output last_hidden_state of a fixed width", path=path)
        self.hidden_size = width
        self.output_names = frozenset(shapes)
        last = shapes.get("logits", [None])[-1]
        self.has_stages = {"depth", "start_depth", "hidden_in"} <= self._inputs
        # Before the last norm, where the graph has one after all depths.
        self.state_name = "hidden_out" if "hidden_out" in shapes else "last_hidden_state"
        self.num_logits: int | None = last if isinstance(last, int) else None

    def run(
        self,
        rows: PackedRows,
        ids: Iterable[NDArray[np.integer[Any]]],
        type_ids: Iterable[NDArray[np.integer[Any]]],
        names: Sequence[str],
        *,
        depth: int | None = None,
        masked_positions: NDArray[np.int64] | None = None,
        start: tuple[int, NDArray[np.float32]] | None = None,
    ) -> list[NDArray[np.float32]]:
        """Compute outputs.

        Args:
            rows: where each sequence lies.
            ids: token ids of each of its members, in order.
            type_ids: segments, likewise.
            names: outputs that are wanted.
            depth: depths to run, 1 to L; None: all.
            masked_positions: [P] flat slots whose words are predicted, for heads that do.
            start: depths that were run before, and the states they gave, [R, S, H]; None: none.

        Raises:
            SettingsError: a depth that the model does not have, or too much for the memory.
            CheckpointError: onnxruntime fails.
        """
        if depth is not None and not 1 <= depth <= self.depths:
            raise SettingsError(f"depth is {depth}; allowed: 1 to {self.depths}")
        given: dict[str, NDArray[Any]] = {
            "input_ids": rows.filled(ids),
            "sequence_ids": rows.sequence_ids,
        }
        for name in self._inputs - given.keys():
            if name == "token_type_ids":
                given[name] = rows.filled(type_ids)
            elif name == "position_ids":
                given[name] = rows.position_ids
            elif name == "first_positions":
                given[name] = rows.first_positions
            elif name == "masked_positions":
                empty = np.empty(0, np.int64)
                given[name] = empty if masked_positions is None else masked_positions
            elif name == "depth" and depth is not None:
                given[name] = np.array(depth, np.int64)
            elif name == "start_depth" and start is not None:
                given[name] = np.array(start[0], np.int64)
            elif name == "hidden_in" and start is not None:
                given[name] = start[1]
        try:
            return self._session.run(list(names), given)
        except Exception as error:  # whatever the native code reports
            reason = str(error).splitlines()[0][:300]
            if "alloc" in reason.lower() or isinstance(error, MemoryError):
                raise SettingsError(
                    f"memory ran out on {rows.shape[0]} rows of {rows.shape[1]} tokens; lower "
                    "batch_tokens"
                ) from error
            raise CheckpointError(f"the graph cannot be run: {reason}", path=self._path) from error


def _open(data: bytes, threads: int, path: Path | None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session: Any = onnxruntime.InferenceSession(
            data, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # whatever the native code reports
        reason = str(error).splitlines()[0][:300]
        raise CheckpointError(f"onnxruntime refuses the graph: {reason}", path=path) from error
    # It keeps the file for a change of providers, which does not happen: as much memory as the weights.
    if hasattr(session, "_model_bytes"):
        session._model_bytes = None
    return session


def _facts(metadata: dict[str, str], path: Path | None) -> dict[str, Any]:
    """What the exporter wrote beside the graph, checked."""
    try:
        values = {
            key.removeprefix(PREFIX): json.loads(text)
            for key, text in metadata.items()
            if key.startswith(PREFIX)
        }
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"its notes are not JSON: {error}", path=path) from error
    version = values.get("format_version")
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"it is no packed graph that this litebert reads: format_version is {version!r:.40}, "
            f"expected {FORMAT_VERSION}; export the model again",
            path=path,
        )
    none = type(None)
    kinds: dict[str, tuple[type, ...]] = {
        "head": (str, none),
        "depth": (int,),
        "precision": (str,),
        "max_positions": (int, none),
    }
    for name, allowed in kinds.items():
        if name not in values or type(values[name]) not in allowed:
            raise CheckpointError(
                f"its note {name} is {values.get(name)!r:.40}; export the model again", path=path
            )
    if values["depth"] < 1 or (values["max_positions"] or 1) < 1:
        raise CheckpointError("its notes name no depth or no positions; export again", path=path)
    return values
