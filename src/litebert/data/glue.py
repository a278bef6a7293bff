"""The GLUE tasks in their original TSV files, each with its quirks.

Quotes are ordinary characters in all of them. CoLA has no header in train and dev; MRPC starts
with a byte-order mark and names its texts `#1 String` and `#2 String`; MNLI has two dev and two
test files; AX has no labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from litebert.data.lines import read_lines
from litebert.data.readers import READERS, ReadOptions, Source
from litebert.data.tables import Table, read_table
from litebert.errors import DataError

_NLI = ("contradiction", "entailment", "neutral")
_TWO = ("entailment", "not_entailment")
_COLA_COLUMNS = ("source", "label", "mark", "sentence")


@dataclass(frozen=True, slots=True)
class GlueTask:
    """How one task's files are laid out.

    Attributes:
        folder: its folder in the original archive.
        texts: one or two text columns.
        label: label column.
        metric: the benchmark's main metric.
        labels: class names in index order; empty for regression.
        train: file names of the training rows, first that exists.
        eval: file names of the dev rows.
        test: file names of the test rows.
        others: names and file names of further dev rows.
    """

    folder: str
    texts: tuple[str, ...]
    label: str = "label"
    metric: str = "accuracy"
    labels: tuple[str, ...] = ("0", "1")
    train: tuple[str, ...] = ("train.tsv",)
    eval: tuple[str, ...] = ("dev.tsv",)
    test: tuple[str, ...] = ("test.tsv",)
    others: tuple[tuple[str, str], ...] = ()


_MNLI = GlueTask(
    "MNLI", ("sentence1", "sentence2"), "gold_label", labels=_NLI,
    eval=("dev_matched.tsv", "dev.tsv"), test=("test_matched.tsv", "test.tsv"),
)  # fmt: skip
GLUE_TASKS: dict[str, GlueTask] = {
    "cola": GlueTask("CoLA", ("sentence",), metric="matthews"),
    "sst2": GlueTask("SST-2", ("sentence",)),
    "mrpc": GlueTask("MRPC", ("#1 String", "#2 String"), "Quality", metric="f1"),
    "stsb": GlueTask(
        "STS-B", ("sentence1", "sentence2"), "score", metric="pearson_spearman", labels=()
    ),
    "qqp": GlueTask("QQP", ("question1", "question2"), "is_duplicate", metric="f1"),
    "mnli": replace(_MNLI, others=(("mismatched", "dev_mismatched.tsv"),)),
    "mnli_mismatched": replace(
        _MNLI, eval=("dev_mismatched.tsv",), test=("test_mismatched.tsv",)
    ),
    "qnli": GlueTask("QNLI", ("question", "sentence"), labels=_TWO),
    "rte": GlueTask("RTE", ("sentence1", "sentence2"), labels=_TWO),
    "wnli": GlueTask("WNLI", ("sentence1", "sentence2")),
    "ax": GlueTask(
        "AX", ("sentence1", "sentence2"), "", metric="matthews", labels=_NLI,
        train=("diagnostic.tsv", "AX.tsv"), eval=(), test=(),
    ),
}  # fmt: skip


def read_glue(path: Path, options: ReadOptions, *, name: str) -> Source:
    """Read one GLUE task.

    Args:
        path: the task's folder, the folder above it, or one of its files.
        options: encoding and policy; the dialect is the task's own.
        name: key of `GLUE_TASKS`.

    Raises:
        DataError: a file or column is missing, or a bad row under the policy "error".
    """
    task = GLUE_TASKS[name]
    folder = path / task.folder if (path / task.folder).is_dir() else path
    if folder.is_dir():
        train_path = _first(folder, task.train)
        if train_path is None:
            found = ", ".join(sorted(item.name for item in folder.glob("*.tsv"))) or "no .tsv"
            raise DataError(
                f"glue/{name} needs {task.train[0]} in this folder, which has {found}; "
                "to use another file, name it",
                path=folder,
            )
        eval_path, test_path = _first(folder, task.eval), _first(folder, task.test)
        others = [(key, folder / file) for key, file in task.others if (folder / file).is_file()]
    else:
        train_path, eval_path, test_path, others = folder, None, None, []
    train = _read_tsv(train_path, task, options)
    eval_table = _read_tsv(eval_path, task, options) if eval_path else None
    test = _read_tsv(test_path, task, options) if test_path else None
    labelled = bool(task.label) and task.label in train.columns
    return Source(
        train=train,
        eval=eval_table,
        test=test,
        task=f"glue/{name}",
        text_columns=task.texts,
        label_column=task.label or None,
        kind="regression"
        if not task.labels
        else "multiclass"
        if len(task.labels) > 2
        else "binary",
        metric=task.metric,
        labels=task.labels or None,
        others=tuple((key, _read_tsv(file, task, options)) for key, file in others),
        is_labelled=labelled,
        reasons=(f"task glue/{name}: {task.folder} in its original TSV layout",),
    )


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_tsv(path: Path, task: GlueTask, options: ReadOptions) -> Table:
    read = partial(
        read_table,
        path,
        format="tsv",
        encoding=options.encoding,
        delimiter="\t",
        quoting=False,
        on_bad_row=options.on_bad_row,
    )
    bare = task.folder == "CoLA" and not _has_cola_header(path, options.encoding)
    table = read(header=not bare)
    if bare:
        table = table.with_columns(_COLA_COLUMNS)
    missing = [column for column in task.texts if column not in table.columns]
    if missing:
        raise DataError(
            f"this is not a {task.folder} file: it lacks the column {missing[0]!r} "
            f"(it has {', '.join(table.columns)[:200]})",
            path=path,
            line=1,
        )
    return table


def _has_cola_header(path: Path, encoding: str | None) -> bool:
    """Tell a CoLA file with a header: one of its first cells is the word `sentence`."""
    lines, _, _ = read_lines(path, encoding)
    return bool(lines) and "sentence" in lines[0].split("\t")


for _name in GLUE_TASKS:
    READERS.register(f"glue/{_name}")(partial(read_glue, name=_name))
