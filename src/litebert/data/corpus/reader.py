"""A corpus as one stream of documents, whatever its files are, in memory that does not grow."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final, cast

from litebert.data.compressed import COMPRESSED_SUFFIXES
from litebert.data.corpus.archives import tar_members, zip_members
from litebert.data.corpus.assemble import Piece, assemble
from litebert.data.corpus.decoding import BAD_BYTE, lines_of, read_all_text
from litebert.data.corpus.document import Document, FaultHandler, Position
from litebert.data.corpus.faults import Refused, Reporter
from litebert.data.corpus.formats import Kind, kind_of
from litebert.data.corpus.inputs import corpus_files
from litebert.data.corpus.json_text import MAX_JSON_CHARS, json_documents, json_line_documents
from litebert.data.corpus.markup import markdown_lines
from litebert.data.corpus.options import CorpusOptions
from litebert.data.corpus.parquet import parquet_documents
from litebert.data.corpus.streams import (
    PEEK_BYTES,
    Allowance,
    ByteStream,
    decompressed,
    stream_of,
)
from litebert.errors import SettingsError

__all__ = ["read_documents"]

_WIDE: Final = ("utf-16", "utf-32")


def read_documents(
    paths: Sequence[Path | str],
    options: CorpusOptions | None = None,
    *,
    on_fault: FaultHandler,
    start: Position | None = None,
) -> Iterator[Document]:
    """Yield the documents of files and folders, in the order of `corpus_files(paths)`.

    Reads text, Markdown, JSON lines, JSON, Parquet; gzip, xz, zstd and bz2 around them; and ZIP
    and tar archives of them. A document with NUL characters, lone surrogates or too many
    replacement characters is dropped and counted; what is no text is left out and counted where
    it was found in a folder or archive, and an error where it was named.

    Args:
        paths: files and folders.
        options: how files become documents.
        on_fault: told about everything that is left out or cut.
        start: where to go on, usually `document.position.after()`; faults before it are not told
            again. The files must be the same.

    Raises:
        DataError: a path or file that cannot be used, or a fault of the content under the policy
            "error"; names file, member, and line or byte.
        SettingsError: `start` is not in this corpus.
    """
    options = options or CorpusOptions()
    files = corpus_files(paths)
    begin = start or Position(0, 0)
    if not 0 <= begin.file < len(files) + 1 or begin.document < 0:
        raise SettingsError(
            f"cannot go on at file {begin.file}: the corpus has {len(files)} files; give the same "
            "files in the same order"
        )
    named = {Path(path) for path in paths}
    return _read_all(files, named, options, on_fault, begin)


def _read_all(
    files: Sequence[Path],
    named: set[Path],
    options: CorpusOptions,
    on_fault: FaultHandler,
    begin: Position,
) -> Iterator[Document]:
    for index in range(begin.file, len(files)):
        path = files[index]
        first = begin.document if index == begin.file else 0
        is_strict = options.on_bad == "error"
        report = Reporter(path, on_fault, is_strict=is_strict, first=first)
        try:
            for text, line in _read_file(path, options, report):
                if report.number >= first and _is_usable(text, line, options, report):
                    yield Document(text, path, report.member, report.number, line, index)
                report.number += 1
        except Refused as error:
            is_found = error.is_foreign and path not in named
            if is_found or not is_strict:
                report.drop(error.kind, error.reason, line=error.line, at=False)
            else:
                raise report.error(error.reason, error.line) from error


def _is_usable(text: str, line: int, options: CorpusOptions, report: Reporter) -> bool:
    """Tell whether a document is worth keeping; a text of "" was told about where it was found."""
    if not text:
        return False
    if text.isspace():
        report.drop("empty", "the document holds no text", line=line)
        return False
    if "\0" in text:
        report.drop("NUL", "the document holds a NUL character; it is left out", line=line)
        return False
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        if text[error.start] == BAD_BYTE:
            kind, what = "bad bytes", f"bytes that are not {options.encoding or 'utf-8'}"
        else:
            kind, what = "lone surrogate", f"the lone surrogate U+{ord(text[error.start]):04X}"
        report.drop(kind, f"the document holds {what}; it is left out", line=line)
        return False
    bad = text.count("\ufffd")
    if bad > options.max_replacement_fraction * len(text):
        report.drop(
            "replacement characters",
            f"{bad:,} of {len(text):,} characters are U+FFFD: it was decoded wrongly earlier, and "
            "is left out",
            line=line,
        )
        return False
    return True


def _read_file(path: Path, options: CorpusOptions, report: Reporter) -> Iterator[Piece]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Refused("not text", "a device, pipe or folder; give a regular file",
                          is_foreign=True)  # fmt: skip
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags), "rb", buffering=0)
    except OSError as error:
        raise Refused("unreadable", f"cannot be read: {error.strerror}") from error
    with file:
        allowance = Allowance(status.st_size, options.max_file_bytes)
        stream = stream_of(cast(IO[bytes], file))
        if not stream.peek(1):
            raise Refused("empty", "the file is empty", is_foreign=True)
        clear = decompressed(stream, allowance)
        name = _clear_name(path.name, is_packed=clear is not stream)
        kind = _kind(clear, name, options)
        if kind == "tar":
            members = tar_members(clear, options.max_members, report)
        elif kind == "zip" and clear is stream:
            members = zip_members(cast(IO[bytes], file), allowance, options.max_members, report)
        elif kind == "parquet" and clear is stream:
            yield from parquet_documents(
                path, options.text_field, options.max_document_chars, report
            )
            return
        else:
            yield from _read_stream(clear, kind, options, report)
            return
        for member, content in members:
            yield from _read_member(member, content, allowance, options, report)
        report.member = None


def _read_member(
    name: str, content: ByteStream, allowance: Allowance, options: CorpusOptions, report: Reporter
) -> Iterator[Piece]:
    if any(part.startswith(".") and part != "." for part in name.split("/")):
        return  # hidden, as in folders
    if not content.peek(1):
        return
    try:
        clear = decompressed(content, allowance)
        name = _clear_name(name, is_packed=clear is not content)
        kind = _kind(clear, name, options)
        if kind in ("zip", "tar"):
            raise Refused("nested archive", "an archive in an archive; unpack the outer one",
                          is_foreign=True)  # fmt: skip
        yield from _read_stream(clear, kind, options, report)
    except Refused as error:
        if not error.is_foreign:
            raise
        report.drop(error.kind, error.reason, at=False)


def _kind(stream: ByteStream, name: str, options: CorpusOptions) -> Kind:
    is_wide = (options.encoding or "").startswith(_WIDE)
    return kind_of(stream.peek(PEEK_BYTES)[:PEEK_BYTES], name, is_wide=is_wide)


def _clear_name(name: str, *, is_packed: bool) -> str:
    name = name.lower()
    suffix = next((end for end in COMPRESSED_SUFFIXES if name.endswith(end)), "")
    return name.removesuffix(suffix) if is_packed else name


def _read_stream(
    stream: ByteStream, kind: Kind, options: CorpusOptions, report: Reporter
) -> Iterator[Piece]:
    most = options.max_document_chars
    if kind in ("parquet", "zip"):
        raise Refused(
            "nested archive",
            f"a {kind} file inside an archive or compression cannot be streamed; unpack it",
            is_foreign=True,
        )
    if kind == "json":
        text = read_all_text(stream, options.encoding, report, MAX_JSON_CHARS)
        yield from json_documents(text, options.text_field, most, report)
    elif kind == "jsonl":
        lines = lines_of(stream, options.encoding, report, MAX_JSON_CHARS)
        yield from json_line_documents(lines, options.text_field, most, report)
    else:
        lines = lines_of(stream, options.encoding, report, most)
        rule = options.documents
        if kind == "markdown":
            lines = markdown_lines(lines)
            rule = "file" if rule == "auto" else rule
        elif rule == "auto":
            rule = "wikitext" if kind == "wikitext" else "blank-line"
        yield from assemble(lines, rule, most, report)
