"""Tensors as safetensors bytes, piece by piece: no second copy of the model in memory.

Source: the safetensors format: 8 bytes little-endian header length, JSON header, raw data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

import torch
from torch import Tensor
from typing_extensions import Buffer

from litebert.errors import CheckpointError

DTYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def tensor_chunks(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """Yield a safetensors file with `tensors` in name order; equal input gives equal bytes.

    Args:
        tensors: name -> tensor of any shape, on any device.
        metadata: text pairs for the header.

    Raises:
        CheckpointError: a tensor of a type that the format does not hold, such as complex.
    """
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        if tensor.dtype not in DTYPE_NAMES:
            known = ", ".join(str(dtype) for dtype in DTYPE_NAMES)
            raise CheckpointError(f"tensor {name!r} is {tensor.dtype}; can be stored: {known}")
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": DTYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in sorted(tensors):
        flat = tensors[name].detach().cpu().contiguous().flatten()
        if flat.numel():
            yield memoryview(cast(Buffer, flat.view(torch.uint8).numpy()))


def tensor_bytes(tensors: Mapping[str, Tensor]) -> int:
    """Return the size of the tensors' data, in bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
