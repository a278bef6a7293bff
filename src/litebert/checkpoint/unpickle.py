"""Child process of `convert`: opens one pickle of tensors under limits and writes safetensors.

Run as a script, never imported: `python -I unpickle.py SOURCE TARGET LIMIT_BYTES`. It ends with
code 0, or with code 3 and the reason as its last line of output. It needs nothing of litebert.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import torch
from safetensors.torch import save_file

FAILURE: Final = 3
_CPU_SECONDS: Final = 600
_MAX_TENSORS: Final = 1_000_000
_STATM: Final = Path("/proc/self/statm")


def limit_process(memory_bytes: int, file_bytes: int) -> None:
    """Bound what this process may use from now on; does nothing where the system has no such limits.

    Args:
        memory_bytes: beyond what it uses now.
        file_bytes: size of the largest file it may write.
    """
    try:
        import resource
    except ImportError:
        return
    limits = [
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ]
    if _STATM.exists():  # elsewhere a limit of the address space is not kept
        pages = int(_STATM.read_text(encoding="ascii").split()[0])
        limits.append((resource.RLIMIT_AS, pages * resource.getpagesize() + memory_bytes))
    for kind, value in limits:
        resource.setrlimit(kind, (value, value))


def checked_tensors(content: object) -> dict[str, torch.Tensor]:
    """Return the tensors of a state dict, dense and each with its own memory.

    Raises:
        ValueError: anything else is in it.
    """
    if not isinstance(content, Mapping):
        raise ValueError(f"holds a {type(content).__name__}, expected a table of tensors by name")
    table = cast(Mapping[Any, Any], content)
    if len(table) > _MAX_TENSORS:
        raise ValueError(f"holds {len(table)} entries, allowed are {_MAX_TENSORS}")
    tensors: dict[str, torch.Tensor] = {}
    for name, value in table.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise ValueError(
                f"entry {name!r:.80} is a {type(value).__name__}; allowed are tensors alone, by name "
                "(if the weights lie one level deeper, save that table alone)"
            )
        if value.layout != torch.strided or value.is_quantized or value.is_complex():
            raise ValueError(f"tensor {name!r:.80} is sparse, quantized or complex")
        tensors[name] = value.detach().clone(memory_format=torch.contiguous_format)
    return tensors


def main(source: str, target: str, limit_bytes: str) -> int:
    """Convert one file; return the exit code."""
    torch.set_num_threads(1)
    limit_process(int(limit_bytes), int(limit_bytes))
    try:
        content = torch.load(source, map_location="cpu", weights_only=True)
        save_file(checked_tensors(content), target)
    except Exception as error:  # whatever a foreign file provokes is the answer
        sys.stdout.write(f"\n{explain(error)[:500]}\n")
        return FAILURE
    return 0


def explain(error: Exception) -> str:
    """Return one line about an error; torch's advice to switch its protection off is left out."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, pickle.UnpicklingError):
        detail = next(
            (line for line in lines if line.startswith("Trying to")), "no pickle of tensors"
        )
        return f"it is damaged or wants to run code ({detail})"
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
