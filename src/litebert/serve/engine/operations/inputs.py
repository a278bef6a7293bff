"""Texts of a request: which of them are pairs, and how they become sequences that are not too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from litebert.data.batch import EncodedExample
from litebert.errors import DataError

if TYPE_CHECKING:
    from litebert.runtime.session import Session
    from litebert.runtime.text_model import Text
    from litebert.text.encoding import Encoding
    from litebert.text.pairs import Keep

__all__ = ["encode", "listed", "refuse_cut", "sequence_example", "task_name"]


def listed(
    inputs: str | Sequence[str | Sequence[str]], *, is_pair: bool
) -> tuple[list[Text], bool]:
    """Return the texts of a request, and whether it was a single one.

    Two plain strings are one pair where the model takes pairs, else two texts.
    """
    if isinstance(inputs, str):
        return [inputs], True
    if is_pair and len(inputs) == 2 and all(isinstance(item, str) for item in inputs):
        return [(cast("str", inputs[0]), cast("str", inputs[1]))], True
    return [_text(item) for item in inputs], False


def _text(item: str | Sequence[str]) -> Text:
    if isinstance(item, str):
        return item
    return item[0] if len(item) == 1 else (item[0], item[1])


def encode(
    session: Session, texts: Sequence[Text], *, truncate: bool, keep: Keep = "head"
) -> list[EncodedExample]:
    """Return one sequence for each text.

    Raises:
        DataError: a text is too long and must not be cut.
    """
    length = session.max_positions
    encodings = session.tokenizer.encode_batch(texts, max_length=length, keep=keep)
    if not truncate:
        refuse_cut(encodings, length)
    return [sequence_example(encoding, index) for index, encoding in enumerate(encodings)]


def refuse_cut(encodings: Sequence[Encoding], length: int) -> None:
    """Refuse texts that were cut.

    Raises:
        DataError: naming the first of them.
    """
    for number, encoding in enumerate(encodings):
        if encoding.truncated:
            raise DataError(
                f"input {number} has {len(encoding) + encoding.truncated} tokens or more, at most "
                f'{length} are allowed; shorten it, or send "truncate": true'
            )


def sequence_example(encoding: Encoding, index: int) -> EncodedExample:
    """Return an encoding as the engine computes it."""
    return EncodedExample(
        ids=np.asarray(encoding.ids, np.int32),
        type_ids=np.asarray(encoding.type_ids, np.int32),
        label=None,
        index=index,
    )


def task_name(session: Session) -> str:
    """What the model was trained for, for messages."""
    task: Any = session.task
    return "nothing but embeddings" if task is None else f"the task {task.name!r}"
