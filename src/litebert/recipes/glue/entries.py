"""What GLUE asks of each task: official metrics, where its files lie, and the leaderboard's files."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from litebert.data.glue import GLUE_TASKS
from litebert.errors import DataError, SettingsError

__all__ = ["AX", "ENTRIES", "AnswerFile", "GlueEntry", "choose_entries", "find_folder"]


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """One file of the leaderboard's archive.

    Attributes:
        name: without `.tsv`.
        reader: key of `GLUE_TASKS` that reads the test rows.
        tests: names of the test file, the first that exists.
        rows: answers that the leaderboard expects.
        constant: answer where there is no model or no test row.
    """

    name: str
    reader: str
    tests: tuple[str, ...]
    rows: int
    constant: str


@dataclass(frozen=True, slots=True)
class GlueEntry:
    """One task of the benchmark.

    Attributes:
        key: as in `GLUE_TASKS` and `--tasks`.
        title: as in tables.
        metrics: official ones; their mean is the score of the task.
        answers: files of the leaderboard.
        note: what a reader of its score has to know.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    answers: tuple[AnswerFile, ...]
    note: str = ""


def _entry(
    key: str, metrics: tuple[str, ...], rows: int, constant: str, note: str = ""
) -> GlueEntry:
    title = GLUE_TASKS[key].folder
    answers = (AnswerFile(title, key, GLUE_TASKS[key].test, rows, constant),)
    return GlueEntry(key, title, metrics, answers, note)


ENTRIES: Final = (
    GlueEntry(
        "mnli",
        "MNLI",
        ("accuracy", "accuracy_mismatched"),
        (
            AnswerFile("MNLI-m", "mnli", GLUE_TASKS["mnli"].test, 9796, "entailment"),
            AnswerFile(
                "MNLI-mm", "mnli_mismatched", GLUE_TASKS["mnli_mismatched"].test, 9847, "entailment"
            ),
        ),
    ),
    _entry("cola", ("matthews",), 1063, "1"),
    _entry("sst2", ("accuracy",), 1821, "1"),
    _entry("mrpc", ("f1", "accuracy"), 1725, "1"),
    _entry("stsb", ("pearson", "spearman"), 1379, "2.500"),
    _entry("qqp", ("f1", "accuracy"), 390_965, "0"),
    _entry("qnli", ("accuracy",), 5463, "entailment"),
    _entry("rte", ("accuracy",), 3000, "entailment"),
    _entry(
        "wnli", ("accuracy",), 146, "0",
        "its dev set contradicts its train set, so the constant answer is a normal result",
    ),
)  # fmt: skip
"""In the order of training: MNLI first, because others may start from it."""

AX: Final = AnswerFile(
    "AX", "ax", ("diagnostic.tsv", "AX.tsv", "diagnostic-full.tsv"), 1104, "entailment"
)
"""The diagnostic set: no task of its own, the model of MNLI answers it."""

FROM_MNLI: Final = ("rte", "stsb", "mrpc")
"""Tasks that may start from the model of MNLI. Source: paper Table 14, footnote."""

_FOLDERS: Final = {"AX": ("AX", "diagnostic", "MNLI")}


def choose_entries(names: tuple[str, ...]) -> tuple[GlueEntry, ...]:
    """Return the entries of the names, all without a name; `SST-2` and `sst2` are the same.

    Raises:
        SettingsError: no such task.
    """
    if not names:
        return ENTRIES
    known = {entry.key: entry for entry in ENTRIES}
    chosen: set[str] = set()
    for name in names:
        plain = name.lower().replace("-", "").replace("_", "").strip()
        if plain not in known:
            near = get_close_matches(plain, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise SettingsError(f"GLUE has no task {name!r:.60}; {hint}")
        chosen.add(plain)
    return tuple(entry for entry in ENTRIES if entry.key in chosen)


def find_folder(data: Path, title: str) -> Path | None:
    """Return the folder of a task in the folder of the benchmark, or None.

    Raises:
        DataError: `data` is no folder.
    """
    if not data.is_dir():
        raise DataError("give the folder that holds CoLA, SST-2, MRPC, ... as folders", path=data)
    for name in _FOLDERS.get(title, (title,)):
        if (data / name).is_dir():
            return data / name
    return None
