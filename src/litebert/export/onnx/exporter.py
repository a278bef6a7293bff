"""`litebert export onnx`: the packed graph, and the plain one for other runtimes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import onnx
import onnxruntime

from litebert.errors import ExportError
from litebert.export.base import EXPORTERS, Artifact, Options
from litebert.export.onnx.checks import check_products, check_stored
from litebert.export.onnx.packed import packed_model
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.plain import plain_model
from litebert.export.onnx.source import PRECISIONS, Source, make_precision
from litebert.export.onnx.writer import OPSET, all_nodes
from litebert.export.verify import Runner
from litebert.runtime.onnx_file import MAX_BYTES, parse_onnx

__all__ = ["OnnxExporter", "graph_runner"]

Write = Callable[[ModelParts, Precision], onnx.ModelProto]

FOLDER: Final = "onnx"
_PACKED: Final = {"fp32": "litebert", "fp16": "litebert_fp16", "int8": "litebert_int8"}
_PLAIN: Final = {"fp32": "model", "fp16": "model_fp16", "int8": "model_quantized"}


@EXPORTERS.register("onnx")
class OnnxExporter:
    """ONNX graphs, run by onnxruntime."""

    precisions: Sequence[str] = PRECISIONS
    tolerances: Mapping[str, float] = {"fp32": 1e-4, "fp16": 2e-2}

    def artifacts(self, source: Source, options: Options) -> Iterator[Artifact]:
        """Yield the packed graphs, then the plain ones."""
        for name in options.precisions:
            precision = make_precision(name, source)
            yield _artifact(source, precision, packed_model, f"{FOLDER}/{_PACKED[name]}.onnx")
            if options.is_plain:
                yield _artifact(source, precision, plain_model, f"{FOLDER}/{_PLAIN[name]}.onnx")


def _artifact(source: Source, precision: Precision, write: Write, path: str) -> Artifact:
    proto = write(source.parts, precision)
    check_stored(proto, source.parts, precision.name)
    if precision.name == "int8":
        check_products(proto)
    if proto.ByteSize() > MAX_BYTES:
        raise ExportError(
            f"the {precision.name} graph has {proto.ByteSize():,} bytes, one file holds at most "
            f"{MAX_BYTES:,}; export int8 or fp16"
        )
    data = proto.SerializeToString()
    parse_onnx(data)  # what our own reader would refuse must not be written
    form = "packed" if write is packed_model else "plain"
    counts = Counter(node.op_type for node in all_nodes(proto.graph.node))
    facts: dict[str, Any] = {
        "opset": OPSET,
        "nodes": sum(counts.values()),
        "weights": len(proto.graph.initializer),
    }
    return Artifact({path: data}, form, precision.name, graph_runner(data), facts)


def graph_runner(data: bytes) -> Runner:
    """Return what runs a graph with onnxruntime, on one thread; it is loaded at the first run."""
    loaded: list[Any] = []

    def run(inputs: Mapping[str, Any]) -> dict[str, Any]:
        if not loaded:
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = settings.inter_op_num_threads = 1
            settings.log_severity_level = 3
            try:
                loaded.append(
                    onnxruntime.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
                )
            except Exception as error:  # whatever the native code reports
                reason = str(error).splitlines()[0][:300]
                raise ExportError(f"onnxruntime refuses the graph: {reason}") from error
        session = loaded[0]
        known = {item.name for item in session.get_inputs()}
        known |= {item.name for item in session.get_overridable_initializers()}
        names = [item.name for item in session.get_outputs()]
        given = {name: value for name, value in inputs.items() if name in known}
        return dict(zip(names, session.run(names, given), strict=True))

    return run
