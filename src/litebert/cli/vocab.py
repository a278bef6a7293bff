"""`litebert vocab CORPUS... --out DIR`: learn the pieces of a language from running text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from litebert.cli.choices import BadRow
from litebert.cli.output import say, show, show_json, visible

if TYPE_CHECKING:
    from litebert.recipes.vocabulary import VocabularyProgress, VocabularyReport

LINE_SECONDS: Final = 10.0
SHOWN_PARTS: Final = 30


def vocab(
    corpus: list[Path] = typer.Argument(
        metavar="CORPUS...",
        help="Text, Markdown, JSON lines, Parquet; compressed, in archives or in folders.",
    ),
    out: Path = typer.Option(..., "--out", help="Folder for the tokenizer files; must be new."),
    size: int = typer.Option(30_000, "--size", min=50, help="Pieces of the vocabulary."),
    script: str = typer.Option(
        "english",
        "--script",
        help="english, accents, cased, cyrillic, greek, indic, arabic, thai, cjk, multilingual. "
        "Only english strips accents.",
    ),
    coverage: float | None = typer.Option(
        None, "--coverage", help="Share of characters that must be known; else the preset's."
    ),
    max_bytes: int = typer.Option(
        50_000_000, "--max-bytes", help="Learn from a random sample of so many bytes."
    ),
    max_sentences: int = typer.Option(
        10_000_000, "--max-sentences", help="Learn from at most so many sentences."
    ),
    seed: int = typer.Option(12345, "--seed", help="Of the sample."),
    text_field: str = typer.Option("text", "--text-field", help="Name of the text in records."),
    documents: str = typer.Option(
        "auto", "--documents", help="End of a document: auto, blank-line, file, line, wikitext."
    ),
    sentences: str = typer.Option(
        "paragraphs", "--sentences", help="Sentence splitter: paragraphs, lines, sentencex."
    ),
    language: str = typer.Option("en", "--language", help="Language for sentencex."),
    encoding: str | None = typer.Option(
        None, "--encoding", help="Encoding of text files; else UTF-8 or by byte-order mark."
    ),
    on_bad: BadRow = typer.Option(
        BadRow.skip, "--on-bad", help="What cannot be read: skip (counted and shown), or error."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON."),
) -> None:
    """Learn a SentencePiece vocabulary from your own text."""
    from litebert.recipes.vocabulary import VocabularySettings, make_vocabulary
    from litebert.settings import build_settings

    values = {
        "size": size,
        "script": script,
        "coverage": coverage,
        "max_bytes": max_bytes,
        "max_sentences": max_sentences,
        "seed": seed,
        "sentences": sentences,
        "language": language,
        "corpus": {
            "text_field": text_field,
            "documents": documents,
            "encoding": encoding,
            "on_bad": on_bad.value,
        },
    }
    settings = build_settings(VocabularySettings, values)
    report = make_vocabulary(corpus, out, settings, on_progress=_Lines())
    if as_json:
        show_json({**report.to_json(), "seconds": round(report.seconds, 1), "out": str(out)})
    else:
        _show(report, out)


class _Lines:
    """Says a line every ten seconds, and at each new phase."""

    def __init__(self) -> None:
        self._phase = "reading"
        self._next = time.monotonic() + LINE_SECONDS

    def __call__(self, progress: VocabularyProgress) -> None:
        if progress.phase == self._phase and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_SECONDS
        self._phase = progress.phase
        if progress.phase == "reading":
            say(
                f"reading   file {progress.file + 1:,} of {progress.files:,}, "
                f"{progress.documents:,} documents, {progress.characters / 1e6:,.1f} M characters"
            )
        elif progress.phase == "learning":
            say(
                f"learning  from {progress.sample_bytes / 1e6:,.1f} MB of "
                f"{progress.characters / 1e6:,.1f} M characters; about two seconds for each MB, "
                "nothing more is said until then"
            )
        else:
            say("measuring")


def _show(report: VocabularyReport, out: Path) -> None:
    for warning in report.warnings:
        say(f"warning   {warning}")
    for kind, count in report.faults.items():
        say(f"left out  {count:,} x {kind}" if kind != "cut" else f"cut       {count:,} documents")
    for example in report.examples[:3]:
        say(f"          {example}")
    sampled = "a sample of" if report.is_sampled else "all"
    show(f"{out}: {report.size:,} pieces, from {sampled} {report.sample_bytes / 1e6:,.1f} MB, "
         f"{report.documents:,} documents, {report.seconds:,.0f} s")  # fmt: skip
    show(f"{'known characters':>17}  {'pieces a word':>13}  {'unknown pieces':>14}  documents")
    rows = (report.total, *report.parts[:SHOWN_PARTS]) if len(report.parts) > 1 else report.parts
    for fit in rows:
        show(f"{fit.coverage:>17.4%}  {fit.fertility:>13.3f}  {fit.unknown_rate:>14.4%}  "
             f"{fit.documents:>9,}  {_one_line(fit.name)}")  # fmt: skip
    if len(report.parts) > SHOWN_PARTS:
        show(f"and {len(report.parts) - SHOWN_PARTS:,} more in {out / 'vocabulary.json'}")


def _one_line(name: str) -> str:
    return visible(name.replace("\n", "\\n"))
