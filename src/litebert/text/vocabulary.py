"""Learn a SentencePiece vocabulary from texts, with the flags of the published English one.

The same texts in the same order give the same bytes. A text is cleaned before training exactly
as it is before encoding, and long texts are cut, never skipped.

Source: the `spm_train` call of google-research/albert (README and issue 149).
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, cast

from litebert.errors import DataError, SettingsError
from litebert.text.normalize import TextNormalizer, TextRules
from litebert.text.special import SpecialTokens
from litebert.text.spiece import SpmPieces
from litebert.text.tokenizer import Tokenizer

__all__ = ["train_vocabulary"]

USER_SYMBOLS: Final = ("(", ")", '"', "-", ".", "–", "£", "€")
"""Always pieces of their own, as in the published vocabulary."""

SPECIAL_PIECES: Final = 5
_SENTENCE_CHARACTERS: Final = 1000
_QUIET: Final = 3
_THREADS: Final = 2
"""Fixed, because sums over another number of threads round differently and change the bytes."""

_RESERVED: Final = str.maketrans({"\0": " ", "\t": " ", "▁": " ", "▅": " "})
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？।؟\n])\s*")

_SIGN: Final = re.compile(
    "[\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0980-\u0dff"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b6-\u17d3]"
)
"""Arabic vowel marks, Devanagari signs, the other Indic scripts whole, Thai, Lao, Burmese, Khmer."""

_COMMON_FRACTION: Final = 0.02

_log = logging.getLogger(__name__)


def train_vocabulary(
    texts: Iterable[str],
    size: int,
    folder: str | Path,
    *,
    lower_case: bool = True,
    keep_accents: bool = False,
    character_coverage: float = 0.99995,
    max_texts: int = 10_000_000,
    seed: int = 12345,
    on_warning: Callable[[str], None] | None = None,
) -> Tokenizer:
    """Learn a unigram vocabulary, write its tokenizer files, and return the tokenizer.

    When the texts are too few for `size` pieces the vocabulary gets as many as they support, and
    the log says so; compare `vocab_size` of the result.

    Args:
        texts: the corpus; each text may hold many sentences.
        size: pieces wanted, with the 5 special and 8 fixed ones.
        folder: where the tokenizer files go (made if absent).
        lower_case: lower-case the corpus, and later every text.
        keep_accents: keep combining marks. Say True for scripts whose vowels are such marks
            (Hindi, Thai, Arabic) and where accents tell words apart.
        character_coverage: fraction of characters, in (0, 1], that must not be unknown. 0.9995
            suits Chinese and Japanese, whose rarest characters would crowd out everything else.
        max_texts: sentences that are sampled at most.
        seed: of that sampling.
        on_warning: told when marks that carry meaning were dropped; None logs it.

    Raises:
        DataError: no text at all, or one that is not a string.
        SettingsError: a size that cannot even hold the characters, or a coverage out of range.
    """
    if not 0.0 < character_coverage <= 1.0:
        raise SettingsError(f"character_coverage {character_coverage} must be in (0, 1]")
    fixed = SPECIAL_PIECES + len(USER_SYMBOLS)
    if size <= fixed:
        raise SettingsError(
            f"a vocabulary of {size} has no room beside {fixed} fixed pieces; use some thousands"
        )
    rules = TextRules(do_lower_case=lower_case, keep_accents=keep_accents)
    vowels = _VowelSigns() if not keep_accents else None
    sentences = _sentences(texts, TextNormalizer(rules), vowels)
    data = _train(sentences, size, character_coverage, max_texts, seed)
    if vowels is not None and vowels.are_common:
        (on_warning or _log.warning)(
            f"{vowels.fraction:.0%} of the corpus are vowel signs and other marks that carry "
            "meaning, and dropping accents takes some of them away; use keep_accents=True for such "
            "scripts"
        )
    tokenizer = Tokenizer(SpmPieces(data, rules, SpecialTokens()))
    if tokenizer.vocab_size < size:
        _log.info(
            "the vocabulary has %d pieces instead of %d: the texts hold no more that are worth a "
            "piece; use more text, or set the size to %d",
            tokenizer.vocab_size,
            size,
            tokenizer.vocab_size,
        )
    tokenizer.save_pretrained(folder)
    return tokenizer


def _train(
    sentences: Iterator[str], size: int, character_coverage: float, max_texts: int, seed: int
) -> bytes:
    import sentencepiece

    first = next(sentences, None)
    if first is None:
        raise DataError("the corpus holds no text; give at least some hundred sentences")
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(seed)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_chain(first, sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            character_coverage=character_coverage,
            input_sentence_size=max_texts,
            shuffle_input_sentence=True,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece="<pad>",
            unk_piece="<unk>",
            control_symbols=["[CLS]", "[SEP]", "[MASK]"],
            user_defined_symbols=list(USER_SYMBOLS),
            hard_vocab_limit=False,
            num_threads=_THREADS,
            minloglevel=_QUIET,
        )
    except (RuntimeError, ValueError) as error:
        raise _explain(error, size) from error
    return model.getvalue()


def _chain(first: str, others: Iterator[str]) -> Iterator[str]:
    yield first
    yield from others


class _VowelSigns:
    """Counts marks that are not accents on Latin, Greek or Cyrillic letters."""

    def __init__(self) -> None:
        self.signs = 0
        self.characters = 0

    def count(self, text: str) -> None:
        if not text.isascii():
            self.signs += len(_SIGN.findall(text))
        self.characters += len(text)

    @property
    def fraction(self) -> float:
        return self.signs / max(self.characters, 1)

    @property
    def are_common(self) -> bool:
        return self.fraction > _COMMON_FRACTION


def _sentences(
    texts: Iterable[str], normalizer: TextNormalizer, vowels: _VowelSigns | None
) -> Iterator[str]:
    """Yield cleaned stretches of at most `_SENTENCE_CHARACTERS` characters, nothing left out."""
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(
                f"a text must be a string, got {type(text).__name__} ({text!r:.60})", line=number
            )
        if vowels is not None:
            vowels.count(text)
        for sentence in _SENTENCE_END.split(text) if len(text) > _SENTENCE_CHARACTERS else (text,):
            clean = normalizer.normalize(sentence).translate(_RESERVED).strip()
            while len(clean) > _SENTENCE_CHARACTERS:
                cut = clean.rfind(" ", 1, _SENTENCE_CHARACTERS)
                cut = cut if cut > 0 else _SENTENCE_CHARACTERS
                yield clean[:cut]
                clean = clean[cut:].lstrip()
            if clean:
                yield clean


def _explain(error: Exception, size: int) -> SettingsError | DataError:
    text = str(error)
    needed = re.search(r"smaller than required_chars\D*(\d+)\D+(\d+)", text)
    if needed:
        least = max(int(number) for number in cast(tuple[str, ...], needed.groups()))
        return SettingsError(
            f"a vocabulary of {size} cannot hold the characters of the corpus; use at least "
            f"{least + 1}, or a lower coverage of characters (0.9995 for Chinese and Japanese)"
        )
    return DataError(f"SentencePiece cannot learn from these texts: {text[-300:]}")
