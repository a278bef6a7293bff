"""`litebert prepare`: text files in, shards for pretraining out."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from litebert.cli.output import say, show, show_json

if TYPE_CHECKING:
    from litebert.recipes.prepare.run import PrepareOutcome, PrepareProgress

LINE_SECONDS: Final = 10.0
MANY_UNKNOWN: Final = 0.01
"""Share of unknown tokens from which the vocabulary does not fit the text."""


def prepare(
    paths: list[Path] = typer.Argument(
        metavar="PATH...",
        help="Text, Markdown, JSON lines, Parquet; compressed, archives, folders. "
        "With --inspect: a shard folder.",
    ),
    tokenizer: Path | None = typer.Option(
        None, "--tokenizer", "-t", help="Folder with the vocabulary, as `litebert vocab` writes it."
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Shard folder; new, or begun before."
    ),
    language: str = typer.Option("en", "--language", "-l", help="Language of the text (ISO code)."),
    sentences: str = typer.Option(
        "sentencex", "--sentences", help="sentencex, lines, or paragraphs."
    ),
    documents: str = typer.Option(
        "auto", "--documents", help="Where one ends: auto, blank-line, file, line, wikitext."
    ),
    text_field: str = typer.Option("text", "--text-field", help="Field of JSON and Parquet."),
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of text files."),
    on_bad: str = typer.Option(
        "skip", "--on-bad", help="What cannot be read: skip (counted, listed), or error."
    ),
    dedup: str = typer.Option(
        "none", "--dedup", help="Drop repeated documents: none, exact, or near."
    ),
    min_characters: int = typer.Option(
        1, "--min-characters", help="Drop documents with fewer characters."
    ),
    eval_fraction: float = typer.Option(
        0.0, "--eval-fraction", help="Share of documents held out in OUT/eval."
    ),
    shard_tokens: int = typer.Option(1 << 24, "--shard-tokens", help="Tokens of one shard."),
    seed: int = typer.Option(0, "--seed", help="Of the choice of held-out documents."),
    workers: int | None = typer.Option(
        None, "--workers", "-j", min=1, help="Processes; all cores by default."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
    inspect: bool = typer.Option(
        False, "--inspect", help="Prepare nothing: show training examples made of PATH's shards."
    ),
    examples: int = typer.Option(3, "--examples", help="How many --inspect shows."),
    config: Path | None = typer.Option(
        None, "--config", help="Settings of `litebert pretrain`, for --inspect."
    ),
) -> None:
    """Turn text into shards of token ids for `litebert pretrain`.

    Stop it at any time; the same command goes on where it was.
    """
    if inspect:
        show(_inspect(paths, examples, config))
        return
    if tokenizer is None or out is None:
        missing = "--tokenizer" if tokenizer is None else "--out"
        raise typer.BadParameter(
            f"{missing} is needed to prepare text; to look at shards, use --inspect"
        )
    from litebert.recipes.prepare.run import prepare_corpus
    from litebert.recipes.prepare.settings import PrepareSettings
    from litebert.settings import build_settings
    from litebert.train.stop import stop_on_signals

    settings = build_settings(
        PrepareSettings,
        {
            "corpus": {
                "documents": documents,
                "text_field": text_field,
                "encoding": encoding,
                "on_bad": on_bad,
            },
            "sentences": sentences,
            "language": language,
            "min_characters": min_characters,
            "dedup": dedup,
            "shard_tokens": shard_tokens,
            "eval_fraction": eval_fraction,
            "seed": seed,
        },
    )
    started = time.monotonic()
    with stop_on_signals() as stop:
        outcome = prepare_corpus(
            paths, tokenizer, out, settings, workers=workers, on_progress=_Lines(), stop=stop
        )
    if outcome.signal is not None:
        say("stopped; finished shards are kept, go on with the same command")
        raise typer.Exit(128 + (outcome.signal or signal.SIGTERM))
    seconds = time.monotonic() - started
    if as_json:
        show_json(_values(outcome, seconds))
    else:
        show("\n".join(_text(outcome, seconds)))


def _inspect(paths: list[Path], examples: int, config: Path | None) -> str:
    from litebert.recipes.inspect_examples import inspect_examples

    if len(paths) != 1:
        raise typer.BadParameter(f"--inspect looks at one shard folder, got {len(paths)} paths")
    if config is None:
        return inspect_examples(paths[0], examples=examples)
    from litebert.recipes.pretrain.settings import PretrainSettings
    from litebert.settings import load_settings

    chosen = load_settings(
        PretrainSettings, config, overrides=[f"data.shards={json.dumps(str(paths[0]))}"]
    )
    return inspect_examples(
        paths[0],
        examples=examples,
        objectives=chosen.objectives,
        max_length=chosen.data.max_length,
        short_fraction=chosen.data.short_fraction,
        seed=chosen.train.seed,
    )


class _Lines:
    """Says every ten seconds how far the run is."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._next = self._started + LINE_SECONDS
        self._first: int | None = None

    def __call__(self, progress: PrepareProgress) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = progress.num_bytes
            if progress.is_resumed:
                say(f"going on after {progress.documents:,} documents")
        if now < self._next:
            return
        self._next = now + LINE_SECONDS
        speed = (progress.num_bytes - self._first) / 1e6 / (now - self._started)
        say(
            f"file {progress.file:,}/{progress.files:,}  {progress.documents:,} documents  "
            f"{progress.num_bytes / 1e6:,.0f} MB of text  {speed:.1f} MB/s  "
            f"{progress.tokens:,} tokens  {progress.shards:,} shards"
        )


