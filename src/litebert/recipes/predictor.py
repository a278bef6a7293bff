"""A model folder as one object, computed by torch: texts in, predictions or vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from litebert.checkpoint.folder import load_model
from litebert.data.batch import EncodedExample, collate
from litebert.errors import CheckpointError
from litebert.model.packing import Packing
from litebert.recipes.run_folder import model_folder
from litebert.runtime.text_model import BATCH_TOKENS, Pooling, TextModel
from litebert.tasks.base import TASK_FILE, Task, load_task
from litebert.text.tokenizer import Tokenizer
from litebert.train.device import torch_threads
from litebert.train.evaluate import batches_by_length, predict_outputs

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

    from litebert.model.albert import AlbertWithHead
    from litebert.recipes.exit_run import ExitRun

__all__ = ["Predictor"]


class Predictor(TextModel):
    """A trained model with its tokenizer and task, in evaluation mode."""

    def __init__(self, model: AlbertWithHead, tokenizer: Tokenizer, task: Task | None) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.task = task
        self.exits: ExitRun | None = None

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

    @property
    def hidden_size(self) -> int:
        """Numbers of a vector, H."""
        return self.model.config.hidden_size

    @property
    def max_positions(self) -> int:
        """Tokens of the longest sequence."""
        return self.model.config.max_position_embeddings

    def outputs(
        self, examples: Sequence[EncodedExample], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[NDArray[np.float32]]:
        """Return what the head gives for each example, in order; see `TextModel.outputs`."""
        if self.exits is not None:
            with torch_threads(torch.get_num_threads()):
                return self.exits.outputs(examples, batch_tokens=batch_tokens)
        with torch_threads(torch.get_num_threads()):
            outputs = predict_outputs(self.model, examples, batch_tokens=batch_tokens)
        assert outputs is not None  # noqa: S101 - only a stop request gives None
        return outputs

    def pooled(
        self,
        examples: Sequence[EncodedExample],
        pooling: Pooling,
        *,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Float[np.ndarray, "N H"]:
        """Return one vector for each example."""
        vectors = np.zeros((len(examples), self.hidden_size), np.float32)
        with torch_threads(torch.get_num_threads()), torch.inference_mode():
            for places in batches_by_length(examples, batch_tokens):
                chunk = [examples[place] for place in places]
                ids, packing, type_ids, positions = _tensors(chunk)
                output = self.model.model.forward_packed(ids, packing, type_ids, positions)
                hidden = output.last_hidden_state.float().numpy()  # [T, H]
                starts = np.cumsum([0, *(len(example) for example in chunk)])
                vectors[places] = (
                    hidden[starts[:-1]]
                    if pooling == "cls"
                    else np.add.reduceat(hidden, starts[:-1]) / np.diff(starts)[:, None]
                )
        return vectors


def _check_fits(task: Task, model: AlbertWithHead, folder: Path) -> None:
    labels, outputs = len(task.config_labels()), model.config.num_labels
    if task.head != "embedding" and labels != outputs:  # vectors have no outputs to count
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
