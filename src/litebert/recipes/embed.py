"""Texts to vectors: an encoder folder with pooling, length and prefix chosen once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Self, cast

import numpy as np
from pydantic import Field

from litebert.checkpoint.digest import folder_digest
from litebert.checkpoint.files import CONFIG_FILE, TASK_FILE
from litebert.checkpoint.sentence_transformers import MODULES_FILE
from litebert.data.columns import text_columns
from litebert.data.tables import read_table
from litebert.errors import SettingsError
from litebert.files import read_json
from litebert.models import locate
from litebert.recipes.line_stream import stream_rows
from litebert.recipes.run_folder import model_folder
from litebert.runtime.exported import EXPORT_FILE, is_exported
from litebert.runtime.text_model import BATCH_TOKENS
from litebert.settings import Settings
from litebert.tasks.base import load_task

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.data.tables import Table
    from litebert.runtime.text_model import TextModel
    from litebert.tasks.base import Task

__all__ = ["EmbedOptions", "Embedder", "column_of", "embedded", "table_texts", "texts_of_stream"]

BLOCK_TEXTS: Final = 512
"""Texts that are embedded together: enough to pack by length, little to hold."""
TEXT: Final = "text"
"""Column or field of the text where none is told."""
_MAX_CONFIG_BYTES: Final = 16_000_000


class EmbedOptions(Settings):
    """What decides a vector, besides model and text."""

    dim: int | None = Field(default=None, ge=2, le=100_000)
    """First numbers of each vector that are kept; None: all."""
    normalize: bool = True
    """Scale vectors to length 1, after cutting."""
    pooling: Literal["mean", "cls"] = "mean"
    """Mean over the real tokens, or the last hidden state of the first one."""
    max_length: int | None = Field(default=None, ge=3, le=100_000)
    """Tokens that are kept of a text; None: as trained for embeddings, else all the model takes."""
    batch_tokens: int = Field(default=BATCH_TOKENS, ge=1, le=100_000_000)
    """Real tokens of one forward pass."""


class Embedder:
    """A model folder as a function from texts to vectors."""

    def __init__(self, predictor: TextModel, options: EmbedOptions, model_hash: str = "") -> None:
        """Take a model.

        Args:
            predictor: gives encoder and tokenizer.
            options: how vectors are made; `max_length` must be set where the model's is not meant.
            model_hash: digest of the model's files, part of `fingerprint`.

        Raises:
            SettingsError: a prefix that is longer than the vectors.
        """
        hidden = predictor.hidden_size
        if options.dim is not None and options.dim > hidden:
            raise SettingsError(f"dim is {options.dim}, but vectors have {hidden} numbers")
        self._predictor, self.options = predictor, options
        self.width = options.dim or hidden
        shown = options.model_dump(exclude={"batch_tokens"}) | {"model": model_hash}
        self.fingerprint = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()
        """Digest of everything that decides a vector besides the text."""
        self.trained_for: str | None = "similarity"
        """What the vectors are made for: "similarity", another task, or None: pretrained only."""

    @classmethod
    def load(cls, folder: str | Path, options: EmbedOptions | None = None) -> Self:
        """Load a model folder, the best model of a run folder, an export, or a named encoder.

        Raises:
            CheckpointError: no model folder, or one that is incomplete or inconsistent.
            SettingsError: options that the model cannot follow.
        """
        path, options = locate(folder), options or EmbedOptions()
        if is_exported(path):
            from litebert.runtime.session import Session

            session = Session(path)
            digest = folder_digest(session.folder, EXPORT_FILE) + session.precision
            found = cls(session, _as_trained(options, session.task), digest)
            found.trained_for = _purpose(session.folder, session.task)
            return found
        path = model_folder(path)
        task = load_task(path) if (path / TASK_FILE).exists() else None
        found = cls(_torch_encoder(path), _as_trained(options, task), folder_digest(path))
        found.trained_for = _purpose(path, task)
        return found

    def __call__(self, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """Return one float32 vector for each text, in order."""
        options = self.options
        if not texts:
            return np.zeros((0, self.width), np.float32)
        vectors = self._predictor.embed(
            list(texts),
            pooling=options.pooling,
            normalize=False,
            max_length=options.max_length,
            batch_tokens=options.batch_tokens,
        )[:, : self.width]
        if options.normalize:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.ascontiguousarray(vectors, np.float32)


def _torch_encoder(folder: Path) -> TextModel:
    from litebert.checkpoint.folder import load_model
    from litebert.recipes.predictor import Predictor
    from litebert.text.tokenizer import Tokenizer

    model = load_model(folder, "embedding", changes={"litebert": {"pooling": "mean"}})
    return Predictor(model, Tokenizer.from_pretrained(folder), None)


def _purpose(folder: Path, task: Task | None) -> str | None:
    """What the vectors of a folder are made for; see `Embedder.trained_for`."""
    if task is not None:
        return "similarity" if task.head == "embedding" else task.name
    options: Any = read_json(folder / CONFIG_FILE, max_bytes=_MAX_CONFIG_BYTES).get("litebert")
    is_mean = isinstance(options, dict) and cast("Any", options).get("pooling") == "mean"
    return "similarity" if is_mean or (folder / MODULES_FILE).is_file() else None


def _as_trained(options: EmbedOptions, task: Task | None) -> EmbedOptions:
    """The length that a model learnt vectors with, where none is told."""
    if options.max_length is not None or task is None or task.head != "embedding":
        return options
    length: int | None = getattr(task, "max_length", None)
    return options.model_copy(update={"max_length": length})


def embedded(
    embedder: Embedder, texts: Iterable[str], *, block: int = BLOCK_TEXTS
) -> Iterator[tuple[list[str], Float[np.ndarray, "n D"]]]:
    """Yield texts with their vectors in blocks, in order; memory does not grow with the input."""
    rest = iter(texts)
    while part := list(islice(rest, block)):
        yield part, embedder(part)


def texts_of_stream(
    stream: IO[bytes], column: str | None, *, encoding: str | None = None, name: str = "<stdin>"
) -> Iterator[str]:
    """Yield the text of each line: the line, or a field of its JSON object; blank lines count.

    Raises:
        DataError: when the texts are gone through: see `stream_rows`.
        SettingsError: no such encoding.
    """
    wanted = column or TEXT
    for rows in stream_rows(stream, (wanted,), encoding=encoding, name=name):
        for row in rows:
            yield _text(row[wanted])


def table_texts(
    path: Path, column: str | None, *, encoding: str | None = None
) -> tuple[list[str], tuple[str, ...]]:
    """Return the texts of a table in order, and how they were found; empty cells are "".

    Raises:
        DataError: unreadable file, or no column looks like text.
        SettingsError: no such column.
    """
    table = read_table(path, encoding=encoding)
    name, reason = column_of(table, column)
    return [_text(row.values.get(name)) for row in table.rows], (*table.notes, reason)


def column_of(table: Table, told: str | None) -> tuple[str, str]:
    """Return the text column of a table and the reason: the told one, or one that looks like text.

    Raises:
        DataError: no column looks like text.
        SettingsError: no such column.
    """
    if told is None and TEXT in table.columns:
        return TEXT, f"text column {TEXT!r}: by its name"
    names, reason = text_columns(table, told=None if told is None else (told,))
    name, *others = names
    if others:
        reason = f"text column {name!r}: the first of a pair; tell another with --text-column"
    return name, reason


def _text(value: Any) -> str:
    return "" if value is None else str(value)
