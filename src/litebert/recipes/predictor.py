"""A model folder as one object: texts in, predictions or vectors out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self

import numpy as np
import torch

from litebert.checkpoint.folder import load_model
from litebert.data.batch import EncodedExample, collate
from litebert.data.examples import Example
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.model.packing import Packing
from litebert.recipes.run_folder import model_folder
from litebert.tasks.base import TASK_FILE, Prediction, Task, load_task
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.long_texts import encode_long, gather_texts, text_bounds
from litebert.text.tokenizer import Tokenizer
from litebert.train.device import torch_threads

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.model.albert import AlbertWithHead

__all__ = ["Predictor", "load"]

BATCH_TOKENS: Final = 2048
"""Real tokens of one forward pass: full matrix products in modest memory."""
MIN_LENGTH: Final = 3
"""Tokens of the shortest useful input: two special ones and a piece."""
_HERE: Final = Path("<text>")

Text = str | tuple[str, str]


class Predictor:
    """A trained model with its tokenizer and task, in evaluation mode."""

    def __init__(self, model: AlbertWithHead, tokenizer: Tokenizer, task: Task | None) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.task = task

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a model folder, or the best model of a run folder.

        Raises:
            CheckpointError: no model folder, or one that is incomplete or inconsistent.
        """
        path = model_folder(Path(folder))
        task = load_task(path) if (path / TASK_FILE).exists() else None
        model = load_model(path, head=task.head if task else "embedding")
        if task is not None:
            _check_fits(task, model, path)
        return cls(model, Tokenizer.from_pretrained(path), task)

    def predict(
        self, texts: str | Sequence[Text], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[Prediction]:
        """Return one prediction for each text or pair of texts, in order.

        Args:
            texts: one text, or a sequence of texts or of (text, pair).
            batch_tokens: real tokens of one forward pass, >= 1.

        Raises:
            CheckpointError: the folder has no task.
            DataError: a text where the task takes pairs, or the other way round.
            SettingsError: `batch_tokens` below 1.
        """
        examples = [_example(text, line) for line, text in enumerate(_listed(texts), start=1)]
        if not examples:
            return []
        return self.required_task.decode(self.logits(examples, batch_tokens=batch_tokens))

    def logits(
        self, examples: Sequence[Example], *, batch_tokens: int = BATCH_TOKENS
    ) -> Float[np.ndarray, "N C"]:
        """Return the raw outputs of the head, one row for each example, in order.

        Of a text that is read in windows it is the mean of their outputs.
        """
        task = self.required_task
        windows = [
            window
            for index, example in enumerate(examples)
            for window in self._encode(task, example, index)
        ]
        bounds = text_bounds(windows)
        encoded = [replace(window, index=place) for place, window in enumerate(windows)]
        rows = [np.empty(0)] * len(encoded)
        with torch_threads(torch.get_num_threads()), torch.inference_mode():
            for chunk in _chunks(encoded, batch_tokens):
                output = self.model.forward_packed(*_tensors(chunk))
                logits = output.logits
                if not isinstance(logits, torch.Tensor):
                    raise CheckpointError("the head returns several outputs, expected one")
                for example, row in zip(chunk, logits.float().numpy(), strict=True):
                    rows[example.index] = row
        if not rows:
            return np.empty((0, len(task.config_labels())))
        return gather_texts(np.stack(rows), bounds)

    def _encode(self, task: Task, example: Example, index: int) -> list[EncodedExample]:
        if isinstance(task, SequenceClassification):
            return encode_long(task, example, self.tokenizer, index=index)
        return [task.encode(example, self.tokenizer, index=index)]

    def embed(
        self,
        texts: str | Sequence[Text],
        *,
        pooling: Literal["mean", "cls"] = "mean",
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
        positions = self.model.config.max_position_embeddings
        limit = positions if max_length is None else max_length
        if not MIN_LENGTH <= limit <= positions:
            raise SettingsError(f"max_length is {limit}; allowed: {MIN_LENGTH}..{positions}")
        if pooling not in ("mean", "cls"):
            raise SettingsError(f"pooling is {pooling!r}; allowed: 'mean', 'cls'")
        encoded: list[EncodedExample] = []
        for index, text in enumerate(_listed(texts)):
            first, second = text if isinstance(text, tuple) else (text, None)
            encoding = self.tokenizer.encode(first, second, max_length=limit)
            encoded.append(
                EncodedExample(
                    ids=np.asarray(encoding.ids, np.int32),
                    type_ids=np.asarray(encoding.type_ids, np.int32),
                    label=None,
                    index=index,
                )
            )
        vectors = np.zeros((len(encoded), self.model.config.hidden_size), np.float32)
        with torch_threads(torch.get_num_threads()), torch.inference_mode():
            for chunk in _chunks(encoded, batch_tokens):
                ids, packing, type_ids, positions = _tensors(chunk)
                output = self.model.model.forward_packed(ids, packing, type_ids, positions)
                hidden = output.last_hidden_state.float().numpy()  # [T, H]
                starts = np.cumsum([0, *(len(example.ids) for example in chunk)])
                pooled = (
                    hidden[starts[:-1]]
                    if pooling == "cls"
                    else np.add.reduceat(hidden, starts[:-1]) / np.diff(starts)[:, None]
                )  # [N, H]
                vectors[[example.index for example in chunk]] = pooled
        if normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

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


def load(folder: str | Path) -> Predictor:
    """Load a model folder, or the best model of a run folder, for `predict` and `embed`."""
    return Predictor.load(folder)


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
    first, second = text if isinstance(text, tuple) else (text, None)
    return Example(text=first, pair=second, label=None, path=_HERE, line=line)


def _check_fits(task: Task, model: AlbertWithHead, folder: Path) -> None:
    labels, outputs = len(task.config_labels()), model.config.num_labels
    if labels != outputs:
        raise CheckpointError(
            f"{TASK_FILE} has {labels} outputs, config.json has {outputs}; they do not belong "
            "together, save the model again",
            path=folder,
        )
    length, positions = getattr(task, "max_length", 0), model.config.max_position_embeddings
    if length > positions:
        raise CheckpointError(
            f"{TASK_FILE} has max_length {length}, but the model has {positions} positions",
            path=folder,
        )


def _chunks(encoded: Sequence[EncodedExample], batch_tokens: int) -> Iterator[list[EncodedExample]]:
    """Yield groups of similar length with at most `batch_tokens` real tokens each."""
    if batch_tokens < 1:
        raise SettingsError(f"batch_tokens is {batch_tokens}; allowed: 1 and more")
    chunk: list[EncodedExample] = []
    tokens = 0
    for example in sorted(encoded, key=lambda item: len(item.ids)):
        if chunk and tokens + len(example.ids) > batch_tokens:
            yield chunk
            chunk, tokens = [], 0
        chunk.append(example)
        tokens += len(example.ids)
    if chunk:
        yield chunk


def _tensors(
    chunk: Sequence[EncodedExample],
) -> tuple[torch.Tensor, Packing, torch.Tensor, torch.Tensor]:
    batch = collate(list(chunk))
    lengths = [len(example.ids) for example in chunk]
    return (
        torch.from_numpy(batch.input_ids).long(),
        Packing.from_lengths(lengths),
        torch.from_numpy(batch.token_type_ids).long(),
        torch.from_numpy(batch.position_ids).long(),
    )
