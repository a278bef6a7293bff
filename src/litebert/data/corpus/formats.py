"""What a file is, by its first bytes and its name: a kind of text that can be read, or not."""

from __future__ import annotations

import codecs
import json
import re
from typing import Final, Literal

from litebert.data.corpus.assemble import wiki_heading
from litebert.data.corpus.faults import Refused

__all__ = ["Kind", "kind_of"]

Kind = Literal["text", "wikitext", "markdown", "jsonl", "json", "parquet", "zip", "tar"]

_MARKDOWN: Final = (".md", ".markdown")
_JSON_LINES: Final = (".jsonl", ".ndjson")
_FOREIGN_STARTS: Final = (
    (b"%PDF", "a PDF", "extract its text first"),
    (b"\x89PNG", "an image", "give text"),
    (b"\xff\xd8\xff", "an image", "give text"),
    (b"GIF8", "an image", "give text"),
    (b"\xd0\xcf\x11\xe0", "an old Office file", "save it as text"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-zip archive", "unpack it"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it"),
    (b"SQLite format 3\x00", "an SQLite database", "export a table as JSON lines"),
    (b"ARROW1", "an Arrow file", "write it as Parquet"),
    (b"\x7fELF", "a program", "give text"),
    (b"\x80\x04\x95", "a pickle", "write its text as JSON lines"),
)
_FOREIGN_ENDS: Final = {
    **dict.fromkeys(
        (".csv", ".tsv", ".xlsx", ".xls", ".ods"),
        ("a table", "write its text column as JSON lines or Parquet"),
    ),
    **dict.fromkeys(
        (".xml", ".html", ".htm", ".xhtml", ".epub", ".docx", ".odt", ".pptx", ".rtf", ".tex"),
        ("a document with markup", "extract its text first"),
    ),
    **dict.fromkeys(
        (".py", ".js", ".ts", ".c", ".h", ".cpp", ".java", ".rs", ".go", ".sh", ".css", ".sql"),
        ("a program", "give text; rename it to .txt if it is meant as text"),
    ),
    **dict.fromkeys(
        (".toml", ".yaml", ".yml", ".ini", ".cfg", ".lock", ".sha256"),
        ("a settings file", "give text; rename it to .txt if it is meant as text"),
    ),
}
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROL_FRACTION: Final = 0.02
_WIDE_BOMS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_TAR_MAGIC: Final = slice(257, 262)


def kind_of(start: bytes, name: str, *, is_wide: bool) -> Kind:
    """Return the kind of a file or member.

    Args:
        start: its first bytes, after decompression.
        name: its name in lower case, without the suffix of a compression.
        is_wide: the user told an encoding with two or four bytes a character.

    Raises:
        Refused: nothing that text can be read from; `is_foreign` is set.
    """
    for magic, what, remedy in _FOREIGN_STARTS:
        if start.startswith(magic):
            raise _foreign(what, remedy)
    suffix = "." + name.rpartition(".")[2] if "." in name else ""
    if suffix in _FOREIGN_ENDS:
        raise _foreign(*_FOREIGN_ENDS[suffix])
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if start[_TAR_MAGIC] == b"ustar" or suffix in (".tar", ".tgz", ".txz", ".tbz2", ".tzst"):
        return "tar"
    _refuse_binary(start, is_wide=is_wide)
    if suffix in _MARKDOWN:
        return "markdown"
    if suffix in _JSON_LINES:
        return "jsonl"
    if suffix == ".json" or start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _kind_of_json(start, is_named=suffix == ".json")
    return _kind_of_text(start)


def _kind_of_text(start: bytes) -> Kind:
    for line in start.decode("utf-8", errors="ignore").lstrip("\ufeff").split("\n"):
        if line.strip():
            heading = wiki_heading(line)
            return "wikitext" if heading is not None and heading[0] == 1 else "text"
    return "text"


def _kind_of_json(start: bytes, *, is_named: bool) -> Kind:
    head, newline, rest = start.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")
    try:
        is_object = isinstance(json.loads(head), dict)
    except (ValueError, RecursionError):
        return "json" if is_named else "text"
    if is_object and (rest.strip() or not is_named):
        return "jsonl"
    return "json" if is_named or not newline else "text"


def _refuse_binary(start: bytes, *, is_wide: bool) -> None:
    if is_wide or start.startswith(_WIDE_BOMS):
        return
    controls = len(_CONTROLS.findall(start))
    if controls > 3 + _MAX_CONTROL_FRACTION * len(start):
        hint = (
            "; UTF-16 without a byte-order mark? Tell --encoding utf-16-le or utf-16-be"
            if 3 * start.count(0) > len(start)
            else ""
        )
        raise _foreign("binary", "give text" + hint)


def _foreign(what: str, remedy: str) -> Refused:
    return Refused("not text", f"this is {what}, not text; {remedy}", is_foreign=True)
