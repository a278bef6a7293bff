"""The archive that the GLUE leaderboard takes: one file of answers a task, all of them there."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from litebert.checkpoint.fs import make_folder, write_atomic
from litebert.data.examples import Example
from litebert.data.glue import read_glue
from litebert.data.readers import ReadOptions
from litebert.data.tables import Table, read_table
from litebert.errors import DataError, LitebertError
from litebert.files import check_file, read_json
from litebert.recipes.glue.entries import AX, ENTRIES, AnswerFile, find_folder
from litebert.recipes.predictor import Predictor
from litebert.recipes.run_folder import RunFolder
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.metrics import confusion_matrix, matthews

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FOLDER", "Submission", "answer_ax", "write_submission"]

FOLDER: Final = "submission"
ARCHIVE: Final = "submission.zip"
STATE: Final = "submission.json"
_MAX_BYTES: Final = 16_000_000
SCORE_RANGE: Final = (0.0, 5.0)
"""Scores that STS-B allows."""
_CHUNK: Final = 4096
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""One date for all members, so that equal answers make an equal archive."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What was written.

    Attributes:
        path: the archive.
        filled: file -> why some or all of its answers are the constant one.
        ax: Matthews correlation on the diagnostic set; None without labels or a model of MNLI.
    """

    path: Path
    filled: dict[str, str]
    ax: float | None = None


def write_submission(
    out: Path, data: Path, finished: Sequence[str], *, tell: Callable[[str], None]
) -> Submission:
    """Answer the test rows with the models of the finished tasks, and pack the answers.

    Files that are there already from a run before are kept. The leaderboard takes only archives with
    every file whole, so what cannot be answered gets the constant answer, and is named.

    Args:
        out: folder of the run.
        data: folder of the benchmark.
        finished: keys of the tasks that have a model.
        tell: takes lines for a person.

    Raises:
        StorageError: a file cannot be written.
    """
    folder = out / FOLDER
    make_folder(folder)
    known = _known(out)
    answered: dict[str, str] = {}
    filled: dict[str, str] = {}
    owners = [(entry.key, entry.title, file) for entry in ENTRIES for file in entry.answers]
    for key, title, file in (*owners, ("mnli", "AX", AX)):
        path = folder / f"{file.name}.tsv"
        reason = "" if key in finished else f"{key} has no model"
        stamp = "" if reason else _stamp(out / key)
        if stamp and path.exists() and known.answered.get(file.name) == stamp:
            answered[file.name] = stamp
            filled |= {name: why for name, why in known.filled.items() if name == file.name}
            continue
        answers: dict[int, str] = {}
        test = _first(find_folder(data, title), file.tests)
        if not reason and test is None:
            reason = f"there is no {file.tests[0]}"
        elif not reason and test is not None:
            tell(f"answers   {test}")
            try:
                answers = _answer(out / key, test, file)
                answered[file.name] = stamp
            except LitebertError as error:
                reason = str(error)
        rows = max(file.rows, 1 + max(answers, default=-1))
        gaps = rows - len(answers)
        if gaps:
            what = "all answers" if not answers else f"{gaps:,} of {rows:,} answers"
            why = reason or "the test file lacks these rows"
            filled[file.name] = f"{what} are {file.constant}: {why}"
        lines = (f"{index}\t{answers.get(index, file.constant)}\n" for index in range(rows))
        write_atomic(path, ("index\tprediction\n" + "".join(lines)).encode("utf-8"))
        # After each file: answering the largest takes longer than most trainings.
        state = {"format_version": 1, "answered": answered, "filled": filled}
        write_atomic(out / STATE, (json.dumps(state, indent=2) + "\n").encode("utf-8"))
    write_atomic(out / ARCHIVE, _zip(folder))
    ax = answer_ax(out, data, tell=tell) if "mnli" in finished else None
    return Submission(out / ARCHIVE, filled, ax)


@dataclass(frozen=True, slots=True)
class _Known:
    """Answers of a run before: file -> stamp of the model, and what was filled."""

    answered: dict[str, str]
    filled: dict[str, str]


