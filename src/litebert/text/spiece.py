"""SentencePiece as ALBERT uses it: clean-up, pieces, the digit-comma rule, exact offsets.

The digit-comma rule: a piece that ends in a comma after a digit is encoded again without the
comma, which then becomes a piece of its own (`25,` -> `25` `,`).

Source: `encode_pieces` in google-research/albert `tokenization.py`.
Differs from the official code: where the piece without its comma and blank mark is not in the
vocabulary, its characters stand alone instead of becoming unknown. The published vocabulary has
no such piece.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from functools import cached_property
from typing import Any, Final, cast

from litebert.errors import CheckpointError
from litebert.text.normalize import AlignedText, TextNormalizer, TextRules
from litebert.text.special import SpecialTokens, split_special
from litebert.text.spm_model import BYTE, SpmModel, parse_spm

__all__ = ["BLANK", "SpmPieces"]

BLANK: Final = "▁"
"""Stands for a blank inside pieces (U+2581)."""

Span = tuple[int, int]


class SpmPieces:
    """Text <-> pieces of a SentencePiece model, without special tokens around them.

    Attributes:
        data: the model file's bytes.
        model: the parsed model.
        rules: the clean-up before it.
        special: words that stand for one token wherever they occur in a text.
        special_ids: the id of each of these words.

    Args of the constructor are as these; `model` is the parsed `data` where it is known already.
    """

    kind = "sentencepiece"

    def __init__(
        self,
        data: bytes,
        rules: TextRules,
        special: SpecialTokens,
        model: SpmModel | None = None,
    ) -> None:
        self.data = data
        self.rules = rules
        self.special = special
        self.model = parse_spm(data) if model is None else model
        self._ids = {piece: index for index, piece in enumerate(self.model.pieces)}
        self._normalizer = TextNormalizer(rules)
        self._processor = _load(data)
        self._unknown_id: int = self._processor.unk_id()
        self.special_ids = special.resolve(self._ids)
        self._pattern = special.pattern()
        self._comma_is_known = "," in self._ids
        self._comma_parts: dict[int, tuple[int, ...]] = {}

    def __reduce__(self) -> tuple[type[SpmPieces], tuple[bytes, TextRules, SpecialTokens]]:
        return SpmPieces, (self.data, self.rules, self.special)

    @property
    def size(self) -> int:
        """Number of vocabulary entries."""
        return len(self.model.pieces)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over the model file, the clean-up rules and the special tokens (hex)."""
        parts = f"{sorted(asdict(self.rules).items())}|{sorted(asdict(self.special).items())}|"
        return hashlib.sha256(parts.encode() + self.data).hexdigest()

    def token(self, token_id: int) -> str:
        """Return the vocabulary entry of an id in [0, size)."""
        return self.model.pieces[token_id]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        search = self._pattern.search
        special = [index for index, text in enumerate(texts) if search(text)]
        if not special:
            return self._encode_plain(texts)
        rows: list[list[int]] = [[] for _ in texts]
        plain = sorted(set(range(len(texts))).difference(special))
        for index, ids in zip(plain, self._encode_plain([texts[i] for i in plain]), strict=True):
            rows[index] = ids
        for index in special:
            rows[index] = self._encode_mixed(texts[index])
        return rows

    def _encode_mixed(self, text: str) -> list[int]:
        ids: list[int] = []
        for part, _ in split_special(self._pattern, text):
            token_id = self.special_ids.get(part)
            if token_id is None:
                ids += self._encode_plain([part])[0]
            else:
                ids.append(token_id)
        return ids

    def _encode_plain(self, texts: list[str]) -> list[list[int]]:
        normalize = self._normalizer.normalize
        clean = [normalize(text) for text in texts]
        if len(clean) == 1:  # a batch call starts a thread pool, which costs more than the text
            rows = [cast(list[int], self._processor.encode(clean[0], out_type=int))]
        else:
            rows = cast(list[list[int]], self._processor.encode(clean, out_type=int, num_threads=1))
        if not self._comma_is_known:
            # Only then can an unknown piece, whose text an id does not tell, end in a comma.
            return [
                [self._ids.get(piece, self._unknown_id) for piece in self._pieces(text)]
                if self._unknown_id in ids
                else self._split_commas(ids)
                for text, ids in zip(clean, rows, strict=True)
            ]
        commas = self._comma_ids
        return [ids if commas.isdisjoint(ids) else self._split_commas(ids) for ids in rows]

    def _split_commas(self, ids: list[int]) -> list[int]:
        commas = self._comma_ids
        result: list[int] = []
        for token_id in ids:
            if token_id in commas:
                result += self._parts_of(token_id)
            else:
                result.append(token_id)
        return result

    def _parts_of(self, token_id: int) -> tuple[int, ...]:
        parts = self._comma_parts.get(token_id)
        if parts is None:
            pieces = self._split_piece(self.model.pieces[token_id])
            parts = tuple(self._ids.get(piece, self._unknown_id) for piece in pieces)
            self._comma_parts[token_id] = parts
        return parts

    @cached_property
    def _comma_ids(self) -> frozenset[int]:
        return frozenset(i for i, piece in enumerate(self.model.pieces) if _ends_in_comma(piece))

    def comma_closure(self) -> frozenset[int]:
        """Return the pieces that splitting of pieces such as "9," goes through, these included."""
        found: set[int] = set(self._comma_ids)
        for token_id in self._comma_ids:
            inner = self.model.pieces[token_id][:-1].replace(BLANK, "")
            found.update(cast(list[int], self._processor.encode(inner, out_type=int)))
            found.update(self._parts_of(token_id))
        return frozenset(found)

    def _pieces(self, clean: str) -> list[str]:
        """Return the pieces of cleaned text; unknown ones as the text they stand for."""
        result: list[str] = []
        for piece in cast(list[str], self._processor.encode(clean, out_type=str)):
            if _ends_in_comma(piece):
                result += self._split_piece(piece)
            else:
                result.append(piece)
        return result

    def _split_piece(self, piece: str) -> list[str]:
        inner = piece[:-1].replace(BLANK, "")
        parts = cast(list[str], self._processor.encode(inner, out_type=str))
        if not piece.startswith(BLANK) and parts and parts[0].startswith(BLANK):
            bare = parts[0][1:]
            # Without its blank mark the piece may not exist; then its characters stand alone.
            first = [bare] if bare in self._ids else list(bare)
            parts = [*first, *parts[1:]]
        return [*parts, ","]

    def spans(self, text: str) -> list[Span]:
        """Return the span in `text` of each piece, in characters.

        Blanks belong to no piece. Where one character becomes several pieces (½), the first owns
        it and the others are empty.
        """
        result: list[Span] = []
        for part, start in split_special(self._pattern, text):
            if part in self.special_ids:
                result.append((start, start + len(part)))
            else:
                result += [(a + start, b + start) for a, b in self._plain_spans(part)]
        return result

    def _plain_spans(self, text: str) -> list[Span]:
        aligned = self._normalizer.align(text)
        pieces = self._pieces(aligned.text)
        spans = _match(pieces, aligned)
        if spans is not None:
            return spans
        byte_pieces = self._byte_pieces
        counts = [
            byte_pieces[piece] if piece in byte_pieces else len(piece) - piece.count(BLANK)
            for piece in pieces
        ]
        return _place(counts, self._origins(aligned))

    @cached_property
    def _byte_pieces(self) -> dict[str, int]:
        """Byte piece -> characters it stands for: 1 for the first byte of one, else 0."""
        pairs = zip(self.model.pieces, self.model.kinds, strict=True)
        pieces = [piece for piece, kind in pairs if kind == BYTE]
        return {piece: int(int(piece[3:-1], 16) & 0xC0 != 0x80) for piece in pieces}

    def _origins(self, aligned: AlignedText) -> list[Span]:
        """Return the original span of each non-blank character that SentencePiece sees."""
        normal, back = cast(
            tuple[str, list[int]], self._processor.normalize(aligned.text, with_offsets=True)
        )
        origins: list[Span] = []
        following = len(aligned.text)
        position = back[-1] if len(back) > len(normal) else following
        for index in range(len(normal) - 1, -1, -1):
            if back[index] < position:
                following, position = position, back[index]
            if normal[index] != BLANK and position < len(aligned.starts):
                end = min(max(following, position + 1), len(aligned.text))
                while end > position + 1 and aligned.text[end - 1].isspace():
                    end -= 1
                origins.append((aligned.starts[position], aligned.ends[end - 1]))
        origins.reverse()
        return origins

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids; unknown pieces show as ⁇."""
        return cast(str, self._processor.decode(ids))


def _ends_in_comma(piece: str) -> bool:
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _match(pieces: list[str], aligned: AlignedText) -> list[Span] | None:
    """Find the pieces one after the other, as they are, in the text; None if one is not there.

    They all are, nearly always: it is the quick way past SentencePiece's own normalisation.
    """
    text, starts, ends = aligned.text, aligned.starts, aligned.ends
    spans: list[Span] = []
    position, last, waiting = 0, 0, 0
    for piece in pieces:
        visible = piece.replace(BLANK, "")
        if not visible:
            waiting += 1
            continue
        while position < len(text) and text[position].isspace():
            position += 1
        if not text.startswith(visible, position):
            return None
        start = max(starts[position], last)
        position += len(visible)
        spans.extend([(start, start)] * waiting)
        last, waiting = max(ends[position - 1], start), 0
        spans.append((start, last))
    if text[position:].strip():
        return None
    spans.extend([(last, last)] * waiting)
    return spans


def _place(counts: list[int], origins: list[Span]) -> list[Span]:
    """Give each piece the origins of its non-blank characters, each original character once.

    Args:
        counts: non-blank characters of each piece.
        origins: original span of each non-blank character of the text.
    """
    spans: list[Span] = []
    position, last = 0, 0
    for count in counts:
        own = origins[position : position + count]
        position += count
        if own:
            start = max(own[0][0], last)
            last = max(own[-1][1], start)
            spans.append((start, last))
        else:
            # A lone blank mark stands just before the next piece's first character.
            here = origins[position][0] if position < len(origins) else last
            last = max(here, last)
            spans.append((last, last))
    return spans


def _load(data: bytes) -> Any:
    import sentencepiece  # not needed beside a WordPiece vocabulary

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(data)
    except (RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(f"SentencePiece refuses the model: {error}") from error
    return processor
