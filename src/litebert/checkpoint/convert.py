"""Pickled weights (`pytorch_model.bin`, `.pt`) into a model folder; the only place that opens a pickle.

It is opened in a process of its own, with `weights_only`, limited memory and no right to start
others; what comes back is a safetensors file that is checked like any other.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from litebert.checkpoint import unpickle
from litebert.checkpoint.files import CONFIG_FILE, TOKENIZER_FILES, WEIGHTS_FILE, check_folder
from litebert.checkpoint.folder import load_encoder, load_model, saved_head
from litebert.checkpoint.saving import save_model
from litebert.errors import CheckpointError
from litebert.files import check_file, read_bytes
from litebert.model.config import MAX_CONFIG_BYTES
from litebert.text.tokenizer import Tokenizer

__all__ = ["Conversion", "check_torch_version", "convert_pickle"]

SUFFIXES: Final = (".bin", ".pt", ".pth")
SAFE_TORCH: Final = (2, 10)
"""`weights_only` of earlier releases could be bypassed: CVE-2025-32434, CVE-2026-24747."""
WARNING: Final = (
    "the source was a pickle, a format that can run code when it is opened; it was opened in a "
    "limited process of its own. Use the converted folder from now on, and take such files only "
    "from people you trust"
)
_EXTRA_BYTES: Final = 512 << 20
_COPIES: Final = 3


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion made."""

    folder: Path
    head: str | None
    """Head word of the model; None for an encoder alone."""
    num_parameters: int
    warning: str
    """Text to show to the user."""

    def __str__(self) -> str:
        kind = "an encoder" if self.head is None else f"a model with the head {self.head!r}"
        return f"{kind}, {self.num_parameters:,} parameters; {self.warning}"


def convert_pickle(
    source: str | Path,
    out_folder: str | Path,
    *,
    config: str | Path | None = None,
    head: str | None = None,
    timeout_seconds: float = 600.0,
) -> Conversion:
    """Convert pickled weights with the configuration and tokenizer beside them.

    Args:
        source: a state dict saved by `torch.save`, ending in .bin, .pt or .pth, or the folder that
            holds one such file.
        out_folder: the model folder to write.
        config: `config.json`; None: the one beside `source`.
        head: head word; None: what the configuration says.
        timeout_seconds: the longest that opening may take, > 0.

    Raises:
        CheckpointError: not such a file, content that is no tensor, or weights that are not those
            of the configuration.
    """
    path, out = _find_pickle(Path(source)), Path(out_folder)
    if path.suffix not in SUFFIXES:
        raise CheckpointError(
            f"ends in {path.suffix!r}, allowed are {', '.join(SUFFIXES)}", path=path
        )
    check_torch_version(torch.__version__)
    size = check_file(path)
    if size is None:
        raise CheckpointError("no such file", path=path)
    config_path = Path(config) if config is not None else path.parent / CONFIG_FILE
    with tempfile.TemporaryDirectory(prefix="litebert-convert-") as name:
        scratch = Path(name)
        (scratch / CONFIG_FILE).write_bytes(read_bytes(config_path, max_bytes=MAX_CONFIG_BYTES))
        has_tokenizer = _copy_tokenizer(path.parent, scratch)
        _unpickle(path, scratch / WEIGHTS_FILE, _COPIES * size + _EXTRA_BYTES, timeout_seconds)
        chosen = head if head is not None else saved_head(scratch)
        model = load_encoder(scratch) if chosen is None else load_model(scratch, chosen)
        tokenizer = Tokenizer.from_pretrained(scratch) if has_tokenizer else None
    save_model(model, out, tokenizer)
    count = sum(parameter.numel() for parameter in model.parameters())
    return Conversion(out, chosen, count, WARNING)


def _find_pickle(source: Path) -> Path:
    if not source.is_dir():
        return source
    check_folder(source)
    # `training_args.bin` and the like lie beside the weights and are none.
    found = sorted(path for path in source.iterdir() if path.suffix in SUFFIXES)
    named = [path for path in found if path.name == "pytorch_model.bin"] or found
    if len(named) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise CheckpointError(
            f"holds several files that could be the weights or none ({names}); name the file",
            path=source,
        )
    return named[0]


def check_torch_version(version: str) -> None:
    """Refuse a torch whose protection against malicious pickles is known to be broken.

    Raises:
        CheckpointError: older than 2.10.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < SAFE_TORCH:
        raise CheckpointError(
            f"torch {version} can be tricked into running code from a pickle; converting needs "
            f"{SAFE_TORCH[0]}.{SAFE_TORCH[1]} or newer"
        )


def _copy_tokenizer(folder: Path, scratch: Path) -> bool:
    found = False
    for name, limit in TOKENIZER_FILES.items():
        if check_file(folder / name, max_bytes=limit) is not None:
            (scratch / name).write_bytes(read_bytes(folder / name, max_bytes=limit))
            found = found or name in ("spiece.model", "vocab.txt", "tokenizer.json")
    return found


def _unpickle(source: Path, target: Path, limit_bytes: int, timeout_seconds: float) -> None:
    command = [sys.executable, "-I", unpickle.__file__, str(source.resolve()), str(target)]
    with tempfile.TemporaryFile(dir=target.parent) as output:
        try:
            code = subprocess.run(
                [*command, str(limit_bytes)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                cwd=target.parent,
                timeout=timeout_seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise CheckpointError(
                f"opening it took more than {timeout_seconds:g} s; it is damaged or hostile",
                path=source,
            ) from error
        output.seek(0)
        lines = output.read(4096).decode("utf-8", errors="replace").strip().splitlines()
    if code == unpickle.FAILURE:
        reason = lines[-1] if lines else "no reason given"
        raise CheckpointError(
            f"cannot be converted: {reason}; only tables of tensors are, nothing in it was run",
            path=source,
        )
    if code != 0:
        raise CheckpointError(
            f"the process that opened it ended with code {code}; it is damaged, hostile, or needs "
            f"more than the {limit_bytes:,} bytes of memory allowed for a file of its size",
            path=source,
        )
