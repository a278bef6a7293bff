"""The model folder: load one into a model, with every weight accounted for; save one, old or new.

Published layout (transformers reads and writes the same): `config.json`, `model.safetensors`, the
tokenizer files, and ours: `task.json`. Where `model_type` is "litebert", which says that
transformers cannot compute this model, the weights bear the names of our state dict.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from torch import nn

from litebert.checkpoint.files import CONFIG_FILE, TOKENIZER_FILES, WEIGHTS_FILE, check_folder
from litebert.checkpoint.keys import ARCHITECTURE_HEADS, CLASSIFIER_HEADS, resolve
from litebert.checkpoint.matching import OUR_PREFIX, Match, check_memory, fill, match
from litebert.checkpoint.quantized import join_quantized
from litebert.checkpoint.rounded import attach_rounding
from litebert.checkpoint.saving import save_model
from litebert.checkpoint.skeleton import reserve, skeleton
from litebert.checkpoint.vocabulary import check_vocabulary
from litebert.checkpoint.weights import MAX_HEADER_BYTES, WeightFiles, find_weights
from litebert.errors import CheckpointError, SettingsError
from litebert.files import check_file
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig, read_config_json
from litebert.model.layers import init_weights
from litebert.model.sharing import num_attentions, num_ffns
from litebert.models import locate

__all__ = ["load_encoder", "load_model", "save_model", "saved_head", "untrained_parts"]

EncoderT = TypeVar("EncoderT", bound=AlbertModel)
HeadT = TypeVar("HeadT", bound=AlbertWithHead)

_log = logging.getLogger(__name__)

_ATTENTION_TENSORS: Final = 10
_FFN_TENSORS: Final = 6
_HEADER_BYTES: Final = 1 << 20
_HEADER_BYTES_PER_TENSOR: Final = 1024


@dataclass(frozen=True, slots=True)
class _Opened:
    """A model folder whose configuration and headers have been read and agree in outline."""

    folder: Path
    config: AlbertConfig
    saved_head: str | None
    files: WeightFiles
    own_layout: bool


def load_encoder(
    folder: str | Path,
    *,
    add_pooler: bool | None = None,
    allow_missing_pooler: bool = False,
    check_tokenizer: bool = True,
    device: torch.device | str = "cpu",
    model_class: type[EncoderT] = AlbertModel,
) -> EncoderT:
    """Load the encoder of a model folder, in evaluation mode; heads in it are left out, and logged.

    Args:
        folder: the model folder.
        add_pooler: whether to have the pooler; None: if the folder has it.
        allow_missing_pooler: start with an untrained pooler where the folder has none.
        check_tokenizer: refuse a folder whose vocabulary does not belong to the weights.
        device: where the model goes.
        model_class: class to build.

    Raises:
        CheckpointError: any fault of the folder; missing, unexpected or mis-shaped weights.
    """
    opened = _open(locate(folder), check_tokenizer=check_tokenizer)
    config = opened.config.replace(litebert={"head": None})
    if add_pooler is None:
        add_pooler = allow_missing_pooler or _has_pooler(opened)
    with skeleton():
        model = model_class(config, add_pooler=add_pooler)
    _fill_model(model, opened, head=None, allow_missing_pooler=allow_missing_pooler)
    attach_rounding(model)
    return model.to(device).eval()


def load_model(
    folder: str | Path,
    head: str | None = None,
    *,
    allow_new_head: bool = False,
    allow_missing_pooler: bool = False,
    changes: Mapping[str, Any] | None = None,
    check_tokenizer: bool = True,
    is_quiet: bool = False,
    device: torch.device | str = "cpu",
    model_class: type[HeadT] = AlbertWithHead,
) -> HeadT:
    """Load a model folder with a head, in evaluation mode.

    Heads in the folder that this model does not have are left out, and logged.

    Args:
        folder: the model folder.
        head: head word; None: the head it was saved with.
        allow_new_head: start with an untrained head where the folder has none of this kind and size.
        allow_missing_pooler: start with an untrained pooler where the folder has none.
        changes: configuration values to replace, for example `{"id2label": {0: "no", 1: "yes"}}`
            for a new head.
        check_tokenizer: refuse a folder whose vocabulary does not belong to the weights.
        is_quiet: do not log which parts are new, because the caller says so.
        device: where the model goes.
        model_class: class to build.

    Raises:
        CheckpointError: any fault of the folder; missing, unexpected or mis-shaped weights.
        SettingsError: no such head, or changes that make no configuration.
    """
    opened = _open(locate(folder), check_tokenizer=check_tokenizer)
    chosen = head if head is not None else opened.saved_head
    if chosen is None:
        raise CheckpointError(
            "the folder names no head we know; name one (head=...), or load the encoder alone",
            path=opened.folder / CONFIG_FILE,
        )
    config = opened.config.replace(**changes) if changes else opened.config
    try:
        with skeleton():
            model = model_class(config, chosen)
    except SettingsError as error:
        if head is not None:
            raise
        raise CheckpointError(str(error), path=opened.folder / CONFIG_FILE) from error
    if chosen == "embedding" and config.litebert.pooling == "mean" and not _has_pooler(opened):
        model.model.pooler = None
    _fill_model(
        model,
        opened,
        head=chosen,
        allow_new_head=allow_new_head,
        allow_missing_pooler=allow_missing_pooler,
        is_quiet=is_quiet,
    )
    attach_rounding(model)
    return model.to(device).eval()


def untrained_parts(
    folder: Path, head: str, *, changes: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return what `load_model` with new parts allowed would start anew: head words, or "pooler".

    Nothing but names and shapes is read.

    Raises:
        CheckpointError, SettingsError: as `load_model`.
    """
    opened = _open(folder, check_tokenizer=True)
    with skeleton():
        model = AlbertWithHead(opened.config.replace(**(changes or {})), head)
    if head == "embedding" and model.config.litebert.pooling == "mean" and not _has_pooler(opened):
        model.model.pooler = None
    plan = _match(
        model, opened, head, allow_new_head=True, allow_missing_pooler=True, is_quiet=True
    )
    return tuple(plan.fresh)


