"""Operations on pieces: words for masks, the pieces of a text, and the text of ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from litebert.errors import DataError
from litebert.serve.engine.jobs import Plan, write_json
from litebert.serve.engine.operations.inputs import encode, listed, task_name

if TYPE_CHECKING:
    from litebert.runtime.session import Session
    from litebert.serve.engine.jobs import Outputs
    from litebert.text.encoding import Encoding

__all__ = ["decode", "fill_mask", "tokenize"]


def fill_mask(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan words for each mask of a text; several masks have a list each.

    Raises:
        DataError: the model predicts no words, or there is no mask.
    """
    text: str = args["text"]
    if session.head not in ("mlm", "pretraining"):
        raise DataError(
            f"this route needs a model that predicts words; this one was trained for "
            f"{task_name(session)}: export a pretrained folder"
        )
    mask = session.tokenizer.token(session.tokenizer.mask_id)
    if mask not in text:
        raise DataError(f"there is no {mask} in the text")
    examples = encode(session, [text], truncate=True)
    if session.tokenizer.mask_id not in examples[0].ids:
        raise DataError(f"the {mask} stands too far behind the start of the text")

    def finish(outputs: Outputs) -> bytes:
        del outputs  # words are predicted here: the step only set the depth
        found = session.fill_mask(text, top=args["top_k"])
        rows = [
            [
                {
                    "score": word.probability,
                    "token": word.token,
                    "token_str": word.piece.replace("▁", " ").strip(),
                    "sequence": _filled(text, mask, number, word.piece),
                }
                for word in words
            ]
            for number, words in enumerate(found)
        ]
        return write_json(rows[0] if len(rows) == 1 else rows)

    return Plan("words", examples, finish)


def tokenize(session: Session, args: Mapping[str, Any]) -> Plan:
    """Answer with the pieces of each text, and where they stand in it."""
    texts, _ = listed(args["inputs"], is_pair=False)
    found = [
        _pieces(encoding, is_whole=args["add_special_tokens"])
        for encoding in session.tokenizer.encode_batch(texts)
    ]
    return Plan("head", [], lambda _: write_json(found))


def decode(session: Session, args: Mapping[str, Any]) -> Plan:
    """Answer with the text of ids.

    Raises:
        DataError: an id that the vocabulary does not have.
    """
    tokenizer = session.tokenizer
    texts: list[str] = []
    for ids in args["ids"]:
        text = tokenizer.decode(ids)
        texts.append(text if args["skip_special_tokens"] else " ".join(map(tokenizer.token, ids)))
    return Plan("head", [], lambda _: write_json(texts))


def _pieces(encoding: Encoding, *, is_whole: bool) -> list[dict[str, Any]]:
    rows = zip(encoding.ids, encoding.tokens, encoding.offsets, encoding.special_mask, strict=True)
    return [
        {
            "id": number,
            "text": piece,
            "special": bool(special),
            "start": None if special else start,
            "stop": None if special else stop,
        }
        for number, piece, (start, stop), special in rows
        if is_whole or not special
    ]


def _filled(text: str, mask: str, number: int, piece: str) -> str:
    """The text with one of its masks replaced."""
    parts = text.split(mask)
    word = piece.replace("▁", " ").strip()
    left, right = mask.join(parts[: number + 1]), mask.join(parts[number + 1 :])
    return left + word + right
