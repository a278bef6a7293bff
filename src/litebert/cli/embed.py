"""`litebert embed`: texts in, one vector each out, in order."""

from __future__ import annotations

import contextlib
import stat
import sys
from collections.abc import Generator
from enum import StrEnum
from pathlib import Path
from typing import IO

import typer

from litebert.cli.ended import clean_end
from litebert.cli.output import say, write_lines
from litebert.errors import DataError, SettingsError


class Pooling(StrEnum):
    """How the vectors of tokens become one."""

    mean = "mean"
    cls = "cls"


@clean_end()
def embed(
    model: str | None = typer.Argument(
        None,
        metavar="[MODEL]",
        help="Model folder, run folder or export; left out: litebert-small-en.",
    ),
    data: str | None = typer.Argument(
        None,
        metavar="[FILE|-]",
        help="A table, a .txt or .jsonl file of lines, or - for stdin, which is the default.",
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Write here: .npy, .safetensors, .jsonl or .parquet; else JSON lines to stdout.",
    ),
    text_column: str | None = typer.Option(
        None, "--text-column", help="Column or JSON field with the text."
    ),
    dim: int | None = typer.Option(
        None, "--dim", min=2, help="Keep the first numbers of each vector only."
    ),
    normalize: bool = typer.Option(
        True, "--normalize/--no-normalize", help="Scale vectors to length 1."
    ),
    pooling: Pooling = typer.Option(
        Pooling.mean, "--pooling", help="mean over the tokens, or cls: the first token."
    ),
    max_length: int | None = typer.Option(
        None, "--max-length", min=3, help="Tokens that are kept of a text."
    ),
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of the input."),
    batch_tokens: int = typer.Option(
        2048, "--batch-tokens", min=1, help="Tokens of one forward pass."
    ),
) -> None:
    """Turn texts into vectors, in the order they come in.

    Row i of the output belongs to row i of the input; a blank line has a vector too.
    """
    from litebert.cli.default_model import model_and_rest
    from litebert.recipes.embed import (
        Embedder,
        EmbedOptions,
        embedded,
        table_texts,
        texts_of_stream,
    )
    from litebert.recipes.likeness import Likeness, likeness_hint
    from litebert.recipes.vector_files import json_lines, require_form, write_vectors

    source, (data,) = model_and_rest((model, data))
    data = data or "-"
    if out is not None:
        require_form(out)
        _refuse_out(out, data)
    is_stream = _is_stream(data)
    options = EmbedOptions(
        dim=dim,
        normalize=normalize,
        pooling=pooling.value,
        max_length=max_length,
        batch_tokens=batch_tokens,
    )
    embedder = Embedder.load(source, options)
    with _opened(data, is_stream) as stream:
        if stream is not None:
            name = "<stdin>" if data == "-" else data
            texts = texts_of_stream(stream, text_column, encoding=encoding, name=name)
        else:
            texts, notes = table_texts(Path(data), text_column, encoding=encoding)
            for note in notes:
                say(f"note      {note}")
        likeness = Likeness()
        blocks = likeness.watch(embedded(embedder, texts))
        if out is None:
            write_lines(json_lines(blocks))
        else:
            count = write_vectors(out, blocks, embedder.width)
            say(f"wrote {count:,} vectors of {embedder.width} numbers to {out}")
    hint = likeness_hint(str(source), embedder.trained_for, likeness.mean_cosine)
    if hint:
        say(f"hint      {hint}")


@contextlib.contextmanager
def _opened(data: str, is_stream: bool) -> Generator[IO[bytes] | None]:
    """The stream of lines, if the input is one."""
    if data == "-":
        if sys.stdin.isatty():
            say("type one text a line; end with Ctrl-D")
        yield sys.stdin.buffer
    elif is_stream:
        with Path(data).open("rb") as stream:
            yield stream
    else:
        yield None


def _is_stream(data: str) -> bool:
    """Whether the input is read line by line; a table is read whole."""
    if data == "-":
        return True
    try:
        mode = Path(data).stat().st_mode
    except (OSError, ValueError) as error:
        raise DataError(
            "there is no such file; pipe it in if it is a text: echo TEXT | litebert embed MODEL",
            path=Path(data[:200]),
        ) from error
    if stat.S_ISDIR(mode):
        raise SettingsError(f"{data} is a folder; give a file")
    return not stat.S_ISREG(mode) or data.lower().endswith((".txt", ".jsonl", ".ndjson"))


def _refuse_out(out: Path, data: str) -> None:
    if out.is_dir():
        raise SettingsError(f"--out {out} is a folder; name a file")
    if data != "-" and out.exists() and Path(data).exists() and out.samefile(data):
        raise SettingsError(f"--out {out} is the input itself; name another file")