def _known(out: Path) -> _Known:
    if check_file(out / STATE) is None:
        return _Known({}, {})
    values = read_json(out / STATE, max_bytes=_MAX_BYTES)
    answered, filled = values.get("answered"), values.get("filled")
    if not isinstance(answered, dict) or not isinstance(filled, dict):
        return _Known({}, {})
    return _Known(cast("dict[str, str]", answered), cast("dict[str, str]", filled))


def _stamp(run: Path) -> str:
    """Return what changes when the model of a run does."""
    return str((RunFolder(run).best / "model.safetensors").stat().st_mtime_ns)


def _first(folder: Path | None, names: tuple[str, ...]) -> Path | None:
    if folder is None:
        return None
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _answer(run: Path, test: Path, file: AnswerFile) -> dict[int, str]:
    """Return the answers by index."""
    table, texts = _rows(test, file.reader)
    predictor = Predictor.load(run)
    task = cast("SequenceClassification", predictor.required_task)
    answers: dict[int, str] = {}
    for start in range(0, len(texts), _CHUNK):
        examples = texts[start : start + _CHUNK]
        for (index, _), prediction in zip(
            examples, task.decode(predictor.logits([e for _, e in examples])), strict=True
        ):
            if isinstance(prediction.label, float):
                low, high = SCORE_RANGE
                answers[index] = f"{min(max(prediction.label, low), high):.3f}"
            else:
                answers[index] = str(prediction.label)
    if not answers:
        raise DataError("the file has no usable row", path=table.path)
    return answers


def _rows(test: Path, reader: str) -> tuple[Table, list[tuple[int, Example]]]:
    """Return a test table, and (index, texts) of its rows; the index is the file's own."""
    if reader == "ax" and test.name == "diagnostic-full.tsv":
        table, columns = _full_diagnostic(test), ("Premise", "Hypothesis")
    else:
        source = read_glue(test, ReadOptions(on_bad_row="skip"), name=reader)
        table, columns = source.train, cast("tuple[str, ...]", source.text_columns)
    found: list[tuple[int, Example]] = []
    for number, row in enumerate(table.rows):
        index = str(row.values.get("index", number)).strip()
        texts = [str(row.values.get(column) or "") for column in columns]
        pair = texts[1] if len(texts) > 1 else None
        if index.isascii() and index.isdigit() and len(index) < 8:
            found.append((int(index), Example(texts[0], pair, None, row.path, row.line)))
    return table, found


def answer_ax(out: Path, data: Path, *, tell: Callable[[str], None]) -> float | None:
    """Return the Matthews correlation of the model of MNLI on the labelled diagnostic set.

    Returns:
        None where no copy with labels is there: `diagnostic-full.tsv`, or a column `label`.
    """
    place = find_folder(data, "AX")
    for name in ("diagnostic-full.tsv", *AX.tests):
        path = _first(place, (name,))
        if path is None:
            continue
        try:
            table, rows = _rows(path, "ax")
        except DataError:
            continue
        column = next((c for c in table.columns if c.lower() in ("label", "gold_label")), None)
        if column is None:
            continue
        predictor = Predictor.load(out / "mnli")
        task = predictor.required_task
        names: Mapping[str, int] = {name: i for i, name in task.config_labels().items()}
        truth = [names.get(str(row.values[column])) for row in table.rows]
        if None in truth or len(truth) != len(rows):
            unknown = sorted({str(row.values[column]) for row in table.rows} - set(names))
            tell(f"AX        {path.name} has labels that the model of MNLI lacks: {unknown[:3]}")
            return None
        guess = predictor.logits([example for _, example in rows]).argmax(axis=1)
        labels = np.array(truth, dtype=np.int64)
        return matthews(confusion_matrix(labels, guess, len(names)))
    return None


def _full_diagnostic(path: Path) -> Table:
    table = read_table(
        path, format="tsv", delimiter="\t", quoting=False, header=True, on_bad_row="skip"
    )
    missing = {"Premise", "Hypothesis", "Label"} - set(table.columns)
    if missing:
        raise DataError(
            f"this is not the labelled diagnostic set: it lacks the column {min(missing)!r}",
            path=path,
            line=1,
        )
    return table


def _zip(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.glob("*.tsv")):
            info: Any = zipfile.ZipInfo(path.name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes())
    return buffer.getvalue()