def saved_head(folder: Path) -> str | None:
    """Return the head word that a model folder was saved with; None if it names none we know.

    Raises:
        CheckpointError: the configuration cannot be used.
    """
    path = folder / CONFIG_FILE
    raw = read_config_json(path)
    return _saved_head(raw, AlbertConfig.from_dict_checked(raw, path))


def _open(folder: Path, *, check_tokenizer: bool) -> _Opened:
    check_folder(folder)
    for name, limit in TOKENIZER_FILES.items():
        check_file(folder / name, max_bytes=limit)
    config_path = folder / CONFIG_FILE
    if check_file(config_path) is None:
        raise CheckpointError(
            f"has no {CONFIG_FILE}; expected a model folder ({CONFIG_FILE}, {WEIGHTS_FILE})",
            path=folder,
        )
    raw = read_config_json(config_path)
    if raw.get("ln_type") == "preln":
        raise CheckpointError(
            "ln_type is 'preln' (LayerNorm before each sub-layer): its weights are of another model "
            "and would give wrong answers; allowed is 'postln', which is ALBERT",
            path=config_path,
        )
    config = AlbertConfig.from_dict_checked(raw, config_path)
    _check_size(folder, config)
    files = join_quantized(find_weights(folder, max_header_bytes=_header_limit(config)), config)
    _check_blocks(config, files)
    own_layout = raw.get("model_type") == "litebert"
    if not own_layout and _has_published_projection(config, files):
        config = config.replace(litebert={"project_embeddings": True})
    if not own_layout and config.model_type != "albert":
        _log.warning(
            "%s: transformers would compute another function from this configuration than ALBERT's "
            "official code and litebert do",
            config_path,
        )
    if check_tokenizer:
        check_vocabulary(folder, config.vocab_size, files.metadata)
    return _Opened(folder, config, _saved_head(raw, config), files, own_layout)


def _saved_head(raw: Mapping[str, Any], config: AlbertConfig) -> str | None:
    if config.litebert.head is not None:
        return config.litebert.head
    names = raw.get("architectures")
    first = names[0] if isinstance(names, list) and names else None
    return ARCHITECTURE_HEADS.get(first) if isinstance(first, str) else None


