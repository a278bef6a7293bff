"""What the user told about a corpus."""

from __future__ import annotations

import codecs
from typing import Literal

from pydantic import Field, field_validator

from litebert.settings import Settings

__all__ = ["BadDocumentPolicy", "CorpusOptions", "DocumentRule"]

DocumentRule = Literal["auto", "blank-line", "file", "line", "wikitext"]
"""Where a document of a text file ends."""

BadDocumentPolicy = Literal["error", "skip"]
"""What to do with bytes or records that cannot be used: stop, or leave out and count."""


class CorpusOptions(Settings):
    """How files become documents."""

    documents: DocumentRule = "auto"
    """Where a document ends in text files: at a blank line, at the end of the file, at every line,
    or before a ` = Title = ` line. "auto" is blank-line for text, wikitext where the first line is
    such a title, file for Markdown."""
    text_field: str = Field(default="text", min_length=1, max_length=200)
    """Name of the text in JSON lines, JSON and Parquet."""
    encoding: str | None = None
    """Codec of text files without a byte-order mark; None means UTF-8, and nothing is guessed."""
    on_bad: BadDocumentPolicy = "error"
    max_document_chars: int = Field(default=4_000_000, ge=1_000, le=16_000_000)
    """A longer document is cut at the end of a paragraph, or else of a line or word, and counted."""
    max_file_bytes: int = Field(default=1 << 38, ge=1 << 20)
    """Most bytes that one compressed file or archive may unpack to (256 GiB)."""
    max_members: int = Field(default=200_000, ge=1)
    """Most members of one archive."""
    max_replacement_fraction: float = Field(default=0.005, ge=0.0, le=1.0)
    """A document with a larger share of U+FFFD was decoded wrongly by somebody and is dropped."""

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            info = codecs.lookup(value)
        except (LookupError, ValueError) as error:
            raise ValueError(
                f"unknown encoding {value!r:.60}; use utf-8, utf-16, latin-1, cp1252 or another "
                "text codec of Python"
            ) from error
        if not getattr(info, "_is_text_encoding", True) or not info.incrementaldecoder:
            raise ValueError(f"{value!r:.60} is no text encoding that can be read as a stream")
        return info.name
