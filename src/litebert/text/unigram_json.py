"""Write a SentencePiece vocabulary as a `tokenizer.json` pipeline for other programs.

The pipeline is the nearest that `tokenizers` can express; `docs/explanation/tokenization.md`
says where and how often it differs. Pieces that the digit-comma rule takes apart get a penalty
that keeps them from being chosen. User-defined pieces are ordinary ones here: as added tokens
they would cut the text and put a blank mark after themselves.
"""

from __future__ import annotations

from typing import Final

from litebert.text.normalize import TextRules
from litebert.text.special import SpecialTokens
from litebert.text.spm_model import UNKNOWN, UNUSED, SpmModel

__all__ = ["unigram_pipeline"]

_BLANK: Final = "▁"
_PENALTY: Final = 100.0
"""Subtracted from the score of a piece that must not be chosen; no text reaches it."""


def unigram_pipeline(model: SpmModel, rules: TextRules, special: SpecialTokens) -> str:
    """Return the pipeline, without the template for special tokens, as JSON."""
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    pipeline = tokenizers.Tokenizer(
        models.Unigram(
            vocab=[
                (piece, _score(piece, score, kind))
                for piece, score, kind in zip(model.pieces, model.scores, model.kinds, strict=True)
            ],
            unk_id=model.kinds.index(UNKNOWN),
            byte_fallback=False,
        )
    )
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
    ]
    if not rules.keep_accents:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if rules.do_lower_case:
        steps.append(normalizers.Lowercase())
    if model.charsmap:
        steps.append(normalizers.Precompiled(model.charsmap))
    scheme = "always" if model.add_dummy_prefix else "never"
    pipeline.normalizer = normalizers.Sequence(steps)  # pyright: ignore[reportAttributeAccessIssue]
    pipeline.pre_tokenizer = pre_tokenizers.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=_BLANK, prepend_scheme=scheme),
        ]
    )
    pipeline.decoder = decoders.Metaspace(  # pyright: ignore[reportAttributeAccessIssue]
        replacement=_BLANK, prepend_scheme=scheme
    )
    pipeline.add_special_tokens(
        [
            tokenizers.AddedToken(word, lstrip=word == special.mask, normalized=False, special=True)
            for word in special.words
        ]
    )
    return pipeline.to_str()


def _score(piece: str, score: float, kind: int) -> float:
    is_split = len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
    return score - _PENALTY if is_split or kind == UNUSED else score
