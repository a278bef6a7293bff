"""A vocabulary without some of its pieces; without those that a corpus never uses its texts stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from litebert.errors import CheckpointError
from litebert.text.fast import FastPieces, wordpiece
from litebert.text.spiece import BLANK, SpmPieces
from litebert.text.spm_model import NORMAL, keep_pieces

__all__ = ["bare_pieces", "narrow_pieces", "needed_pieces", "with_pieces"]

_INNER: Final = "##"


def narrow_pieces(
    pieces: SpmPieces | FastPieces, used: Collection[int]
) -> tuple[SpmPieces | FastPieces, list[int]]:
    """Return the vocabulary with the used and the indispensable pieces, and their old ids, rising.

    Unigram: the best path of a text stays the best when others go, provided that its own pieces and
    the prices of unknown characters and of user-defined pieces stay. Those follow from the worst and
    the best score, so these two pieces are kept; and what splits pieces such as "9," is kept.
    WordPiece takes the longest match, which stays the longest. In both, single characters and bytes
    are kept.

    Raises:
        CheckpointError: a vocabulary of another kind.
    """
    needed = {*needed_pieces(pieces), *used}
    bare = bare_pieces(pieces)
    old = [index for index, text in enumerate(bare) if index in needed or len(text) <= 1]
    return with_pieces(pieces, old), old


def with_pieces(pieces: SpmPieces | FastPieces, old: Sequence[int]) -> SpmPieces | FastPieces:
    """Return the vocabulary with these pieces alone.

    Args:
        pieces: the vocabulary.
        old: ids that stay, rising, those of `needed_pieces` among them.

    Raises:
        CheckpointError: a vocabulary of another kind.
    """
    if isinstance(pieces, SpmPieces):
        return SpmPieces(keep_pieces(pieces.data, frozenset(old)), pieces.rules, pieces.special)
    if pieces.rules is None:
        raise CheckpointError(
            "only SentencePiece and WordPiece vocabularies can be cut; this folder has a "
            "tokenizer.json alone, whose pipeline is not known"
        )
    entries = pieces.vocabulary
    return wordpiece([entries[index] for index in old], pieces.rules, pieces.special)


def bare_pieces(pieces: SpmPieces | FastPieces) -> list[str]:
    """Return each piece by id without the mark of where in a word it stands."""
    if isinstance(pieces, SpmPieces):
        return [piece.removeprefix(BLANK) for piece in pieces.model.pieces]
    return [entry.removeprefix(_INNER) for entry in pieces.vocabulary]


def needed_pieces(pieces: SpmPieces | FastPieces) -> frozenset[int]:
    """Return the ids that no vocabulary cut out of this one can be without."""
    special = set(pieces.special.words)
    if isinstance(pieces, FastPieces):
        return frozenset(i for i, entry in enumerate(pieces.vocabulary) if entry in special)
    model = pieces.model
    normal = [index for index, kind in enumerate(model.kinds) if kind == NORMAL]
    ends = sorted(normal, key=lambda index: model.scores[index])
    other = (
        index
        for index, (piece, kind) in enumerate(zip(model.pieces, model.kinds, strict=True))
        if kind != NORMAL or piece in special
    )
    return frozenset((*ends[:1], *ends[-1:], *pieces.comma_closure(), *other))
