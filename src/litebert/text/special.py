"""The five special tokens, and finding them where a text spells them out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from litebert.errors import CheckpointError

__all__ = ["SpecialTokens", "split_special"]


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """How the special tokens are spelled in the vocabulary.

    A text that spells one out gets that token, as in the reference tokenizers.
    """

    pad: str = "<pad>"
    unk: str = "<unk>"
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    mask: str = "[MASK]"

    @property
    def words(self) -> tuple[str, ...]:
        """The five spellings: pad, unk, cls, sep, mask."""
        return tuple(getattr(self, item.name) for item in fields(self))

    def resolve(self, vocabulary: Mapping[str, int]) -> dict[str, int]:
        """Return spelling -> id.

        Raises:
            CheckpointError: one of them is not in the vocabulary.
        """
        missing = [word for word in self.words if word not in vocabulary]
        if missing:
            raise CheckpointError(
                f"the vocabulary has no {', '.join(missing)}; it must hold all of "
                f"{' '.join(self.words)}, or tokenizer_config.json must name its own "
                "pad_token, unk_token, cls_token, sep_token and mask_token"
            )
        return {word: vocabulary[word] for word in self.words}

    def pattern(self) -> re.Pattern[str]:
        """Return what finds any of them in a text, the longest spelling first."""
        ordered = sorted(set(self.words), key=len, reverse=True)
        return re.compile("|".join(re.escape(word) for word in ordered))


def split_special(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, int]]:
    """Yield (part, start) of a text, with every special token as a part of its own."""
    position = 0
    for match in pattern.finditer(text):
        if match.start() > position:
            yield text[position : match.start()], position
        yield match.group(), match.start()
        position = match.end()
    if position < len(text):
        yield text[position:], position
