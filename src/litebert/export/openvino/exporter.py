"""`litebert export openvino`: made from the plain ONNX graph, run by OpenVINO's CPU plugin."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from litebert.errors import ExportError, MissingDependencyError
from litebert.export.base import EXPORTERS, Artifact, Options
from litebert.export.onnx.checks import ALLOWANCE, CONSTANT_BYTES, unique_bytes
from litebert.export.onnx.plain import plain_model
from litebert.export.onnx.source import Source, make_precision
from litebert.export.verify import Runner

__all__ = ["OpenVinoExporter"]

NAME: Final = "model"


@EXPORTERS.register("openvino")
class OpenVinoExporter:
    """A file of the graph (xml) beside one of the weights (bin), each stored once.

    No int8: its CPU plugin computes our integer graph, but slower than float32 (measured 264 against
    200 ms of one thread at 64 tokens).
    """

    precisions: Sequence[str] = ("fp32", "fp16")
    tolerances: Mapping[str, float] = {"fp32": 1e-4, "fp16": 2e-2}

    def artifacts(self, source: Source, options: Options) -> Iterator[Artifact]:
        """Yield one model for each number format."""
        openvino = _openvino()
        proto = plain_model(source.parts, make_precision("fp32", source))
        for precision in options.precisions:
            files = _converted(openvino, proto.SerializeToString(), precision)
            names = [f"openvino/{NAME}{_SUFFIX[precision]}.{kind}" for kind in ("xml", "bin")]
            weights = len(files["bin"])
            allowed = ALLOWANCE * unique_bytes(source.parts, precision) + CONSTANT_BYTES
            if weights > allowed:
                raise ExportError(
                    f"OpenVINO stores {weights:,} bytes of weights, {allowed:,.0f} were expected: some "
                    "are stored twice; this is a fault of litebert, please report it"
                )
            run = _runner(openvino, files["xml"], files["bin"])
            facts = {"openvino": str(openvino.__version__)}
            made = dict(zip(names, (files["xml"], files["bin"]), strict=True))
            yield Artifact(made, "plain", precision, run, facts)


_SUFFIX: Final = {"fp32": "", "fp16": "_fp16"}


def _openvino() -> Any:
    try:
        import openvino
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "openvino", extra="openvino", purpose="litebert export openvino"
        ) from error
    return openvino


def _converted(openvino: Any, data: bytes, precision: str) -> dict[str, bytes]:
    """Contents of the two files."""
    with tempfile.TemporaryDirectory(prefix="litebert-openvino-") as folder:
        path = Path(folder) / f"{NAME}.xml"
        try:
            model = openvino.Core().read_model(data, b"")
            openvino.save_model(model, path, compress_to_fp16=precision == "fp16")
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1][:300]
            raise ExportError(f"OpenVINO refuses the graph: {reason}") from error
        return {kind: path.with_suffix(f".{kind}").read_bytes() for kind in ("xml", "bin")}


def _runner(openvino: Any, xml: bytes, weights: bytes) -> Runner:
    """Return what runs a model on one thread, in float32 whatever the CPU offers."""
    compiled: list[Callable[[Mapping[str, Any]], Any]] = []

    def run(inputs: Mapping[str, Any]) -> dict[str, Any]:
        if not compiled:
            settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
            core = openvino.Core()
            compiled.append(core.compile_model(core.read_model(xml, weights), "CPU", settings))
        found = compiled[0](dict(inputs))
        return {_public(output.names): found[output].copy() for output in found}

    return run


def _public(names: set[str]) -> str:
    """Of the names of an output the one that the graph gave it; others are of operators."""
    return min(names, key=lambda name: (any(letter.isdigit() for letter in name), name))