def _least_bytes(config: AlbertConfig) -> int:
    """A lower bound of the weights' size in half precision or integers, from the large matrices alone."""
    width = config.hidden_size
    share = 2.0 if config.litebert.quantization is None else 0.5
    return int(
        share
        * (
            config.vocab_size * config.embedding_size
            + num_attentions(config.plan) * 2 * width * config.attention_size
            + num_ffns(config.plan) * 2 * width * config.intermediate_size
        )
    )


def _check_size(folder: Path, config: AlbertConfig) -> None:
    """A configuration of a huge model beside a small file is refused before anything is built."""
    size, least = check_file(folder / WEIGHTS_FILE), _least_bytes(config)
    if size is not None and size < least:
        raise CheckpointError(
            f"has {size:,} bytes, the model that {CONFIG_FILE} describes needs at least {least:,}; "
            "cut short, or the two do not belong together",
            path=folder / WEIGHTS_FILE,
        )


def _least_tensors(config: AlbertConfig) -> int:
    plan = config.plan
    return _ATTENTION_TENSORS * num_attentions(plan) + _FFN_TENSORS * num_ffns(plan)


def _header_limit(config: AlbertConfig) -> int:
    return min(MAX_HEADER_BYTES, _HEADER_BYTES + _HEADER_BYTES_PER_TENSOR * _least_tensors(config))


def _check_blocks(config: AlbertConfig, files: WeightFiles) -> None:
    least = _least_tensors(config)
    if len(files.entries) < least:
        raise CheckpointError(
            f"weights are missing: it holds {len(files.entries)} tensors, the stored blocks that "
            f"{CONFIG_FILE} describes have {least}",
            path=files.path,
        )


def _has_published_projection(config: AlbertConfig, files: WeightFiles) -> bool:
    """Whether E = H and the file projects all the same, as transformers always does."""
    key = "encoder.embedding_hidden_mapping_in.weight"
    return not config.has_projection and any(
        name.removeprefix("albert.") == key for name in files.entries
    )


def _has_pooler(opened: _Opened) -> bool:
    names = {name.removeprefix("albert.").removeprefix(OUR_PREFIX) for name in opened.files.entries}
    return "pooler.weight" in names or "pooler.bias" in names


def _fill_model(
    model: nn.Module,
    opened: _Opened,
    *,
    head: str | None,
    allow_new_head: bool = False,
    allow_missing_pooler: bool = False,
    is_quiet: bool = False,
) -> None:
    """Give a model that was built as a skeleton its memory and its weights."""
    files, config = opened.files, opened.config
    plan = _match(
        model,
        opened,
        head,
        allow_new_head=allow_new_head,
        allow_missing_pooler=allow_missing_pooler,
        is_quiet=is_quiet,
    )
    check_memory(model.state_dict(), files.path)
    reserve(model)
    fill(model.state_dict(), plan, files.path)
    for part in plan.fresh:
        _start_anew(model, part, config.initializer_range)


def _match(
    model: nn.Module,
    opened: _Opened,
    head: str | None,
    *,
    allow_new_head: bool,
    allow_missing_pooler: bool,
    is_quiet: bool = False,
) -> Match:
    files, config = opened.files, opened.config
    found = resolve(
        files.entries,
        inner=config.inner_group_num,
        classifier=next(
            (h for h in (opened.saved_head, head) if h in CLASSIFIER_HEADS), "sequence"
        ),
        own_layout=opened.own_layout,
    )
    return match(
        model.state_dict(),
        files,
        found,
        allow_new_head=allow_new_head,
        allow_missing_pooler=allow_missing_pooler,
        is_quiet=is_quiet,
    )


def _start_anew(model: nn.Module, part: str, std: float) -> None:
    module = next(
        inner
        for name, inner in model.named_modules()
        if name.removeprefix(OUR_PREFIX)
        == (part if part in ("pooler", "exits") else f"heads.{part}")
    )
    init_weights(module, std)
    with torch.no_grad():
        for parameter in module.parameters(recurse=False):
            if not isinstance(module, nn.Linear):
                parameter.zero_()
