"""Text to token ids and back, with exact character offsets into the original text (torch-free)."""

from __future__ import annotations

from litebert.text.encoding import Encoding
from litebert.text.pairs import windows
from litebert.text.tokenizer import Tokenizer, check_vocabulary_fits
from litebert.text.vocabulary import train_vocabulary

__all__ = ["Encoding", "Tokenizer", "check_vocabulary_fits", "train_vocabulary", "windows"]
