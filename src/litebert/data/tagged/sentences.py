"""Sentences given as words with tags become records, once the scheme of their file is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from litebert.data.rows import BadRows, text_problem
from litebert.data.tagged.record import Span, TaggedText, join_words
from litebert.data.tagged.schemes import SchemeFinding, entities, find_scheme

__all__ = ["WordSentence", "records_of_sentences"]


@dataclass(frozen=True, slots=True)
class WordSentence:
    """A sentence as a file has it.

    Attributes:
        words: at least one, none empty.
        tags: as many; None: not labelled.
        lines: 1-based line of each word.
        document: number of its document in the file; None: unknown.
        intent: what the sentence asks for, where the file says so.
        id: name; None: its number in the file.
    """

    words: list[str]
    tags: list[str] | None
    lines: Sequence[int]
    document: int | None = None
    intent: str | None = None
    id: str | None = None


def records_of_sentences(
    sentences: Sequence[WordSentence], bad_rows: BadRows, path: Path, *, labelled: bool
) -> tuple[list[TaggedText], list[str]]:
    """Return the records of one file, and what was found out about its tags.

    Without `labelled`, tags that make no sense are no fault: the records then have no spans.

    Args:
        sentences: in file order.
        bad_rows: receives sentences that cannot be used.
        path: their file.
        labelled: tags are needed.

    Raises:
        DataError: a bad sentence under the policy "error".
    """
    usable = [s for s in sentences if _is_usable(s, bad_rows, labelled=labelled)]
    tagged = [s.tags for s in usable if s.tags is not None]
    finding = find_scheme(tagged)
    if finding.slips and not labelled:
        return [_record(s, None, path, n) for n, s in enumerate(usable, 1)], []
    dropped = _report(usable, finding, bad_rows)
    parts = iter(finding.parts)
    records: list[TaggedText] = []
    first_with: dict[str, str] = {}
    position = 0
    for number, sentence in enumerate(usable, start=1):
        found = None
        if sentence.tags is not None:
            found = entities(next(parts))
            position += 1
            if position - 1 in dropped:
                continue
        record = _record(sentence, found, path, number)
        if sentence.document is None:  # equal sentences stay on one side of a split
            group = first_with.setdefault(record.text, record.group)
            if group != record.group:
                record = _record(sentence, found, path, number, group)
        records.append(record)
    return records, [f"{path.name}: {finding.reason}"] if tagged else []


def _is_usable(sentence: WordSentence, bad_rows: BadRows, *, labelled: bool) -> bool:
    cells = [*sentence.words, *(sentence.tags or ())]
    if text_problem("\n".join(cells)) is not None:  # rarely: then look which one
        for line, cell in zip([*sentence.lines, *sentence.lines], cells, strict=False):
            problem = text_problem(cell)
            if problem is not None:
                bad_rows.add(line, problem)
                return False
    if labelled and sentence.tags is None:
        bad_rows.add(sentence.lines[0], "the sentence has no tags; give one for each word")
        return False
    return True


def _report(
    sentences: Sequence[WordSentence], finding: SchemeFinding, bad_rows: BadRows
) -> set[int]:
    """Report each sentence with a slip once; return their numbers among the tagged ones."""
    dropped: set[int] = set()
    tagged = [sentence for sentence in sentences if sentence.tags is not None]
    for slip in finding.slips:
        if slip.sentence not in dropped:
            dropped.add(slip.sentence)
            bad_rows.add(tagged[slip.sentence].lines[slip.word], slip.reason)
    return dropped


def _record(
    sentence: WordSentence,
    found: list[tuple[int, int, str]] | None,
    path: Path,
    number: int,
    group: str | None = None,
) -> TaggedText:
    text, words = join_words(sentence.words)
    if group is None:
        document = sentence.document
        group = f"sentence {number}" if document is None else f"document {document}"
    spans = None
    if found is not None:
        spans = tuple(Span(words[a][0], words[b - 1][1], label) for a, b, label in found)
    return TaggedText(
        text, words, spans, sentence.id or str(number), group, path, sentence.lines[0],
        sentence.intent,
    )  # fmt: skip
