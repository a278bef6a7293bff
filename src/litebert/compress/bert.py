"""Encoders of the BERT layout as our model: an unshared plan whose embeddings have the width H.

BERT is ALBERT without its two savings: E = H without projection, and a block for each depth. So
its weights load into our own encoder, exactly, and nothing of another library runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litebert.checkpoint.files import CONFIG_FILE, TOKENIZER_FILES, check_folder
from litebert.checkpoint.keys import Resolved
from litebert.checkpoint.matching import check_memory, fill, match
from litebert.checkpoint.skeleton import reserve, skeleton
from litebert.checkpoint.vocabulary import check_vocabulary
from litebert.checkpoint.weights import WeightFiles, find_weights
from litebert.errors import CheckpointError, SettingsError
from litebert.files import check_file
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig, read_config_json

__all__ = ["BERT_TYPES", "bert_config", "load_bert"]

BERT_TYPES: Final = ("bert", "electra")
"""`model_type` of configurations whose weights have this layout."""

_PREFIXES: Final = ("bert.", "electra.")
_PLAIN: Final = (
    ("embeddings.word_embeddings.", "embeddings.token."),
    ("embeddings.position_embeddings.", "embeddings.position."),
    ("embeddings.token_type_embeddings.", "embeddings.token_type."),
    ("embeddings.LayerNorm.", "embeddings.norm."),
    ("embeddings_project.", "embeddings.project."),
    ("pooler.dense.", "pooler."),
)
_LAYER: Final = {
    "attention.self.query": ("attentions", "query"),
    "attention.self.key": ("attentions", "key"),
    "attention.self.value": ("attentions", "value"),
    "attention.output.dense": ("attentions", "output"),
    "attention.output.LayerNorm": ("attentions", "norm"),
    "intermediate.dense": ("ffns", "up"),
    "output.dense": ("ffns", "down"),
    "output.LayerNorm": ("ffns", "norm"),
}
_BLOCK: Final = re.compile(r"encoder\.layer\.(0|[1-9][0-9]{0,3})\.([A-Za-z_.]+)\.(weight|bias)")
_LEFT_OUT: Final = ("cls.", "generator_", "discriminator_", "qa_outputs.", "classifier.")
"""Heads: not a part of the encoder."""
_SIZES: Final = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
)  # fmt: skip
_KEPT: Final = (
    *_SIZES, "embedding_size", "hidden_act", "max_position_embeddings", "type_vocab_size",
    "layer_norm_eps", "initializer_range", "pad_token_id",
)  # fmt: skip
_DEFAULTS: Final = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0}


@dataclass(frozen=True, slots=True)
class _Opened:
    config: AlbertConfig
    files: WeightFiles
    found: Resolved
    has_classifier: bool


def bert_config(values: Mapping[str, Any], path: Path | None = None) -> AlbertConfig:
    """Return our configuration of the same encoder, dropout left out.

    Args:
        values: content of a published `config.json`.
        path: where it lies, for messages.

    Raises:
        CheckpointError: another kind of model, or one whose function is another than BERT's.
    """
    kind = values.get("model_type")
    if kind not in BERT_TYPES:
        raise CheckpointError(
            f"model_type is {kind!r:.80}; allowed are {', '.join(BERT_TYPES)} and litebert's own; "
            "other encoders can only be teachers, through transformers",
            path=path,
        )
    for key, allowed in (
        ("position_embedding_type", (None, "absolute")),
        ("is_decoder", (None, False)),
        ("add_cross_attention", (None, False)),
    ):
        if values.get(key) not in allowed:
            raise CheckpointError(
                f"{key} is {values.get(key)!r:.80}, allowed is {allowed[-1]!r}: this model computes "
                "something else than BERT",
                path=path,
            )
    missing = [key for key in _SIZES if values.get(key) is None]
    if missing:
        raise CheckpointError(f"sizes missing: {', '.join(missing)}", path=path)
    table = _DEFAULTS | {key: values[key] for key in _KEPT if values.get(key) is not None}
    width = table.setdefault("embedding_size", table["hidden_size"])
    labels = values.get("id2label")
    if isinstance(labels, Mapping):
        table["id2label"] = labels
    options = {"sharing": "none", "project_embeddings": width != table["hidden_size"]}
    try:
        return AlbertConfig.from_dict(table | {"litebert": options})
    except SettingsError as error:
        raise CheckpointError(str(error), path=path) from error


def load_bert(folder: Path, head: str | None = None) -> AlbertModel | AlbertWithHead:
    """Load the encoder of a BERT folder, in evaluation mode; numbers as transformers computes them.

    Args:
        folder: `config.json`, `model.safetensors` (or its shards), a vocabulary.
        head: None: the bare encoder, with its pooler if it has one; "embedding": mean of the last
            hidden states; "sequence": with the classifier of the folder.

    Raises:
        CheckpointError: any fault of the folder; missing, unexpected or mis-shaped weights.
    """
    opened = _open(folder)
    has_pooler = "pooler.weight" in opened.found.sources
    config = opened.config
    if head == "sequence" and not (opened.has_classifier and has_pooler):
        raise CheckpointError(
            "has no classifier with a pooler; fine-tune it for a task first", path=folder
        )
    if head == "embedding":
        config = config.replace(litebert={"pooling": "mean"})
    with skeleton():
        if head is None:
            model = AlbertModel(config, add_pooler=has_pooler)
        else:
            model = AlbertWithHead(config, head)
            if not has_pooler:
                model.model.pooler = None
    state = model.state_dict()
    found = opened.found
    if head != "sequence":
        for name in [name for name in found.sources if name.startswith("heads.")]:
            del found.sources[name]
    plan = match(state, opened.files, found, allow_new_head=False, allow_missing_pooler=False)
    check_memory(state, opened.files.path)
    reserve(model)
    fill(model.state_dict(), plan, opened.files.path)
    return model.eval()


def _open(folder: Path) -> _Opened:
    check_folder(folder)
    for name, limit in TOKENIZER_FILES.items():
        check_file(folder / name, max_bytes=limit)
    path = folder / CONFIG_FILE
    config = bert_config(read_config_json(path), path)
    files = find_weights(folder)
    check_vocabulary(folder, config.vocab_size, files.metadata)
    found = _resolve(files)
    return _Opened(config, files, found, "heads.sequence.classifier.weight" in found.sources)


def _resolve(files: WeightFiles) -> Resolved:
    """Sort the names of a BERT file by our weights."""
    found = Resolved()
    for stored in files.entries:
        name = stored
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        if name.endswith(("position_ids", "token_type_ids")):
            continue
        ours = _ours(name)
        if ours is None and name.startswith(_LEFT_OUT):
            continue
        if ours is None:
            found.unknown.append(stored)
        elif ours in found.sources:
            found.repeated.append(ours)
        else:
            found.sources[ours] = [stored]
    return found


def _ours(name: str) -> str | None:
    """Our name of a weight, after the LayerNorms of early files are called as today."""
    stem, _, leaf = name.rpartition(".")
    if stem.endswith("LayerNorm"):
        name = stem + "." + {"gamma": "weight", "beta": "bias"}.get(leaf, leaf)
    for theirs, ours in _PLAIN:
        if name.startswith(theirs):
            return ours + name[len(theirs) :]
    if name in ("classifier.weight", "classifier.bias"):
        return f"heads.sequence.{name}"
    part = _BLOCK.fullmatch(name)
    if part is None or part[2] not in _LAYER:
        return None
    kind, layer = _LAYER[part[2]]
    return f"encoder.{kind}.{part[1]}.{layer}.{part[3]}"
