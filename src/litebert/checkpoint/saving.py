"""Saving a model folder: written whole beside the old one, then put in its place at once."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from litebert.checkpoint import fs
from litebert.checkpoint.files import (
    CARD_FILE,
    CONFIG_FILE,
    INDEX_FILE,
    TASK_FILE,
    TOKENIZER_FILES,
    WEIGHTS_FILE,
    is_plain_name,
)
from litebert.checkpoint.keys import to_published
from litebert.checkpoint.leftovers import is_running
from litebert.checkpoint.matching import OUR_PREFIX
from litebert.checkpoint.quantized import stored_tensors
from litebert.checkpoint.rounded import quantize_weight
from litebert.checkpoint.tensor_file import tensor_bytes, tensor_chunks
from litebert.checkpoint.vocabulary import METADATA_KEY, vocabulary_stamp
from litebert.errors import CheckpointError
from litebert.files import check_file, open_file
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.rounding import quantized_layers
from litebert.text.tokenizer import Tokenizer, check_vocabulary_fits

__all__ = ["save_model"]

_STALE_WEIGHTS: Final = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5")
_RESERVED: Final = frozenset({CONFIG_FILE, WEIGHTS_FILE, INDEX_FILE, *TOKENIZER_FILES})
_ANCIENT_SECONDS: Final = 86_400
_CHUNK_BYTES: Final = 1 << 22


def save_model(
    model: AlbertModel | AlbertWithHead,
    folder: str | Path,
    tokenizer: Tokenizer | None = None,
    task: Mapping[str, Any] | str | None = None,
    card: str | None = None,
    files: Mapping[str, bytes | str] | None = None,
) -> None:
    """Write a model folder, atomically: after a crash at any moment the old or the new one is there.

    Other files of an existing model folder stay, the tokenizer's too if none is given; weights in
    other formats go, since they would be of the old model. Each stored weight is written once.

    Args:
        model: what to save, in the number format of its weights.
        folder: where to; new, empty, or an older model folder.
        tokenizer: its files are written too.
        task: content of `task.json`.
        card: content of `README.md`, the model card.
        files: more files, name -> content.

    Raises:
        CheckpointError: not a model folder, a vocabulary that does not fit, or the disk refused.
    """
    try:
        target = Path(folder).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"cannot be the name of a model folder: {error}") from error
    contents = _contents(model, tokenizer, task, card, files)
    tensors = _named_tensors(model)
    kept = _kept_files(target, written={*contents, WEIGHTS_FILE})
    metadata = {"format": "pt"}
    stamp = vocabulary_stamp(contents)
    if stamp is not None:
        metadata[METADATA_KEY] = stamp
    needed = tensor_bytes(tensors) + sum(len(data) for data in contents.values())
    fs.check_free_space(target.parent, needed + sum((target / p).stat().st_size for p in kept))
    fs.make_folder(target.parent)
    _remove_leftovers(target, "tmp")
    temporary = target.with_name(f".{target.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        fs.make_folder(temporary)
        for path in kept:
            _copy(target / path, temporary / path)
        for name, data in contents.items():
            fs.write_file(temporary / name, data)
        fs.write_file(temporary / WEIGHTS_FILE, tensor_chunks(tensors, metadata))
        fs.replace_folder_atomic(temporary, target)
    except BaseException:
        with contextlib.suppress(CheckpointError):
            fs.remove_tree(temporary)
        raise
    _remove_leftovers(target, "old")


def _contents(
    model: AlbertModel | AlbertWithHead,
    tokenizer: Tokenizer | None,
    task: Mapping[str, Any] | str | None,
    card: str | None,
    files: Mapping[str, bytes | str] | None,
) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for name, data in (files or {}).items():
        if not is_plain_name(name) or name in _RESERVED:
            raise CheckpointError(
                f"cannot add a file called {name!r} to a model folder; allowed are plain names other "
                "than those of the configuration, the weights and the tokenizer"
            )
        contents[name] = data.encode() if isinstance(data, str) else data
    if tokenizer is not None:
        check_vocabulary_fits(tokenizer, model.config.vocab_size)
        contents |= tokenizer.files(model.config.max_position_embeddings)
    if task is not None:
        contents[TASK_FILE] = (task if isinstance(task, str) else _json(task)).encode()
    if card is not None:
        contents[CARD_FILE] = card.encode()
    head = model.head if isinstance(model, AlbertWithHead) else None
    config = model.config.replace(litebert={"head": head}).to_dict()
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    contents[CONFIG_FILE] = _json(config | {"dtype": dtype}).encode()
    return contents


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _named_tensors(model: AlbertModel | AlbertWithHead) -> dict[str, Tensor]:
    """The model's weights by the names that the file gives them."""
    state: dict[str, Tensor] = model.state_dict()
    broken = [name for name, tensor in state.items() if not bool(tensor.isfinite().all())]
    if broken:
        raise CheckpointError(
            f"{len(broken)} weights have numbers that are not finite, first {broken[0]!r}; "
            "the training diverged; nothing was written, save an earlier state"
        )
    head = model.head if isinstance(model, AlbertWithHead) else None
    inner = model.config.inner_group_num
    if model.config.model_type == "albert":
        return {
            to_published(name.removeprefix(OUR_PREFIX), inner=inner, head=head): tensor
            for name, tensor in state.items()
        }
    return state | _integers(model, state)


