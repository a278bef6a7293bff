"""A vocabulary without the pieces that a corpus never uses; its texts are cut up exactly as before."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from litebert.errors import CheckpointError
from litebert.text.fast import FastPieces, wordpiece
from litebert.text.spiece import BLANK, SpmPieces
from litebert.text.spm_model import NORMAL, keep_pieces

__all__ = ["narrow_pieces"]

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
    if isinstance(pieces, SpmPieces):
        return _narrow_spm(pieces, used)
    if pieces.rules is None:
        raise CheckpointError(
            "only SentencePiece and WordPiece vocabularies are cut to a corpus; this folder has a "
            "tokenizer.json alone, whose pipeline is not known"
        )
    special = set(pieces.special.words)
    entries = pieces.vocabulary
    old = [
        index
        for index, entry in enumerate(entries)
        if index in used or entry in special or len(entry.removeprefix(_INNER)) == 1
    ]
    return wordpiece([entries[index] for index in old], pieces.rules, pieces.special), old


def _narrow_spm(pieces: SpmPieces, used: Collection[int]) -> tuple[SpmPieces, list[int]]:
    model = pieces.model
    normal = [index for index, kind in enumerate(model.kinds) if kind == NORMAL]
    ends = sorted(normal, key=lambda index: model.scores[index])
    special = set(pieces.special.words)
    needed = {*ends[:1], *ends[-1:], *pieces.comma_closure(), *used}
    old = [
        index
        for index, (piece, kind) in enumerate(zip(model.pieces, model.kinds, strict=True))
        if index in needed
        or kind != NORMAL
        or piece in special
        or len(piece.removeprefix(BLANK)) <= 1
    ]
    data = keep_pieces(pieces.data, frozenset(old))
    return SpmPieces(data, pieces.rules, pieces.special), old
