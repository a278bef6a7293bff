"""ATIS and SNIPS as usually published: `seq.in`, `seq.out` and `label`, line by line."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from litebert.data.lines import read_lines
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSplit
from litebert.data.rows import BadRows
from litebert.data.tagged.record import TaggedText
from litebert.data.tagged.sentences import WordSentence, records_of_sentences
from litebert.errors import DataError

__all__ = ["INPUTS", "read_slot_folder"]

INPUTS: Final = "seq.in"
_BLANKS = re.compile(r"[ \t]+")


def read_slot_folder(
    folder: Path, options: ReadOptions, *, labelled: bool
) -> tuple[RecordSplit[TaggedText], list[str]]:
    """Read words, slot tags and intents of one folder.

    Args:
        folder: has `seq.in`; `seq.out` and `label` too unless `labelled` is False.
        options: encoding and policy.
        labelled: tags and intents are needed.

    Raises:
        DataError: a file is missing, the files differ in length, or a bad sentence.
    """
    path = folder / INPUTS
    inputs, _, digest = read_lines(path, options.encoding)
    columns: list[list[str] | None] = []
    for name in ("seq.out", "label"):
        other = folder / name
        if not other.is_file() and not labelled:
            columns.append(None)
            continue
        lines, _, more = read_lines(other, options.encoding)
        digest = sha256((digest + more).encode()).hexdigest()
        if len(lines) != len(inputs):
            raise DataError(
                f"{len(lines):,} lines, but {INPUTS} has {len(inputs):,}; line n of one must belong "
                "to line n of the other",
                path=other,
                line=min(len(lines), len(inputs)) + 1,
            )
        columns.append(lines)
    outputs, intents = columns
    bad_rows = BadRows(path, options.on_bad_row)
    sentences: list[WordSentence] = []
    for index, line in enumerate(inputs):
        words = [word for word in _BLANKS.split(line) if word]
        tags = None if outputs is None else outputs[index].split()
        intent = None if intents is None else intents[index].strip()
        if not words:
            bad_rows.add(index + 1, "the line has no word; remove it from all files")
        elif tags is not None and len(tags) != len(words):
            bad_rows.add(
                index + 1,
                f"{len(words)} words, but seq.out has {len(tags)} tags in this line; give each "
                "word one tag",
            )
        elif intent == "":
            bad_rows.add(index + 1, "the line has no intent in the file 'label'; give one")
        else:
            lines = [index + 1] * len(words)
            sentences.append(WordSentence(words, tags, lines, intent=intent))
    records, notes = records_of_sentences(sentences, bad_rows, path, labelled=labelled)
    return RecordSplit(records, path, digest, tuple(bad_rows.skipped)), notes
