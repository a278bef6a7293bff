"""Find and read the vocabulary of a model folder, trusting nothing in it.

`spiece.model` wins over `vocab.txt`, which wins over `tokenizer.json`: the first two are the
source that the last was made from. `tokenizer_class` in `tokenizer_config.json` decides where a
folder holds both.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from litebert.errors import CheckpointError
from litebert.files import check_file, read_bytes, read_json
from litebert.text.fast import (
    FastPieces,
    WordPieceRules,
    check_pipeline,
    parse_vocabulary,
    wordpiece,
)
from litebert.text.normalize import TextRules
from litebert.text.special import SpecialTokens
from litebert.text.spiece import SpmPieces
from litebert.text.spm_model import parse_spm

__all__ = ["MAX_CONFIG_BYTES", "MAX_VOCABULARY_BYTES", "read_pieces"]

MAX_VOCABULARY_BYTES: Final = 40_000_000
"""Largest vocabulary file that is read; real ones are below 20 MB."""

MAX_CONFIG_BYTES: Final = 4_000_000
"""Largest `tokenizer_config.json` that is read."""

_BERT_WORDS: Final = SpecialTokens(pad="[PAD]", unk="[UNK]")
_ALBERT_WORDS: Final = SpecialTokens()
_SPECIAL_KEYS: Final = ("pad", "unk", "cls", "sep", "mask")


def read_pieces(path: Path) -> SpmPieces | FastPieces:
    """Read the vocabulary of a folder, or of one file (its settings then lie beside it).

    Raises:
        CheckpointError: nothing usable there, a file is damaged, too large, not a plain file, or
            a link that leads out of the folder.
    """
    if not path.exists():
        missing = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        raise CheckpointError(
            "no such folder; give the path of a model folder", path=path
        ) from missing
    folder = path if path.is_dir() else path.parent
    config = _read_config(folder)
    found = _find(path, folder, str(config.get("tokenizer_class") or ""))
    try:
        if found.suffix == ".model":
            return _read_spm(found, config)
        if found.suffix == ".txt":
            return _read_wordpiece(found, config)
        return _read_json_pipeline(found, config)
    except CheckpointError as error:
        if error.path is not None:
            raise
        raise CheckpointError(str(error), path=found) from error


def _find(path: Path, folder: Path, tokenizer_class: str) -> Path:
    if path != folder:
        if path.suffix not in (".model", ".txt", ".json"):
            raise CheckpointError(
                "a vocabulary file must end in .model, .txt or .json; give one of these or a folder",
                path=path,
            )
        return path
    spm = _named_or_only(folder, "spiece.model", "*.model")
    vocabulary = _named_or_only(folder, "vocab.txt", "vocab*.txt")
    if spm and vocabulary:
        return vocabulary if "bert" in tokenizer_class.lower().replace("albert", "") else spm
    found = spm or vocabulary or _existing(folder / "tokenizer.json")
    if found is None:
        raise CheckpointError(
            "no vocabulary here; expected spiece.model (SentencePiece), vocab.txt (WordPiece) or "
            "tokenizer.json; copy it from where the weights came from",
            path=folder,
        )
    return found


def _named_or_only(folder: Path, name: str, pattern: str) -> Path | None:
    """The file of that name, else the only one of that pattern (`30k-clean.model`)."""
    named = _existing(folder / name)
    if named is not None:
        return named
    others = sorted(folder.glob(pattern))
    return _existing(others[0]) if len(others) == 1 else None


def _existing(path: Path) -> Path | None:
    return None if check_file(path) is None else path


def _read_text(path: Path, limit: int) -> str:
    try:
        return read_bytes(path, max_bytes=limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"is not UTF-8 text: {error}", path=path) from error


def _read_config(folder: Path) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        path = _existing(folder / name)
        if path is not None:
            merged |= read_json(path, max_bytes=MAX_CONFIG_BYTES)
    return merged


def _read_spm(path: Path, config: Mapping[str, Any]) -> SpmPieces:
    data = read_bytes(path, max_bytes=MAX_VOCABULARY_BYTES)
    model = parse_spm(data, path)
    if not model.is_unigram:
        raise CheckpointError(
            f"is a SentencePiece model of type {model.model_type}; only unigram is supported, "
            "as ALBERT uses it",
            path=path,
        )
    rules = TextRules(
        do_lower_case=_flag(config, "do_lower_case", True),
        keep_accents=_flag(config, "keep_accents", False),
        remove_space=_flag(config, "remove_space", True),
    )
    return SpmPieces(data, rules, _special(config, _ALBERT_WORDS), model)


def _read_wordpiece(path: Path, config: Mapping[str, Any]) -> FastPieces:
    entries = parse_vocabulary(_read_text(path, MAX_VOCABULARY_BYTES), path)
    strip = config.get("strip_accents")
    rules = WordPieceRules(
        do_lower_case=_flag(config, "do_lower_case", True),
        strip_accents=None if strip is None else _flag(config, "strip_accents", True),
        tokenize_chinese_chars=_flag(config, "tokenize_chinese_chars", True),
    )
    return wordpiece(entries, rules, _special(config, _BERT_WORDS))


def _read_json_pipeline(path: Path, config: Mapping[str, Any]) -> FastPieces:
    pipeline = read_json(path, max_bytes=MAX_VOCABULARY_BYTES)
    check_pipeline(pipeline, path)
    added = cast(object, pipeline.get("added_tokens"))
    entries = cast(list[object], added) if isinstance(added, list) else []
    contents = {
        cast(dict[str, object], entry).get("content")
        for entry in entries
        if isinstance(entry, dict)
    }
    words = _BERT_WORDS if _BERT_WORDS.pad in contents else _ALBERT_WORDS
    return FastPieces(json.dumps(pipeline), _special(config, words), None)


def _flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    value = config.get(name, default)
    if not isinstance(value, bool):
        raise CheckpointError(
            f"{name} in tokenizer_config.json is {value!r:.80}; it must be true or false"
        )
    return value


def _special(config: Mapping[str, Any], default: SpecialTokens) -> SpecialTokens:
    words: dict[str, str] = {}
    for name in _SPECIAL_KEYS:
        value = config.get(f"{name}_token")
        if isinstance(value, Mapping):
            value = cast(Mapping[str, object], value).get("content")
        if value is None:
            value = getattr(default, name)
        if not isinstance(value, str) or not value:
            raise CheckpointError(
                f"{name}_token in tokenizer_config.json is {value!r:.80}; it must be a word"
            )
        words[name] = value
    return SpecialTokens(**words)
