"""WordPiece vocabularies and folders that hold only a `tokenizer.json`, through `tokenizers`.

WordPiece follows the BERT rules: clean control characters, put blanks around Chinese characters,
lower-case and strip accents as declared, split at punctuation, then the longest match; a word of
more than 100 characters is unknown.

Source: google-research/bert `tokenization.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litebert.errors import CheckpointError
from litebert.text.special import SpecialTokens

if TYPE_CHECKING:
    import tokenizers

__all__ = ["FastPieces", "WordPieceRules", "parse_vocabulary", "wordpiece"]

Span = tuple[int, int]

MAX_WORD_CHARACTERS: Final = 100
_PROBE: Final = "Probe, 25 ﬁ½ é e\u0301 ① ㌔ 日本 한 हि \x01\u200b😀"
_MODELS: Final = ("Unigram", "WordPiece")


@dataclass(frozen=True, slots=True)
class WordPieceRules:
    """BERT's text clean-up, named as in `tokenizer_config.json`.

    Attributes:
        do_lower_case: lower-case everything.
        strip_accents: drop combining marks; None means "when lower-casing".
        tokenize_chinese_chars: each Chinese character is a word.
    """

    do_lower_case: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True


class FastPieces:
    """Text <-> pieces of a `tokenizers` pipeline, without special tokens around them.

    Attributes:
        special: words that stand for one token wherever they occur in a text.
        special_ids: the id of each of these words.
        rules: WordPiece clean-up, or None when the pipeline came from a `tokenizer.json`.
        pipeline_json: the pipeline as canonical JSON.
        kind: "wordpiece", or "json" for a pipeline from a file.
    """

    def __init__(
        self, pipeline_json: str, special: SpecialTokens, rules: WordPieceRules | None
    ) -> None:
        import tokenizers  # large, and not needed beside a SentencePiece model

        self.special = special
        self.rules = rules
        self.kind = "json" if rules is None else "wordpiece"
        with _guarded():
            self._pipeline = tokenizers.Tokenizer.from_str(pipeline_json)
            # Some damage shows only when text meets the tables or the unknown piece.
            self._pipeline.encode(_PROBE, add_special_tokens=False)
        self._pipeline.no_padding()
        self._pipeline.no_truncation()
        vocabulary = self._pipeline.get_vocab(with_added_tokens=True)
        self.special_ids = special.resolve(vocabulary)
        self._pipeline.add_special_tokens(list(special.words))
        self._tokens = {index: token for token, index in vocabulary.items()}
        self.pipeline_json = pipeline_json
        self._size = max(self._tokens) + 1

    def __reduce__(
        self,
    ) -> tuple[type[FastPieces], tuple[str, SpecialTokens, WordPieceRules | None]]:
        return FastPieces, (self.pipeline_json, self.special, self.rules)

    @property
    def size(self) -> int:
        """Number of vocabulary entries (highest id + 1)."""
        return self._size

    @property
    def vocabulary(self) -> list[str]:
        """Entries by id; an id without an entry shows as [unused]."""
        return [self._tokens.get(index, f"[unused-{index}]") for index in range(self._size)]

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over the pipeline and the special tokens (hex)."""
        parts = json.dumps([json.loads(self.pipeline_json), asdict(self.special)], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()

    def token(self, token_id: int) -> str:
        """Return the vocabulary entry of an id in [0, size)."""
        return self._tokens[token_id]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return self._run(text).ids

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        clean = [_without_surrogates(text) for text in texts]
        with _guarded():
            rows = self._pipeline.encode_batch_fast(clean, add_special_tokens=False)
        return [row.ids for row in rows]

    def spans(self, text: str) -> list[Span]:
        """Return the span in `text` of each piece, in characters, each character at most once."""
        spans: list[Span] = []
        last = 0
        for start, end in self._run(text).offsets:
            while start < end and text[start].isspace():
                start += 1
            start = max(start, last)
            last = max(end, start)
            spans.append((start, last))
        return spans

    def _run(self, text: str) -> tokenizers.Encoding:
        with _guarded():
            return self._pipeline.encode(_without_surrogates(text), add_special_tokens=False)

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids, special tokens left out."""
        return self._pipeline.decode(ids, skip_special_tokens=True)


def parse_vocabulary(text: str, path: Path | None = None) -> list[str]:
    """Return the entries of a `vocab.txt`, one a line; the line number is the id.

    Raises:
        CheckpointError: empty, or an entry occurs twice.
    """
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    entries = [line.rstrip("\r") for line in lines]
    if len(entries) < 5:
        raise CheckpointError(
            f"a vocabulary needs one entry a line, at least the 5 special tokens; found "
            f"{len(entries)}",
            path=path,
        )
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries, start=1):
        if entry in seen:
            raise CheckpointError(
                f"entry {entry!r} of line {number} stands on line {seen[entry]} already; "
                "every entry must occur once",
                path=path,
            )
        seen[entry] = number
    return entries


def wordpiece(entries: list[str], rules: WordPieceRules, special: SpecialTokens) -> FastPieces:
    """Build the BERT pipeline over a vocabulary.

    Raises:
        CheckpointError: a special token is not in the vocabulary.
    """
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    vocabulary = {entry: index for index, entry in enumerate(entries)}
    special.resolve(vocabulary)
    pipeline = tokenizers.Tokenizer(
        models.WordPiece(
            vocab=vocabulary, unk_token=special.unk, max_input_chars_per_word=MAX_WORD_CHARACTERS
        )
    )
    pipeline.normalizer = normalizers.BertNormalizer(  # pyright: ignore[reportAttributeAccessIssue]
        clean_text=True,
        handle_chinese_chars=rules.tokenize_chinese_chars,
        strip_accents=rules.strip_accents,
        lowercase=rules.do_lower_case,
    )
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # pyright: ignore[reportAttributeAccessIssue]
    pipeline.decoder = decoders.WordPiece()  # pyright: ignore[reportAttributeAccessIssue]
    return FastPieces(pipeline.to_str(), special, rules)


def check_pipeline(pipeline: Mapping[str, Any], path: Path | None = None) -> None:
    """Refuse a `tokenizer.json` of a kind that no ALBERT uses.

    Raises:
        CheckpointError: no model, or one that is neither Unigram nor WordPiece.
    """
    model = pipeline.get("model")
    kind = model.get("type") if isinstance(model, Mapping) else None
    if kind not in _MODELS:
        raise CheckpointError(
            f"the model in tokenizer.json is {kind!r}; known are {' and '.join(_MODELS)}",
            path=path,
        )


@contextmanager
def _guarded() -> Generator[None, None, None]:
    """Turn whatever native code throws at a damaged pipeline into a `CheckpointError`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a Rust panic is not an Exception
        raise CheckpointError(
            f"tokenizer.json cannot be used ({str(error)[:200]}); copy it again from its source, "
            "or provide spiece.model or vocab.txt instead"
        ) from error


def _without_surrogates(text: str) -> str:
    """Return text of equal length that native code accepts."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("�" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text
