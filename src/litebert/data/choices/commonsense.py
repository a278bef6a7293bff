"""CommonsenseQA and JCommonsenseQA: JSON lines, one question with five choices each."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from litebert.data.choices.labelled import has_labelled_choices, read_labelled
from litebert.data.choices.parts import Part, close_part, make_source
from litebert.data.choices.table import ChoiceColumns, read_rows
from litebert.data.layouts import find_split_files
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource
from litebert.data.rows import BadRows
from litebert.errors import DataError

from litebert.data.choices.record import ChoiceRecord  # isort: skip

__all__ = ["read_commonsense_qa", "read_jcommonsenseqa"]

_JAPANESE: Final = ChoiceColumns(
    question="question", choices=tuple(f"choice{i}" for i in range(5)), answer="label", id="q_id"
)


def read_commonsense_qa(
    path: Path, options: ReadOptions, labelled: bool
) -> RecordSource[ChoiceRecord]:
    """Read CommonsenseQA in its published or its flat layout: a file, or a folder by split names.

    Raises:
        DataError: nothing usable, or a bad question under the policy "error".
    """

    def read(part: str, file: Path) -> Part | None:
        table = options.read(file)
        if not any(has_labelled_choices(row.values) for row in table.rows):
            raise DataError(
                "this is no CommonsenseQA: no record has choices with labels and texts (columns: "
                f"{', '.join(table.columns)[:200]}); for a plain table use --task choice",
                path=file,
            )
        bad_rows = BadRows(file, options.on_bad_row)
        bad_rows.skipped.extend(table.skipped)
        records = read_labelled(table, bad_rows, labelled)
        return close_part(part, records, bad_rows, sha256=table.sha256, labelled=labelled)

    return make_source(_files(path), read, ("CommonsenseQA",))


def read_jcommonsenseqa(
    path: Path, options: ReadOptions, labelled: bool
) -> RecordSource[ChoiceRecord]:
    """Read JCommonsenseQA: `q_id, question, choice0 ... choice4, label` with labels 0 to 4.

    Raises:
        DataError: nothing usable, or a bad question under the policy "error".
    """

    def read(part: str, file: Path) -> Part | None:
        table = options.read(file)
        missing = [
            name for name in (_JAPANESE.question, *_JAPANESE.choices) if name not in table.columns
        ]
        if missing:
            raise DataError(
                f"this is no JCommonsenseQA: it lacks {missing[0]!r} (columns: "
                f"{', '.join(table.columns)[:200]}); for a plain table use --task choice",
                path=file,
            )
        bad_rows = BadRows(file, options.on_bad_row)
        bad_rows.skipped.extend(table.skipped)
        records = read_rows(table, _JAPANESE, "from 0", bad_rows, labelled)
        return close_part(part, records, bad_rows, sha256=table.sha256, labelled=labelled)

    return make_source(_files(path), read, ("JCommonsenseQA",))


def _files(path: Path) -> dict[str, Path]:
    files = find_split_files(path) if path.is_dir() else {"train": path}
    if not files:
        raise DataError(
            "no file in this folder is named after a split (train, valid, dev, test)", path=path
        )
    return files
