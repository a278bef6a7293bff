"""Other ways to run the same albert-base, each as its users usually do; for `benchmarks.inference`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from litebert.recipes.bench.engines import PlainOnnxEngine, TransformersEngine

__all__ = ["Compiled", "DynamicInt8", "usual_exports"]


class Compiled(TransformersEngine):
    """torch.compile with dynamic shapes."""

    def __init__(self, path: Path, threads: int) -> None:
        super().__init__(path, threads)
        self.model = self._torch.compile(self.model, dynamic=True)


class DynamicInt8(TransformersEngine):
    """Linear layers quantized by torch."""

    def __init__(self, path: Path, threads: int) -> None:
        super().__init__(path, threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantize: Any = self._torch.ao.quantization.quantize_dynamic
            self.model = quantize(self.model, {self._torch.nn.Linear}, dtype=self._torch.qint8)


Onnx = PlainOnnxEngine


def usual_exports(folder: Path, out: Path) -> dict[str, Path | str]:
    """Export as usual: torch.onnx, then onnxruntime's own quantization.

    Returns:
        `fp32` and `int8`: the file, or why there is none.
    """
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.randint(5, 1000, (2, 9))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "sequence"} for name in [*names, "last_hidden_state"]}
    plain, small = out / "usual.onnx", out / "usual_int8.onnx"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model,
                (ids, torch.ones_like(ids), torch.zeros_like(ids)),
                str(plain),
                input_names=names,
                output_names=["last_hidden_state", "pooler_output"],
                dynamic_axes=axes,
                opset_version=17,
                dynamo=False,
            )
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        return {"fp32": reason, "int8": reason}
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(str(plain), str(small), weight_type=QuantType.QInt8)
    except Exception as error:
        return {"fp32": plain, "int8": f"{type(error).__name__}: {str(error)[:200]}"}
    return {"fp32": plain, "int8": small}
