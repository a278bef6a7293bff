"""The files that make a model folder of ours one of sentence-transformers, too.

`modules.json` names the steps (encoder, mean over tokens, length 1), `1_Pooling/config.json` and
`sentence_bert_config.json` configure them, `config_sentence_transformers.json` names the similarity.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from litebert.checkpoint import fs
from litebert.errors import CheckpointError, SettingsError
from litebert.model.config import AlbertConfig

__all__ = ["sentence_transformers_files", "write_sentence_transformers"]

MODULES_FILE: Final = "modules.json"
POOLING_FILE: Final = "1_Pooling/config.json"
_MODES: Final = (
    "cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens",
    "lasttoken",
)  # fmt: skip


def sentence_transformers_files(config: AlbertConfig, max_length: int) -> dict[str, bytes]:
    """Return file name -> content, `modules.json` last.

    Args:
        config: of a model whose vectors are the mean over tokens.
        max_length: tokens of one text, special ones included.

    Raises:
        CheckpointError: transformers cannot compute this model, so nobody else can load it.
        SettingsError: the vectors are no mean over tokens, or the length is not the model's.
    """
    if config.model_type != "albert":
        raise CheckpointError(
            "transformers has no such model (litebert options change what it computes), so "
            "sentence-transformers cannot load it; use litebert embed"
        )
    if config.litebert.pooling != "mean":
        raise SettingsError(
            "litebert.pooling is 'cls', the output of the pooler, which sentence-transformers does not "
            "take; allowed is 'mean'"
        )
    if not 3 <= max_length <= config.max_position_embeddings:
        raise SettingsError(
            f"max_length is {max_length}; allowed: 3..{config.max_position_embeddings}"
        )
    steps = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(steps)
    ]
    pooling: dict[str, Any] = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in _MODES}
    pooling |= {"word_embedding_dimension": config.hidden_size, "include_prompt": True}
    contents: dict[str, Any] = {
        POOLING_FILE: pooling,
        # Lower-casing is the tokenizer's, by its own files.
        "sentence_bert_config.json": {"max_seq_length": max_length, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
        MODULES_FILE: modules,
    }
    return {name: (json.dumps(value, indent=2) + "\n").encode() for name, value in contents.items()}


def write_sentence_transformers(folder: str | Path, config: AlbertConfig, max_length: int) -> None:
    """Write these files into a saved model folder; each appears whole, `modules.json` last.

    Raises:
        CheckpointError: as `sentence_transformers_files`; no model folder; the disk refused.
        SettingsError: as `sentence_transformers_files`.
    """
    target = Path(folder)
    files = sentence_transformers_files(config, max_length)
    if not (target / "config.json").is_file():
        raise CheckpointError(
            "is no model folder (no config.json); save the model first", path=target
        )
    for name, data in files.items():
        fs.make_folder((target / name).parent)
        fs.write_atomic(target / name, data)
