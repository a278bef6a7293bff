"""Logits of a data set, packed to a token budget, and their score."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from litebert.data.batch import EncodedExample, collate
from litebert.errors import DataError, SettingsError
from litebert.tasks.long_texts import gather_texts
from litebert.train.micro import forward_packed, is_out_of_memory, to_device
from litebert.train.precision import Precision
from litebert.train.stop import StopRequest


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The result of one evaluation.

    Attributes:
        score: the task metric; higher is better.
        metrics: name -> value, the task metric included.
        logits: [N, C] in data order (tokens of all examples in a row for token heads), for the
            guard; None to keep it out.
        labels: matching labels.
        seconds: time it took.
    """

    score: float
    metrics: dict[str, float]
    logits: NDArray[Any] | None = None
    labels: NDArray[Any] | None = None
    seconds: float = 0.0


Evaluate = Callable[[nn.Module, StopRequest], Evaluation | None]
"""Scores a model; returns None when a stop was requested before it was done."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluator:
    """Scores a model on fixed examples: an `Evaluate`.

    Attributes:
        examples: labelled examples.
        score: (logits, labels) -> name -> value, such as `Task.score`.
        metric: the name in what `score` returns that decides which model is best.
        greater_is_better: False for a loss-like metric.
        batch_tokens: most real tokens per forward pass.
        precision: number type of the forward pass; float32 by default.
        bounds: [N] position of the first example of each text, where several are windows of one; the
            text is scored by the mean of their logits. None: each example stands for itself.
    """

    examples: Sequence[EncodedExample]
    score: Callable[[NDArray[Any], NDArray[Any]], Mapping[str, float]]
    metric: str
    greater_is_better: bool = True
    batch_tokens: int = 8192
    precision: Precision = field(default_factory=lambda: Precision("fp32", "cpu"))
    bounds: NDArray[np.int64] | None = None

    def __call__(self, model: nn.Module, stop: StopRequest) -> Evaluation | None:
        """Return the scores, or None when a stop was requested.

        Raises:
            DataError: the examples have no labels.
            SettingsError: `score` does not return the metric.
        """
        start = time.monotonic()
        labels = collate(self.examples).labels
        if labels is None:
            raise DataError("the evaluation examples have no labels")
        logits = predict_logits(
            model,
            self.examples,
            batch_tokens=self.batch_tokens,
            precision=self.precision,
            stop=stop,
        )
        if logits is None:
            return None
        if self.bounds is not None:
            logits, labels = gather_texts(logits, self.bounds), labels[self.bounds]
        metrics = {name: float(value) for name, value in self.score(logits, labels).items()}
        if self.metric not in metrics:
            raise SettingsError(f"no metric {self.metric!r}; there are: {', '.join(metrics)}")
        value = metrics[self.metric]
        return Evaluation(
            score=value if self.greater_is_better else -value,
            metrics=metrics,
            logits=logits,
            labels=labels,
            seconds=time.monotonic() - start,
        )


def predict_logits(
    model: nn.Module,
    examples: Sequence[EncodedExample],
    *,
    batch_tokens: int = 8192,
    precision: Precision | None = None,
    stop: StopRequest | None = None,
) -> NDArray[np.float32] | None:
    """Return the logits of all examples in their order, or None when a stop was requested.

    Sequence heads give [N, C], token heads [T, C] with the tokens of all examples in a row. The
    model's training mode is as before afterwards, and no random number is drawn.

    Args:
        model: has `forward_packed`.
        examples: at least one; labels are not used.
        batch_tokens: most real tokens per forward pass.
        precision: number type; float32 by default.
        stop: looked at between batches.

    When memory runs out, it starts again with half the tokens per pass.

    Raises:
        DataError: there are no examples.
    """
    pieces = predict_outputs(
        model, examples, batch_tokens=batch_tokens, precision=precision, stop=stop
    )
    return None if pieces is None else np.concatenate(pieces)


def predict_outputs(
    model: nn.Module,
    examples: Sequence[EncodedExample],
    *,
    batch_tokens: int = 8192,
    precision: Precision | None = None,
    stop: StopRequest | None = None,
) -> list[NDArray[np.float32]] | None:
    """Return what the head gives for each example, as `predict_logits`, but one array an example.

    Returns:
        [1, C] from heads that answer for a sequence, [S, C] from heads that answer for each token,
        one row for each sequence of an example that has several; None when a stop was requested.

    Raises:
        DataError: there are no examples.
    """
    if not examples:
        raise DataError("there is nothing to predict: no examples")
    longest = max(len(example) for example in examples)
    while True:
        try:
            return _predict(model, examples, batch_tokens, precision, stop)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error) or batch_tokens <= longest:
                raise
        batch_tokens = max(longest, batch_tokens // 2)


def _predict(
    model: nn.Module,
    examples: Sequence[EncodedExample],
    batch_tokens: int,
    precision: Precision | None,
    stop: StopRequest | None,
) -> list[NDArray[np.float32]] | None:
    device = next(model.parameters()).device
    precision = precision or Precision("fp32", device.type)
    pieces: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(examples)
    was_training = model.training
    model.eval()
    try:
        for chosen in batches_by_length(examples, batch_tokens):
            if stop is not None and stop.is_requested:
                return None
            batch = collate([replace(examples[i], label=None) for i in chosen])
            with torch.inference_mode(), precision.autocast():
                logits = forward_packed(model, to_device(batch, device), labels=None).logits
            rows: NDArray[np.float32] = logits.float().cpu().numpy()
            bounds = batch.example_bounds
            if len(rows) != batch.num_tokens:
                sizes = batch.group_sizes
                ones = np.ones(batch.num_examples, np.int32)
                bounds = np.concatenate([[0], np.cumsum(ones if sizes is None else sizes)])
            for i, piece in zip(chosen, np.split(rows, bounds[1:-1]), strict=True):
                pieces[i] = piece
    finally:
        model.train(was_training)
    return pieces


def batches_by_length(examples: Sequence[EncodedExample], batch_tokens: int) -> list[list[int]]:
    """Return the places of the examples of each forward pass, the longest first.

    Args:
        examples: any number.
        batch_tokens: most real tokens of a pass; a longer example stands alone.
    """
    batches: list[list[int]] = []
    tokens = 0
    for i in sorted(range(len(examples)), key=lambda i: (-len(examples[i]), i)):
        length = len(examples[i])
        if not batches or tokens + length > batch_tokens:
            batches.append([])
            tokens = 0
        batches[-1].append(i)
        tokens += length
    return batches
