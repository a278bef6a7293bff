"""`litebert search`: the lines of a file that are nearest in meaning to a query."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from litebert.cli.ended import clean_end
from litebert.cli.output import say, show, write_lines
from litebert.errors import SettingsError

_SHOWN_CHARACTERS = 160


@clean_end()
def search(
    model: str | None = typer.Argument(
        None,
        metavar="[MODEL]",
        help="Model folder, run folder or export; left out: litebert-small-en.",
    ),
    corpus: str | None = typer.Argument(
        None, metavar="CORPUS", help="A table, or a .txt file of lines."
    ),
    query: str | None = typer.Argument(None, metavar="[QUERY]", help="What to look for."),
    queries: Path | None = typer.Option(
        None, "--queries", help="File with many queries, read like the corpus."
    ),
    top: int = typer.Option(10, "--top", "-k", min=1, help="Texts to find for each query."),
    text_column: str | None = typer.Option(
        None, "--text-column", help="Column of the corpus with the text."
    ),
    query_column: str | None = typer.Option(
        None, "--query-column", help="Column of --queries with the text."
    ),
    is_json: bool = typer.Option(False, "--json", help="One JSON object for each query."),
    index: Path | None = typer.Option(
        None, "--index", help="Keep the vectors in this .safetensors file."
    ),
    cache: bool = typer.Option(
        True, "--cache/--no-cache", help="Keep the vectors beside the corpus for the next search."
    ),
    dim: int | None = typer.Option(
        None, "--dim", min=2, help="Compare the first numbers of each vector only."
    ),
    max_length: int | None = typer.Option(
        None, "--max-length", min=3, help="Tokens that are kept of a text."
    ),
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of the corpus."),
) -> None:
    """Find the texts of a file that are nearest to a query, by the cosine of their vectors.

    Every text is compared. The vectors are kept in .litebert-index beside the corpus, and made anew
    when the model, the file or an option has changed.
    """
    from litebert.cli.default_model import model_and_rest
    from litebert.recipes.embed import Embedder, EmbedOptions
    from litebert.recipes.likeness import SAMPLE, Likeness, likeness_hint
    from litebert.recipes.search import Hit, open_index, read_corpus
    from litebert.recipes.search import search as find

    source, (place, query) = model_and_rest((model, corpus, query))
    if place is None:
        raise SettingsError("there is nothing to search in: give CORPUS, a table or a .txt file")
    if (query is None) == (queries is None):
        raise SettingsError("give one QUERY, or a file of them with --queries")
    if query is not None and not query.strip():
        raise SettingsError("the QUERY is blank; say what to look for")
    if query_column is not None and queries is None:
        raise SettingsError("--query-column belongs to --queries")
    if index is not None and not cache:
        raise SettingsError("--index keeps the vectors and --no-cache does not; choose one")
    embedder = Embedder.load(source, EmbedOptions(dim=dim, max_length=max_length))
    texts = read_corpus(Path(place), text_column, encoding=encoding)
    wanted = [query] if query is not None else []
    if queries is not None:
        wanted = read_corpus(queries, query_column, option="query").texts
    found = open_index(embedder, texts, path=index, is_kept=cache)
    for note in (*texts.notes, *found.notes):
        say(f"note      {note}")
    if found.is_new:
        kept = f", kept in {found.path}" if found.path else ""
        say(f"index     {len(texts.texts):,} texts{kept}")
    first = next(found.blocks(SAMPLE), None)
    likeness = Likeness()
    if first is not None:
        likeness.add(texts.texts[: len(first)], first)
    hint = likeness_hint(str(source), embedder.trained_for, likeness.mean_cosine)
    if hint:
        say(f"hint      {hint}")

    def as_json(text: str, hits: list[Hit]) -> str:
        values = {"query": text, "hits": [hit.to_json() for hit in hits]}
        return json.dumps(values, ensure_ascii=False) + "\n"

    results = zip(wanted, find(embedder, texts, found, wanted, top), strict=True)
    if is_json:
        write_lines(as_json(text, hits) for text, hits in results)
        return
    for number, (text, hits) in enumerate(results):
        if queries is not None:
            show(("\n" if number else "") + f"query: {_short(text)}")
        for hit in hits:
            show(f"{hit.rank:>3}  {hit.score:.4f}  {place}:{hit.line}  {_short(hit.text)}")


def _short(text: str) -> str:
    """A text in one line of readable length."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
