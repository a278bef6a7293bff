"""What every model that takes texts can do, whatever computes it: predict, answer records, embed.

A back-end gives the outputs of its head and the vectors of its sequences; encoding and decoding are
the tokenizer's and the task's, and the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from litebert.data.batch import EncodedExample
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.tasks.base import TASK_FILE
from litebert.tasks.long_texts import encode_texts, gather_texts

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

    from litebert.data.examples import Example
    from litebert.tasks.base import Prediction, Task
    from litebert.tasks.records import Answer, RecordTask
    from litebert.text.tokenizer import Tokenizer

__all__ = ["BATCH_TOKENS", "Pooling", "Text", "TextModel"]

BATCH_TOKENS: Final = 2048
"""Real tokens of one forward pass: full matrix products in modest memory."""
MIN_LENGTH: Final = 3
"""Tokens of the shortest useful input: two special ones and a piece."""
_HERE: Final = Path("<text>")

Text = str | tuple[str, str]
Pooling = Literal["mean", "cls"]


class TextModel(ABC):
    """A trained model with its tokenizer and task.

    Attributes:
        tokenizer: turns texts into ids.
        task: reads the outputs of the head; None for an encoder alone.
    """

    tokenizer: Tokenizer
    task: Task | None

    @property
    @abstractmethod
    def hidden_size(self) -> int:
        """Numbers of a vector, H."""

    @property
    @abstractmethod
    def max_positions(self) -> int:
        """Tokens of the longest sequence."""

    @abstractmethod
    def outputs(
        self, examples: Sequence[EncodedExample], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[NDArray[np.float32]]:
        """Return what the head gives for each example, in order.

        Returns:
            [1, C] from heads that answer for a sequence, [S, C] from heads that answer for each
            token, one row for each sequence of an example that has several.
        """

    @abstractmethod
    def pooled(
        self, examples: Sequence[EncodedExample], pooling: Pooling, *, batch_tokens: int
    ) -> Float[np.ndarray, "N H"]:
        """Return one vector for each example: the mean of its tokens, or its first token."""

    def predict(
        self, texts: str | Sequence[Text], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[Prediction]:
        """Return one prediction for each text or pair of texts, in order.

        Args:
            texts: one text, or a sequence of texts or of (text, pair).
            batch_tokens: real tokens of one forward pass, >= 1.

        Raises:
            CheckpointError: the folder has no task, or one over records.
            DataError: a text where the task takes pairs, or the other way round.
            SettingsError: `batch_tokens` below 1.
        """
        task = self.required_task
        if not hasattr(task, "decode"):
            raise CheckpointError(
                f"task {task.name!r} answers records, not single texts; use `answers`, or "
                "`litebert predict MODEL FILE`"
            )
        examples = [_example(text, line) for line, text in enumerate(_listed(texts), start=1)]
        if not examples:
            return []
        return task.decode(self.logits(examples, batch_tokens=batch_tokens))

    def logits(
        self, examples: Sequence[Example], *, batch_tokens: int = BATCH_TOKENS
    ) -> Float[np.ndarray, "N C"]:
        """Return the raw outputs of the head, one row for each example, in order.

        Of a text that is read in windows the row is the mean of theirs.
        """
        task = self.required_task
        _require_budget(batch_tokens)
        if not examples:
            return np.empty((0, len(task.config_labels())))
        windows, bounds = encode_texts(task, examples, self.tokenizer)
        rows = np.concatenate(self.outputs(windows, batch_tokens=batch_tokens))
        return gather_texts(rows, bounds)

    def answers(self, records: Sequence[Any], *, batch_tokens: int = BATCH_TOKENS) -> list[Answer]:
        """Return one answer for each record of the model's task, in order.

        Raises:
            CheckpointError: the folder has no task, or one over texts.
            DataError: a record that cannot be encoded.
        """
        if not records:
            return []
        task = cast("RecordTask", self.required_task)
        if not hasattr(task, "features"):
            raise CheckpointError(f"task {task.name!r} answers texts, not records; use `predict`")
        features = task.features(records, self.tokenizer, labelled=False)
        encoded = [feature.encoded for feature in features]
        return task.answers(records, features, self.outputs(encoded, batch_tokens=batch_tokens))

    def embed(
        self,
        texts: str | Sequence[Text],
        *,
        pooling: Pooling = "mean",
        normalize: bool = True,
        max_length: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Float[np.ndarray, "N H"]:
        """Return one float32 vector for each text.

        Args:
            texts: one text, or a sequence of texts or of (text, pair).
            pooling: `mean` over the real tokens, or the last hidden state of the first token.
            normalize: whether vectors have length 1.
            max_length: tokens that are kept of a text; all that the model has positions for when None.
            batch_tokens: real tokens of one forward pass, >= 1.

        Raises:
            SettingsError: a length that the model has no positions for, or an unknown pooling.
            DataError: something else than texts.
        """
        positions = self.max_positions
        limit = positions if max_length is None else max_length
        if not MIN_LENGTH <= limit <= positions:
            raise SettingsError(f"max_length is {limit}; allowed: {MIN_LENGTH}..{positions}")
        if pooling not in ("mean", "cls"):
            raise SettingsError(f"pooling is {pooling!r}; allowed: 'mean', 'cls'")
        _require_budget(batch_tokens)
        encodings = self.tokenizer.encode_batch(_listed(texts), max_length=limit)
        encoded = [
            EncodedExample(
                ids=np.asarray(encoding.ids, np.int32),
                type_ids=np.asarray(encoding.type_ids, np.int32),
                label=None,
                index=index,
            )
            for index, encoding in enumerate(encodings)
        ]
        if not encoded:
            return np.zeros((0, self.hidden_size), np.float32)
        vectors = self.pooled(encoded, pooling, batch_tokens=batch_tokens)
        if normalize:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors.astype(np.float32, copy=False)

    @property
    def required_task(self) -> Task:
        """The task.

        Raises:
            CheckpointError: the folder has none.
        """
        if self.task is None:
            raise CheckpointError(
                f"the folder has no {TASK_FILE}, so it can embed but not predict; "
                "train it for a task: litebert train DATA --model FOLDER"
            )
        return self.task


def _listed(texts: str | Sequence[Text]) -> list[Text]:
    if isinstance(texts, str):
        return [texts]
    listed = list(texts)
    for number, text in enumerate(listed, start=1):
        parts = text if isinstance(text, tuple) else (text,)
        if len(parts) > 2 or not all(isinstance(part, str) for part in parts):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(
                f"text {number} is {text!r:.60}; give strings, or tuples of two strings",
                line=number,
            )
    return listed


def _example(text: Text, line: int) -> Example:
    from litebert.data.examples import Example

    first, second = text if isinstance(text, tuple) else (text, None)
    return Example(text=first, pair=second, label=None, path=_HERE, line=line)


def _require_budget(batch_tokens: int) -> None:
    if batch_tokens < 1:
        raise SettingsError(f"batch_tokens is {batch_tokens}; allowed: 1 and more")
