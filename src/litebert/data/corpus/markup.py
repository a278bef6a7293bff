"""Marks of Markdown and HTML taken out of running text, so that words remain."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Final

from litebert.data.corpus.decoding import Line

__all__ = ["markdown_lines", "without_html"]

# Possessive and bounded throughout: a hostile line must not cost more than its length.
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s++|$)")
_RULE: Final = re.compile(
    r"\s*+(?:(?:-\s*+){3,}+|(?:\*\s*+){3,}+|(?:_\s*+){3,}+|={3,}+|`{3,}+\w*+|~{3,}+\w*+)$"
)
_QUOTE: Final = re.compile(r"^(?: {0,3}> ?)++")
_BULLET: Final = re.compile(r"^\s*+[*+-]\s++(?=\S)")
_IMAGE: Final = re.compile(r"!\[[^\[\]]{0,1000}\]\([^()\s]{0,2000}\)")
_LINK: Final = re.compile(r"\[([^\[\]]{0,1000})\]\([^()\s]{0,2000}(?:\s+\"[^\"]{0,1000}\")?\)")
_EMPHASIS: Final = re.compile(r"[_*`]+")
_ESCAPE: Final = re.compile(r"\\([\\`*_{}\[\]()#+.!>~|-])")
_NAMED: Final = re.compile(r"^#{1,2} \w+: ")
_MARKS: Final = re.compile(r"[*_`\\\[<&]")
_HEAD_LINES: Final = 40

_BLOCK_TAG: Final = re.compile(
    r"</?(?:p|br|div|li|ul|ol|dl|dt|dd|h[1-6]|tr|table|hr|blockquote|section|article)"
    r"(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
_INLINE_TAG: Final = re.compile(
    r"</?(?:a|abbr|b|big|cite|code|em|font|i|img|mark|q|s|small|span|strike|strong|sub|sup"
    r"|td|th|tbody|thead|tt|u)(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
_PARAGRAPH: Final = re.compile(r"\n\s*\n")


def without_html(text: str) -> str:
    """Return text without the usual HTML tags, and with entities decoded.

    Tags of blocks part paragraphs. What only looks like a tag, `a < b` or `<unk>`, stays.
    """
    if "<" in text:
        text = _without_comments(text) if "<!--" in text else text
        text = _INLINE_TAG.sub("", _BLOCK_TAG.sub("\n\n", text))
    if "&" in text:
        text = html.unescape(text)
    if "\n" not in text:
        return text.strip()
    return "\n\n".join(filter(None, map(str.strip, _PARAGRAPH.split(text))))


def _without_comments(text: str) -> str:
    parts: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[at:start])
        at = end + 3
    parts.append(text[at:])
    return " ".join(parts)


def markdown_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines without the marks of Markdown; a heading becomes a paragraph of its own.

    A head of metadata (`# Title: ...`, `## Author: ...`, a rule; or YAML between `---` lines) is
    left out.
    """
    for number, text, goes_on in _without_head(lines):
        if _RULE.match(text):
            yield number, "", False
            continue
        heading = _HEADING.match(text)
        if heading is not None:
            yield number, "", False
            yield number, _inline(text[heading.end() :].rstrip("# \t")), goes_on
            yield number, "", False
            continue
        if text and text[0] in "> *+-":
            text = _BULLET.sub("", _QUOTE.sub("", text))
        yield number, _inline(text), goes_on


def _inline(text: str) -> str:
    if _MARKS.search(text) is None:
        return text
    if "<" in text or "&" in text:
        text = without_html(text)
    if "](" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    text = _EMPHASIS.sub(_without_emphasis, text)
    return _ESCAPE.sub(r"\1", text) if "\\" in text else text


def _without_emphasis(match: re.Match[str]) -> str:
    """Keep marks that are escaped, inside of a word (snake_case), or signs of their own (2 * 3)."""
    marks, text = match[0], match.string
    before = text[match.start() - 1] if match.start() else " "
    after = text[match.end()] if match.end() < len(text) else " "
    is_inside = before.isalnum() and after.isalnum() and "`" not in marks
    is_sign = before.isspace() and after.isspace() and set(marks) == {"*"}
    return marks if before == "\\" or is_inside or is_sign else ""


def _without_head(lines: Iterable[Line]) -> Iterator[Line]:
    """Leave out metadata if they end with a rule within the first lines of the file."""
    rest = iter(lines)
    held: list[Line] = []
    is_yaml = False
    named = 0
    for line in rest:
        held.append(line)
        text = line[1].strip()
        if len(held) == 1 and text == "---":
            is_yaml = True
            continue
        if is_yaml:
            if text in ("---", "..."):
                held = []
                break
            is_head = True
        else:
            if _RULE.match(text) and named >= 2:
                held = []
                break
            named += _NAMED.match(text) is not None
            is_head = not text or _HEADING.match(text) is not None
        if not is_head or len(held) >= _HEAD_LINES:
            break
    yield from held
    yield from rest
