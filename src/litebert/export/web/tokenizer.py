"""A vocabulary as the object that `serve/page/local/tokenizer.js` reads.

Everything that depends on a version of Unicode is asked of the code that tokenizes here, one character
after the other, and written down.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from litebert.errors import ExportError
from litebert.export.web.tables import (
    assigned,
    characters,
    flat_ranges,
    grouped,
    map_table,
    mark_table,
)
from litebert.text.fast import FastPieces
from litebert.text.normalize import TextNormalizer, TextRules
from litebert.text.spiece import SpmPieces
from litebert.text.spm_model import BYTE
from litebert.text.words import character_kind

if TYPE_CHECKING:
    import tokenizers

__all__ = ["tokenizer_data"]

FORMAT_VERSION: Final = 1
_BETWEEN: Final = "0"
"""Stands between characters that are normalised together: it changes nothing, and nothing becomes it."""
_MANY: Final = 1 << 14
_LAST_BLOCK: Final = 0x1B200
"""Behind it lies no character whose kind comes from its block alone, other than the usual one."""
_STEPS: Final = ("version", "normalizer", "pre_tokenizer")
_UNKNOWN: Final = "\U000e0fff"
"""A character that is in no vocabulary."""


def tokenizer_data(pieces: SpmPieces | FastPieces, *, has_words: bool) -> dict[str, Any]:
    """Return everything that decides ids and places of the pieces of a text.

    Args:
        pieces: the vocabulary.
        has_words: also tell what kind each character is, for tasks that tag words.

    Raises:
        ExportError: a `tokenizer.json` whose steps are not those of BERT.
    """
    special = pieces.special
    data: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "fingerprint": pieces.fingerprint,
        "special": {name: getattr(special, name) for name in ("pad", "unk", "cls", "sep", "mask")},
        "special_ids": {word: pieces.special_ids[word] for word in special.words},
        "words": _word_kinds() if has_words else None,
    }
    own = _sentencepiece(pieces) if isinstance(pieces, SpmPieces) else _wordpiece(pieces)
    return data | own


def _sentencepiece(pieces: SpmPieces) -> dict[str, Any]:
    model, rules = pieces.model, pieces.rules
    return {
        "kind": "sentencepiece",
        "pieces": list(model.pieces),
        "scores": _base64(struct.pack(f"<{len(model.scores)}f", *model.scores)),
        "kinds": "".join(map(str, model.kinds)),
        "charsmap": _base64(model.charsmap),
        "add_dummy_prefix": model.add_dummy_prefix,
        "remove_extra_whitespaces": model.remove_extra_whitespaces,
        "byte_fallback": any(model.kinds[i] == BYTE for i in pieces.encode(_UNKNOWN)),
        "remove_space": rules.remove_space,
        "characters": _cleaned(rules),
        "digits": flat_ranges(code for code in characters() if chr(code).isdigit()),
    }


@cache
def _word_kinds() -> dict[str, Any]:
    """What kind each character is: those in use, and the rest of the blocks that have a kind."""
    codes = sorted({*range(_LAST_BLOCK), *assigned()} - set(range(0xD800, 0xE000)))
    return mark_table(((code, character_kind(code)) for code in codes), "s")


@cache
def _cleaned(rules: TextRules) -> dict[str, Any]:
    """What each character becomes before SentencePiece sees it."""
    normalize = TextNormalizer(rules).normalize
    # White space that becomes a blank does so before.
    codes = (c for c in assigned() if not (rules.remove_space and chr(c).isspace()))
    return map_table((code, normalize(chr(code))) for code in codes)


def _wordpiece(pieces: FastPieces) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(pieces.pipeline_json)
    model: dict[str, Any] = values["model"]
    _require_bert(values, pieces.special.words)
    table, marks = _bert_tables(json.dumps({name: values[name] for name in _STEPS}))
    return {
        "kind": "wordpiece",
        "pieces": pieces.vocabulary,
        "prefix": model["continuing_subword_prefix"],
        "longest_word": model["max_input_chars_per_word"],
        "characters": table,
        "marks": marks,
    }


@cache
def _bert_tables(steps: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What each character becomes, and what splits words, by the steps of a pipeline."""
    import tokenizers

    empty = {"type": "WordPiece", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]",
             "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}  # fmt: skip
    pipeline = tokenizers.Tokenizer.from_str(json.dumps(json.loads(steps) | {"model": empty}))
    table = map_table(_normalised(pipeline))
    return table, mark_table(_marks(pipeline), "w")


def _require_bert(values: Mapping[str, Any], words: tuple[str, ...]) -> None:
    """Refuse steps that the page does not know.

    Raises:
        ExportError: there are some.
    """
    kinds = {
        name: (values.get(name) or {}).get("type")
        for name in ("model", "normalizer", "pre_tokenizer")
    }
    known = {
        "model": "WordPiece",
        "normalizer": "BertNormalizer",
        "pre_tokenizer": "BertPreTokenizer",
    }
    if kinds != known:
        raise ExportError(
            f"tokenizer.json has the steps {', '.join(f'{k} {v}' for k, v in kinds.items())}, the page "
            f"knows {', '.join(known.values())}; put spiece.model or vocab.txt into the model folder, "
            "and export it again"
        )
    for token in values.get("added_tokens") or ():
        flags = [name for name in ("lstrip", "rstrip", "single_word", "normalized") if token[name]]
        if token["content"] not in words or flags:
            raise ExportError(
                f"tokenizer.json adds the token {token['content']!r:.60} {' '.join(flags)}, the page "
                f"knows {' '.join(words)} as they are; put vocab.txt into the model folder, and export "
                "it again"
            )


def _normalised(pipeline: tokenizers.Tokenizer) -> Iterator[tuple[int, str]]:
    """What the normaliser makes of characters; parts in which none changes are left out."""
    normalize: Any = pipeline.normalizer
    for codes in grouped(list(characters()), _MANY):
        text = _BETWEEN.join(map(chr, codes))
        cleaned = normalize.normalize_str(text)
        if cleaned == text:  # as most characters that nobody has defined yet
            continue
        parts = cleaned.split(_BETWEEN)
        if len(parts) != len(codes) + (ord(_BETWEEN) in codes):
            parts = [normalize.normalize_str(chr(code)) for code in codes]
        elif ord(_BETWEEN) in codes:
            place = codes.index(ord(_BETWEEN))
            parts[place : place + 2] = [_BETWEEN]
        yield from zip(codes, parts, strict=True)


def _marks(pipeline: tokenizers.Tokenizer) -> Iterator[tuple[int, str]]:
    """What splits words: white space (" "), and what is a word of its own ("p")."""
    split: Any = pipeline.pre_tokenizer
    for part in grouped(list(characters()), _MANY):
        text = _BETWEEN + _BETWEEN.join(map(chr, part)) + _BETWEEN
        words = split.pre_tokenize_str(text)
        if len(words) == 1:
            continue
        kept = bytearray(len(text))
        alone = bytearray(len(text))
        for _, (start, stop) in words:
            kept[start:stop] = b"\1" * (stop - start)
            alone[start] = stop - start == 1
        for number, code in enumerate(part):
            place = 2 * number + 1
            if not kept[place]:
                yield code, " "
            elif alone[place]:
                yield code, "p"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
