"""Exported graphs on real trained weights, beside the reference that transformers computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

pytest.importorskip("onnx")

pytestmark = pytest.mark.parity

FP32 = 1e-4
"""Absolute; numbers go up to 25, and the reference is float64 rounded once."""
DEPTHS = (1, 4, 8, 12)


@pytest.fixture(scope="module")
def real(shared: Path) -> Any:
    from litebert.export.onnx.source import load_source

    folder = shared / "models/kokoro-albert"
    if not folder.is_dir():
        pytest.skip("no kokoro-albert among the shared models")
    return load_source(folder), load_file(folder / "reference.safetensors")


def runs(source: Any, precision: Any, values: dict[str, Any]) -> tuple[int, list[Any], list[Any]]:
    """Size of the file; hidden states of real tokens after some depths, ours and the reference's."""
    from litebert.export.onnx.exporter import graph_runner
    from litebert.export.onnx.packed import packed_model

    data = packed_model(source.parts, precision).SerializeToString()
    run = graph_runner(data)
    mask = values["attention_mask"].astype(np.int64)
    ids = values["input_ids"].astype(np.int64)
    inputs = {
        "input_ids": ids,
        "token_type_ids": ids * 0,
        "position_ids": np.tile(np.arange(ids.shape[1]), (len(ids), 1)),
        "sequence_ids": mask,
    }
    real = mask.astype(bool)
    ours = [run({**inputs, "depth": np.array(d)})["last_hidden_state"][real] for d in DEPTHS]
    return len(data), ours, [values["hidden_states"][d][real] for d in DEPTHS]


def cosines(ours: Any, theirs: Any) -> Any:
    norms = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
    return (ours * theirs).sum(-1) / norms


def test_fp32_is_the_reference_and_stores_the_block_once(real: Any) -> None:
    from litebert.export.onnx.floats import FloatPrecision

    source, values = real
    size, ours, theirs = runs(source, FloatPrecision(), values)
    for found, wanted in zip(ours, theirs, strict=True):
        assert np.abs(found - wanted).max() < FP32
    assert size < 1.05 * 4 * 5_701_888


def test_int8_keeps_every_token_at_full_depth(real: Any) -> None:
    from litebert.export.onnx.source import make_precision

    source, values = real
    size, ours, theirs = runs(source, make_precision("int8", source), values)
    least = [float(cosines(*pair).min()) for pair in zip(ours, theirs, strict=True)]
    assert min(least) > 0.995, least
    assert size < 1.05 * 5_701_888


def test_int8_of_a_quantized_folder_keeps_its_centers(real: Any, tmp_path: Path) -> None:
    import torch

    from litebert.checkpoint.folder import save_model
    from litebert.compress.quantize import calibrate, with_quantization
    from litebert.export.onnx.source import load_source, make_precision
    from litebert.model.packing import Packing
    from litebert.model.quantization import Quantization

    source, values = real
    mask = values["attention_mask"].astype(bool)
    ids = torch.from_numpy(values["input_ids"].astype(np.int64)[mask])
    new = with_quantization(source.model, Quantization())
    calibrate(new, [(ids, Packing.from_lengths(mask.sum(1).tolist()))])
    save_model(new, tmp_path / "quantized")
    stored = load_source(tmp_path / "quantized")
    _, ours, theirs = runs(stored, make_precision("int8", stored), values)
    least = [float(cosines(*pair).min()) for pair in zip(ours, theirs, strict=True)]
    assert min(least) > 0.995, least


def test_full_range_int8_collapses_where_products_saturate(real: Any) -> None:
    """The trap that this exporter avoids, on CPUs that have it; on others nothing saturates."""
    from litebert.checkpoint.int8 import quantize_matrix
    from litebert.export.onnx import integers
    from litebert.export.onnx.integers import IntegerPrecision

    cpu = Path("/proc/cpuinfo")
    flags = cpu.read_text(encoding="utf-8") if cpu.is_file() else ""
    if "avx2" not in flags or "vnni" in flags:
        pytest.skip("this CPU adds products of int8 in 32 bits")
    source, values = real
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            integers, "quantize_in_pairs", lambda weight: quantize_matrix(weight, limit=127)
        )
        _, ours, theirs = runs(source, IntegerPrecision(), values)
    assert cosines(ours[-1], theirs[-1]).mean() < 0.9
