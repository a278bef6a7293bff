"""Texts of a file, as the teacher's task reads them or as plain lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from litebert.checkpoint.files import TASK_FILE
from litebert.data.examples import Example, make_examples
from litebert.data.lines import read_lines
from litebert.data.sources import load_source
from litebert.errors import DataError, SettingsError
from litebert.recipes.embed import table_texts
from litebert.tasks.base import load_task
from litebert.tasks.classification import SequenceClassification

__all__ = ["FileTexts", "is_shard_folder", "read_file"]

LINE_SUFFIXES: Final = (".txt", ".text")


@dataclass(frozen=True, slots=True)
class FileTexts:
    """Texts in the order of the file.

    Attributes:
        examples: texts or pairs, with their labels where there are any.
        task: of the teacher, if it has one that reads tables.
        note: how they were read.
    """

    examples: Sequence[Example]
    task: SequenceClassification | None
    note: str


def is_shard_folder(path: Path) -> bool:
    """Whether `litebert prepare` wrote it."""
    return (path / "manifest.json").is_file()


def read_file(path: Path, teacher: Path, *, labelled: bool, needs_task: bool) -> FileTexts:
    """Read a file of texts.

    Args:
        path: lines (.txt), or a table.
        teacher: model folder; a classifier's task decides which columns are read.
        labelled: whether labels are needed.
        needs_task: whether the teacher's answers to its task are learnt.

    Raises:
        DataError: unreadable, or no text in it.
        SettingsError: labels where there cannot be any; the table lacks a column of the task.
        CheckpointError: the teacher's `task.json` cannot be used.
    """
    if not path.exists():
        raise DataError("no such file or folder; check the path", path=path)
    task = load_task(teacher) if needs_task and (teacher / TASK_FILE).exists() else None
    if task is not None and not isinstance(task, SequenceClassification):
        raise SettingsError(
            f"the teacher's task is {task.name!r}; answers can be learnt of classifiers and of "
            "models that give a number. Learn hidden, pooled or similarity from it"
        )
    if labelled and task is None:
        raise SettingsError(
            "distill.labels needs a teacher that litebert fine-tuned, whose task.json says which "
            "column the labels are in; leave it out, or fine-tune the teacher with litebert train"
        )
    if path.is_file() and path.suffix.lower() in LINE_SUFFIXES:
        if labelled or (task is not None and task.is_pair):
            raise SettingsError(
                f"{path} has one text a line, without labels or second texts; give a table, or set "
                "distill.labels = 0"
            )
        lines = [line.strip() for line in read_lines(path)[0]]
        found = [
            Example(line, None, None, path, number)
            for number, line in enumerate(lines, start=1)
            if line
        ]
        note = "one text a line"
    elif task is not None:
        table = load_source(path, None).train
        found = make_examples(table, task.table_schema, labelled=labelled)
        note = f"as the teacher's task reads them: {', '.join(task.text_columns)}"
    else:
        texts, (*_, note) = table_texts(path, None)
        found = [
            Example(text, None, None, path, number)
            for number, text in enumerate(texts, start=1)
            if text.strip()
        ]
    if not found:
        raise DataError("there is no text in it; give texts to learn from", path=path)
    return FileTexts(found, task, note)