def _text(outcome: PrepareOutcome, seconds: float) -> list[str]:
    shards = outcome.shards
    assert shards is not None  # noqa: S101 - only a stopped run has none
    lines: list[str] = []
    if outcome.was_finished:
        lines.append(f"{outcome.folder} is finished already; nothing was done")
    lines.append(
        f"{outcome.folder}: {shards.num_tokens:,} tokens, {shards.num_sentences:,} sentences, "
        f"{shards.num_documents:,} documents in {len(shards.shards):,} shards"
    )
    if outcome.eval_shards is not None:
        held = outcome.eval_shards
        lines.append(
            f"{held.folder}: {held.num_tokens:,} tokens, {held.num_documents:,} documents held out"
        )
    if outcome.was_finished:
        return lines
    tally = outcome.tally
    for title, counts in (("dropped", tally.dropped), ("while reading", tally.faults)):
        if counts:
            listed = ", ".join(f"{count:,} x {kind}" for kind, count in sorted(counts.items()))
            lines.append(f"{title}: {listed}")
    share = tally.train.unknown / max(tally.train.tokens, 1)
    if share > MANY_UNKNOWN:
        lines.append(
            f"warning   {share:.1%} of the tokens are unknown to this vocabulary; make one from this "
            "text: litebert vocab"
        )
    speed = outcome.new_bytes / 1e6 / max(seconds, 1e-9)
    lines.append(f"{outcome.new_bytes / 1e6:,.1f} MB in {seconds:,.1f} s, {speed:.1f} MB/s")
    lines.append(f"what was dropped and why: {outcome.folder / 'report.md'}")
    return lines


def _values(outcome: PrepareOutcome, seconds: float) -> dict[str, Any]:
    shards, held = outcome.shards, outcome.eval_shards
    assert shards is not None  # noqa: S101 - only a stopped run has none
    return {
        "folder": str(outcome.folder),
        "was_finished": outcome.was_finished,
        "fingerprint": shards.fingerprint,
        "tokenizer_fingerprint": shards.tokenizer_fingerprint,
        "shards": len(shards.shards),
        "tokens": shards.num_tokens,
        "sentences": shards.num_sentences,
        "documents": shards.num_documents,
        "eval_tokens": held.num_tokens if held is not None else 0,
        "eval_documents": held.num_documents if held is not None else 0,
        "counts": None if outcome.was_finished else outcome.tally.to_json(),
        "seconds": seconds,
        "megabytes_per_second": outcome.new_bytes / 1e6 / max(seconds, 1e-9),
    }