def _integers(model: AlbertModel | AlbertWithHead, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Take the weights that a quantized model stores as integers out of `state`, and return these.

    Weights that are on the grid already, such as those of a folder that was loaded, come back as the
    same integers.
    """
    quantization = model.config.litebert.quantization
    stored: dict[str, Tensor] = {}
    if quantization is None:
        return stored
    for layer in quantized_layers(model):
        weight = state.pop(f"{layer}.weight").detach().float().cpu().numpy()
        matrix = quantize_weight(layer, weight, quantization)
        for name, array in stored_tensors(f"{layer}.weight", matrix).items():
            stored[name] = torch.from_numpy(array)
    return stored


def _kept_files(folder: Path, written: set[str]) -> list[Path]:
    """Files of an older model folder that this save does not replace, relative to it.

    Raises:
        CheckpointError: the folder holds something else than a model, so replacing it would harm.
    """
    if not folder.exists() and not folder.is_symlink():
        return []
    if folder.is_symlink() or not folder.is_dir():
        raise CheckpointError("is not a folder; choose another place for the model", path=folder)
    if not any(folder.iterdir()):
        return []
    if not (folder / CONFIG_FILE).is_file():
        raise CheckpointError(
            f"holds other files and no {CONFIG_FILE}, so it is no model folder; choose an empty one",
            path=folder,
        )
    stale = {*written, INDEX_FILE, *_STALE_WEIGHTS}
    return [
        path
        for path in _walk(folder, Path())
        if path.name not in stale or path.parent != Path()
        if not (path.parent == Path() and path.match("model-*-of-*.safetensors"))
    ]


def _walk(root: Path, inside: Path) -> Iterator[Path]:
    for path in sorted((root / inside).iterdir()):
        relative = inside / path.name
        if path.is_dir() and not path.is_symlink():
            yield from _walk(root, relative)
        else:
            check_file(path)
            yield relative


def _copy(source: Path, target: Path) -> None:
    def pieces() -> Iterator[bytes]:
        with open_file(source) as file:
            yield from iter(lambda: file.read(_CHUNK_BYTES), b"")

    fs.make_folder(target.parent)
    fs.write_file(target, pieces())


def _remove_leftovers(target: Path, kind: str) -> None:
    """Delete what a killed save of the same folder has left beside it.

    An "old" folder may be the only copy until the new one is in place, so it goes last.
    """
    for path in target.parent.glob(f".{_escaped(target.name)}.{kind}-*"):
        owner = path.name.rsplit(f".{kind}-", 1)[1].split("-")[0]
        is_ancient = time.time() - path.stat().st_mtime > _ANCIENT_SECONDS
        if owner.isdigit() and (is_ancient or not is_running(int(owner))):
            fs.remove_tree(path)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
