"""Running text in files of many kinds becomes one stream of documents, in constant memory."""

from __future__ import annotations

from litebert.data.corpus.document import Document, Fault, FaultHandler, Position
from litebert.data.corpus.inputs import corpus_files
from litebert.data.corpus.options import CorpusOptions
from litebert.data.corpus.reader import read_documents

__all__ = [
    "CorpusOptions",
    "Document",
    "Fault",
    "FaultHandler",
    "Position",
    "corpus_files",
    "read_documents",
]
