"""What pruning looks at: labelled examples as losses, and the texts of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch
from torch.nn import functional

from litebert.checkpoint.files import TASK_FILE
from litebert.data.batch import EncodedExample, collate
from litebert.data.corpus import Fault, read_documents
from litebert.data.examples import example_texts, make_examples
from litebert.data.readers import ReadOptions
from litebert.data.sources import load_source
from litebert.errors import DataError, SettingsError
from litebert.model.packing import Packing
from litebert.recipes.record_predict import kind_of
from litebert.tasks.base import load_task
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.records import RECORD_KINDS
from litebert.text.tokenizer import Tokenizer
from litebert.train.micro import LabelledLoss, to_device

if TYPE_CHECKING:
    from litebert.model.albert import AlbertWithHead
    from litebert.tasks.records import RecordTask

__all__ = ["corpus_texts", "labelled_texts", "task_losses", "vector_losses"]

BATCH: Final = 8
"""Examples of a batch: few, so that gains and losses of different examples do not cancel."""
READ_LINES: Final = 20_000
"""Lines of plain text that texts are drawn from."""
TEXT_TOKENS: Final = 64
"""Tokens that are read of one of them."""
CPU: Final = torch.device("cpu")


def task_losses(
    folder: Path, model: AlbertWithHead, data: Path, kind: str | None, limit: int
) -> Iterator[tuple[Callable[[], torch.Tensor], int]]:
    """Yield (mean loss on a few labelled examples, their tokens), at most `limit` examples in all.

    Args:
        folder: model folder, with tokenizer and task.
        model: its model.
        data: labelled file or folder; its training part is taken.
        kind: named format, or None.
        limit: examples, evenly taken from all.

    Raises:
        SettingsError: a folder without a task, or a head without a loss of its own.
        DataError: unusable data.
    """
    if model.head == "embedding":
        raise SettingsError(
            "vectors have no loss of their own, so labels do not say which heads and FFN units matter; "
            "give plain texts (--texts): what the vectors of the texts feel is measured then"
        )
    encoded = _encoded(folder, data, kind)
    step = max(1, len(encoded) // limit)
    chosen = encoded[::step][:limit]
    loss = LabelledLoss()
    for start in range(0, len(chosen), BATCH):
        batch = to_device(collate(chosen[start : start + BATCH]), CPU)

        def run(batch: Any = batch) -> torch.Tensor:
            return sum((term.mean for term in loss(model, batch)), torch.zeros(()))

        yield run, batch.packing.num_tokens


def vector_losses(
    folder: Path, model: AlbertWithHead, paths: Sequence[Path], limit: int
) -> Iterator[tuple[Callable[[], torch.Tensor], int]]:
    """Yield (random projection of a text's unit vector, its tokens), `limit` of them at most.

    To first order the gradient of a factor is how far the vector moves without what it belongs to.

    Args:
        folder: model folder, with tokenizer.
        model: its model, which gives vectors.
        paths: plain texts; a line is a text, and its first tokens are read.
        limit: projections; texts are drawn from the first lines.

    Raises:
        SettingsError: a model with another head, whose loss says more.
        DataError: no text.
    """
    if model.head != "embedding":
        raise SettingsError(
            f"the model has the head {model.head!r}, whose own loss says what matters; give labelled data "
            "with --data or --train instead of --texts"
        )
    tokenizer = Tokenizer.from_pretrained(folder)
    lines = [line for line in islice(corpus_texts(paths), READ_LINES) if line.strip()]
    if not lines:
        raise DataError("holds no text; give lines of plain text", path=paths[0])
    rng = np.random.default_rng(0)
    generator = torch.Generator().manual_seed(0)
    for number in rng.permutation(len(lines))[:limit].tolist():
        ids = torch.tensor(tokenizer.encode(lines[number], max_length=TEXT_TOKENS).ids)
        drawn = torch.randn(model.config.hidden_size, generator=generator)

        def run(ids: torch.Tensor = ids, drawn: torch.Tensor = drawn) -> torch.Tensor:
            output = model.model.forward_packed(ids, Packing.from_lengths([len(ids)]))
            return functional.normalize(output.last_hidden_state.mean(0), dim=-1) @ drawn

        yield run, len(ids)


def corpus_texts(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of text files, JSON lines, Parquet and archives of them.

    Raises:
        DataError: a file that cannot be used.
    """
    for document in read_documents(paths, on_fault=_ignore):
        yield from document.text.splitlines()


def labelled_texts(folder: Path, data: Path, kind: str | None) -> list[str]:
    """Return all texts of a labelled table, so that a cut vocabulary serves them exactly; none of records."""
    task = load_task(folder) if (folder / TASK_FILE).exists() else None
    if not isinstance(task, SequenceClassification):
        return []
    source = load_source(data, kind, on_bad_row="skip")
    tables = [table for table in (source.train, source.eval, source.test) if table is not None]
    texts: list[str] = []
    for table in tables:
        examples = make_examples(table, task.table_schema, "skip", labelled=False)
        texts += example_texts(examples)
    return texts


def _encoded(folder: Path, data: Path, kind: str | None) -> list[EncodedExample]:
    if not (folder / TASK_FILE).exists():
        raise SettingsError(
            f"{folder} has no {TASK_FILE}, so nothing says which heads and units matter; train it for a "
            "task first (litebert train)"
        )
    task = load_task(folder)
    tokenizer = Tokenizer.from_pretrained(folder)
    if isinstance(task, SequenceClassification):
        source = load_source(data, kind)
        examples = make_examples(source.train, task.table_schema)
        encoded = [task.encode(e, tokenizer, index=i) for i, e in enumerate(examples)]
    else:
        records = cast("RecordTask", task)
        name = kind_of(folder, records, kind)
        found = RECORD_KINDS.get(name).read(data, ReadOptions(), True).train.records
        features = records.features(found, tokenizer, labelled=True)
        encoded = [feature.encoded for feature in features]
    if not encoded:
        raise DataError("there is no usable record", path=data)
    return encoded


def _ignore(fault: Fault) -> None:
    del fault
