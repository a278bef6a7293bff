"""The tokenizer files of a model folder, as transformers 4 and 5 and other programs read them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final

from litebert.errors import CheckpointError
from litebert.text.fast import FastPieces
from litebert.text.special import SpecialTokens
from litebert.text.spiece import SpmPieces
from litebert.text.unigram_json import unigram_pipeline

if TYPE_CHECKING:
    import tokenizers

__all__ = ["tokenizer_files", "write_files"]

INPUT_NAMES: Final = ["input_ids", "token_type_ids", "attention_mask"]
"""transformers 5 forgets the segment ids of pairs unless the folder names them."""


def tokenizer_files(pieces: SpmPieces | FastPieces, max_length: int) -> dict[str, bytes]:
    """Return file name -> contents.

    Args:
        pieces: the vocabulary.
        max_length: tokens that the model can take, written as `model_max_length`.
    """
    special = pieces.special
    config: dict[str, Any] = {
        "model_input_names": INPUT_NAMES,
        "model_max_length": max_length,
        **_special_map(special),
    }
    files: dict[str, bytes] = {}
    if isinstance(pieces, SpmPieces):
        rules = pieces.rules
        pipeline = unigram_pipeline(pieces.model, rules, special)
        files["spiece.model"] = pieces.data
        config |= {
            "tokenizer_class": "AlbertTokenizer",
            "do_lower_case": rules.do_lower_case,
            "keep_accents": rules.keep_accents,
            "remove_space": rules.remove_space,
            "bos_token": special.cls,
            "eos_token": special.sep,
        }
    elif pieces.rules is not None:
        pipeline = pieces.pipeline_json
        files["vocab.txt"] = "".join(f"{entry}\n" for entry in pieces.vocabulary).encode()
        config |= {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": pieces.rules.do_lower_case,
            "strip_accents": pieces.rules.strip_accents,
            "tokenize_chinese_chars": pieces.rules.tokenize_chinese_chars,
        }
    else:
        pipeline = pieces.pipeline_json
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    config["added_tokens_decoder"] = _added_tokens(pieces)
    files["tokenizer.json"] = _with_template(pipeline, pieces).encode()
    files["tokenizer_config.json"] = _dump(config)
    files["special_tokens_map.json"] = _dump(_special_map(special))
    return files


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Write files so that a reader sees the old or the new one, never half of it.

    Raises:
        CheckpointError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            _write_atomic(folder / name, data)
    except OSError as error:
        raise CheckpointError(f"cannot write the tokenizer: {error}", path=folder) from error


def _write_atomic(path: Path, data: bytes) -> None:
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _with_template(pipeline_json: str, pieces: SpmPieces | FastPieces) -> str:
    import tokenizers
    from tokenizers.processors import TemplateProcessing

    special = pieces.special
    pipeline = tokenizers.Tokenizer.from_str(pipeline_json)
    pipeline.post_processor = TemplateProcessing(  # pyright: ignore[reportAttributeAccessIssue]
        single=f"{special.cls}:0 $A:0 {special.sep}:0",
        pair=f"{special.cls}:0 $A:0 {special.sep}:0 $B:1 {special.sep}:1",
        special_tokens=[(word, pieces.special_ids[word]) for word in (special.cls, special.sep)],
    )
    pipeline.add_special_tokens(_added(special))
    return pipeline.to_str(pretty=False)


def _added(special: SpecialTokens) -> list[tokenizers.AddedToken | str]:
    import tokenizers

    return [
        tokenizers.AddedToken(word, lstrip=word == special.mask, normalized=False, special=True)
        for word in special.words
    ]


def _added_tokens(pieces: SpmPieces | FastPieces) -> dict[str, dict[str, Any]]:
    special = pieces.special
    entries = {
        pieces.special_ids[word]: {
            "content": word,
            "lstrip": word == special.mask and isinstance(pieces, SpmPieces),
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for word in special.words
    }
    return {str(token_id): entries[token_id] for token_id in sorted(entries)}


def _special_map(special: SpecialTokens) -> dict[str, str]:
    names = ("pad", "unk", "cls", "sep", "mask")
    return {f"{name}_token": getattr(special, name) for name in names}


def _dump(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()
