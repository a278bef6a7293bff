"""A trained model without torch: texts or records in, answers out, computed by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.models import locate
from litebert.runtime.exported import ExportedFolder
from litebert.runtime.graph import Graph
from litebert.runtime.masks import FilledMask, find_masks, likeliest_pieces
from litebert.runtime.memory import release_free_memory
from litebert.runtime.onnx_file import read_onnx
from litebert.runtime.packing import PackedRows, pack_rows
from litebert.runtime.text_model import BATCH_TOKENS, Pooling, TextModel
from litebert.runtime.threads import choose_threads
from litebert.tasks.base import TASK_FILE, load_task
from litebert.text.tokenizer import Tokenizer, check_vocabulary_fits

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

    from litebert.data.batch import EncodedExample
    from litebert.runtime.stages import ExitStages
    from litebert.tasks.base import Task

__all__ = ["Session"]

HIDDEN: Final = "last_hidden_state"
CALL_SLOTS: Final = 512
"""Most slots of one call, whatever the budget: what is computed then stays in the cache.

Measured on albert-base, int8, one thread: 1.4 ms a slot in calls of 128, 1.5 in 512, 1.6 in 1,024.
"""
_TOKEN_HEADS: Final = frozenset({"token", "span", "span_joint"})
_WORD_OUTPUTS: Final = {"mlm": "logits", "pretraining": "prediction_logits"}


class Session(TextModel):
    """An exported model, ready to answer.

    Attributes:
        folder: with tokenizer and task.
        precision: of the graph that was chosen.
        threads: that compute.
        depth: depths that are run; None: all.
        exits: what lets texts leave before them, and counts; None: nothing.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        precision: str = "auto",
        threads: int | None = None,
        depth: int | None = None,
        exit_when: str | None = None,
    ) -> None:
        """Load an export.

        Args:
            source: folder that `litebert export onnx` made, one of its packed graphs, or the name of
                an encoder that comes with litebert.
            precision: fp32, fp16, int8; auto: int8 where it was exported, else fp32.
            threads: that compute; None: as many CPUs as this process may use.
            depth: depths to run, 1 to all; None: all.
            exit_when: when a text leaves before them, as `set_exit`; None: never.

        Raises:
            CheckpointError: no export, a file that was changed, is damaged or not allowed.
            SettingsError: a precision that was not exported, or no such depth.
        """
        folder = ExportedFolder.open(locate(source))
        chosen = folder.choose(precision)
        self.folder = folder.path
        self.threads = choose_threads(threads)
        # First, and what it leaves is given back, so that the rest does not come on top of it.
        self._graph = Graph(
            read_onnx(chosen.path, sha256=chosen.sha256), threads=self.threads, path=chosen.path
        )
        release_free_memory()
        self.tokenizer = Tokenizer.from_pretrained(folder.path)
        check_vocabulary_fits(self.tokenizer, folder.size("vocab_size"))
        self.task = load_task(folder.path) if (folder.path / TASK_FILE).exists() else None
        self.precision = self._graph.precision
        self._positions = self._graph.max_positions or folder.size("max_position_embeddings")
        if self.task is not None:
            _check_fits(self.task, self._graph, self._positions, folder.path)
        self._depth: int | None = None
        self.depth = depth
        self._folder = folder.path
        self.exits: ExitStages | None = None
        self.set_exit(exit_when)
        release_free_memory()

    @property
    def hidden_size(self) -> int:
        """Numbers of a vector, H."""
        return self._graph.hidden_size

    @property
    def max_positions(self) -> int:
        """Tokens of the longest sequence."""
        return self._positions

    @property
    def head(self) -> str | None:
        """Head word of the graph; None: an encoder alone."""
        return self._graph.head

    @property
    def depths(self) -> int:
        """Depths that the model has, L."""
        return self._graph.depths

    @property
    def depth(self) -> int | None:
        """Depths that are run; None: all."""
        return self._depth

    @depth.setter
    def depth(self, value: int | None) -> None:
        if value is not None and not 1 <= value <= self.depths:
            raise SettingsError(f"depth is {value}; allowed: 1 to {self.depths}")
        self._depth = value

    def set_exit(self, exit_when: str | None) -> None:
        """Let texts leave as soon as a depth has answered them; their tokens are computed no more.

        Args:
            exit_when: `patience=2`, `confidence=0.9`, `entropy=0.2` (see `parse_exit`), or `auto` for
                what `litebert exits` chose before the export; None: no text leaves early.

        Raises:
            SettingsError: no such rule, a task without exits, or nothing was chosen.
            CheckpointError: a graph that cannot stop between depths, or a damaged `exits.json`.
        """
        self.exits = None
        if exit_when is None:
            return
        from litebert.runtime.stages import ExitStages
        from litebert.tasks.exit_file import read_exit_rule
        from litebert.tasks.exit_rules import exit_task, parse_exit

        task = exit_task(self.task)
        if exit_when.strip() != "auto":
            self.exits = ExitStages(self._graph, task, parse_exit(exit_when))
            return
        rule, found = read_exit_rule(self._folder)
        self.depth = min((n for n in (self._depth, found) if n is not None), default=None)
        self.exits = None if rule is None else ExitStages(self._graph, task, rule)

    def outputs(
        self, examples: Sequence[EncodedExample], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[NDArray[np.float32]]:
        """Return what the head gives for each example, in order; see `TextModel.outputs`.

        Raises:
            CheckpointError: the graph has no head that answers.
            SettingsError: a sequence longer than the model has positions, or a budget below 1.
        """
        names = self._head_outputs()
        if not names:
            vectors = self.pooled(examples, "mean", batch_tokens=batch_tokens, is_by_sequence=True)
            return _by_example(list(vectors[:, None]), examples)
        ids, types = _sequences(examples)
        if self.exits is not None:
            calls = self._packed(ids, batch_tokens)
            answers = self.exits.outputs(calls, ids, types, depth=self._depth)
            return _by_example(answers, examples)
        pieces: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(ids)
        for rows in self._packed(ids, batch_tokens):
            values = self._run(rows, ids, types, names)
            found = values[0] if len(values) == 1 else np.stack(values, axis=-1)
            if self._graph.head in _TOKEN_HEADS:
                flat = found.reshape(rows.shape[0] * rows.shape[1], -1)[rows.slots]  # [T, C]
                parts = np.split(flat, np.cumsum(rows.lengths)[:-1])
            else:
                # The one number of a choice stands for itself, as training gives it.
                parts = list(found if self._graph.head == "choice" else found[:, None])  # [1, C]
            for member, part in zip(rows.members.tolist(), parts, strict=True):
                pieces[member] = part
        return _by_example(pieces, examples)

    def pooled(
        self,
        examples: Sequence[EncodedExample],
        pooling: Pooling,
        *,
        batch_tokens: int = BATCH_TOKENS,
        is_by_sequence: bool = False,
    ) -> Float[np.ndarray, "N H"]:
        """Return one vector for each example, or for each sequence of the examples.

        Raises:
            DataError: an example of several sequences, where one vector for each is wanted.
            SettingsError: as `outputs`.
        """
        if not is_by_sequence and any(example.sequence_lengths for example in examples):
            raise DataError("an example of several sequences has no one vector; give single texts")
        ids, types = _sequences(examples)
        vectors = np.zeros((len(ids), self.hidden_size), np.float32)
        for rows in self._packed(ids, batch_tokens):
            hidden = self._run(rows, ids, types, (HIDDEN,))[0].reshape(-1, self.hidden_size)
            if pooling == "cls":
                vectors[rows.members] = hidden[rows.first_positions]
                continue
            starts = np.cumsum(rows.lengths) - rows.lengths
            sums = np.add.reduceat(hidden[rows.slots], starts)
            vectors[rows.members] = sums / rows.lengths[:, None]
        return vectors

    def fill_mask(self, text: str, *, top: int = 5) -> list[list[FilledMask]]:
        """Return the likeliest pieces for each [MASK] of a text, best first.

        Args:
            text: with the mask word of the vocabulary at least once.
            top: pieces for each, 1 and more.

        Raises:
            CheckpointError: the graph does not predict words.
            DataError: there is no mask in the text, or it was cut off.
            SettingsError: `top` below 1.
        """
        name = _WORD_OUTPUTS.get(self._graph.head or "")
        if name is None:
            raise CheckpointError(
                f"the head is {self._graph.head!r}, which does not predict words; take a model "
                "with a head for masked words: litebert-small-en, or an export of `litebert pretrain`"
            )
        encoding, masks = find_masks(self.tokenizer, text, max_length=self.max_positions, top=top)
        ids = np.asarray(encoding.ids, np.int64)
        (rows,) = pack_rows([len(ids)], max_tokens=len(ids))
        types = np.asarray(encoding.type_ids, np.int64)
        (logits,) = self._graph.run(
            rows, [ids], [types], (name,), depth=self._depth, masked_positions=masks
        )  # [P, V]
        return likeliest_pieces(logits, self.tokenizer, top)

    def _head_outputs(self) -> tuple[str, ...]:
        """Outputs that the head's answer is made of; none: the mean of the hidden states."""
        names = self._graph.output_names
        if "start_logits" in names:
            return "start_logits", "end_logits"
        for name in ("logits", "sentence_embedding"):
            if name in names and self._graph.head not in _WORD_OUTPUTS:
                return (name,)
        if self.task is not None and self.task.head == "embedding":
            return ()
        raise CheckpointError(
            f"the head is {self._graph.head!r}, which answers no task; train the folder for one and "
            "export it again"
        )

    def _packed(self, ids: Sequence[NDArray[np.int32]], batch_tokens: int) -> list[PackedRows]:
        lengths = [len(part) for part in ids]
        if max(lengths, default=0) > self.max_positions:
            raise SettingsError(
                f"a sequence has {max(lengths)} tokens, but the model has {self.max_positions} "
                "positions; lower max_length"
            )
        return pack_rows(lengths, max_tokens=min(batch_tokens, CALL_SLOTS))

    def _run(
        self,
        rows: PackedRows,
        ids: Sequence[NDArray[np.int32]],
        types: Sequence[NDArray[np.int32]],
        names: Sequence[str],
    ) -> list[NDArray[np.float32]]:
        members = rows.members.tolist()
        return self._graph.run(
            rows, (ids[i] for i in members), (types[i] for i in members), names, depth=self._depth
        )


def _sequences(
    examples: Sequence[EncodedExample],
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    """Return ids and segments of every sequence of the examples, in order."""
    ids: list[NDArray[np.int32]] = []
    types: list[NDArray[np.int32]] = []
    for example in examples:
        bounds = np.cumsum(example.sequence_lengths)[:-1] if example.sequence_lengths else []
        ids += np.split(example.ids, bounds)
        types += np.split(np.asarray(example.type_ids, np.int32), bounds)
    return ids, types


def _by_example(
    pieces: list[NDArray[np.float32]], examples: Sequence[EncodedExample]
) -> list[NDArray[np.float32]]:
    """Join what belongs to one example."""
    if all(example.num_sequences == 1 for example in examples):
        return pieces
    rest = iter(pieces)
    return [
        np.concatenate([next(rest) for _ in range(example.num_sequences)]) for example in examples
    ]


def _check_fits(task: Task, graph: Graph, positions: int, folder: Path) -> None:
    """Refuse a task of another model."""
    if graph.head != task.head and task.head != "embedding":
        raise CheckpointError(
            f"{TASK_FILE} needs the head {task.head!r}, the graph has {graph.head!r}; they do not "
            "belong together, export the model again",
            path=folder,
        )
    labels = len(task.config_labels())
    if task.head in ("sequence", "token") and graph.num_logits not in (None, labels):
        raise CheckpointError(
            f"{TASK_FILE} has {labels} outputs, the graph has {graph.num_logits}; they do not belong "
            "together, export the model again",
            path=folder,
        )
    length = getattr(task, "max_length", 0)
    if length > positions:
        raise CheckpointError(
            f"{TASK_FILE} has max_length {length}, but the model has {positions} positions",
            path=folder,
        )
