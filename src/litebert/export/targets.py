"""All export targets; one import line each. What they need is imported when they run."""

from __future__ import annotations

from litebert.export.base import EXPORTERS
from litebert.export.executorch.exporter import ExecuTorchExporter
from litebert.export.onnx.exporter import OnnxExporter
from litebert.export.openvino.exporter import OpenVinoExporter

__all__ = ["EXPORTERS", "ExecuTorchExporter", "OnnxExporter", "OpenVinoExporter"]
