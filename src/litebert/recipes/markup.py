"""HTML and Markdown from untrusted text: cleaning, escaping, and a few elements built of them.

Every string that comes from data goes through `text` (HTML) or `inline` (Markdown) exactly once.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Html", "clean", "code_block", "element", "fence", "inline", "table", "text"]


class Html(str):
    """A string that is HTML already; everything else gets escaped."""

    __slots__ = ()


# Controls, lone surrogates, and marks that reverse the reading direction of what follows.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
# Active anywhere in a line, and what turns plain text into links and mentions by itself.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~$&!@]|(?<=[wW])\.|:(?=//))")


def clean(value: str) -> str:
    """Replace what no reader can see by U+FFFD; line ends become newlines."""
    return _UNSHOWABLE.sub("\ufffd", value.replace("\r\n", "\n").replace("\r", "\n"))


def text(value: object) -> Html:
    """Return escaped HTML of a value; `Html` passes unchanged."""
    return value if isinstance(value, Html) else Html(html.escape(clean(str(value)), quote=True))


def element(tag: str, *children: object, **attributes: str | None) -> Html:
    """Return `<tag ...>children</tag>`; `class_` is spelled with an underscore, None is left out."""
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{shown}>{''.join(text(child) for child in children)}</{tag}>")


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Iterable[int] = (),
    texts: Iterable[int] = (),
    main: Iterable[int] = (),
    tall: bool = False,
    short: bool = False,
) -> Html:
    """Return a table that scrolls inside itself and can be reached by keyboard.

    Args:
        caption: what the table shows; also its name for screen readers.
        head: column titles; the first column holds the row titles.
        rows: cells.
        numbers: columns aligned as numbers.
        texts: columns of running text in any writing direction.
        main: rows to emphasise.
        tall: limit the height and scroll.
        short: only as wide as its cells.
    """
    numeric, running, strong = set(numbers), set(texts), set(main)

    def kind(column: int) -> str | None:
        return "number" if column in numeric else "text" if column in running else None

    titles = [element("th", title, scope="col", class_=kind(i)) for i, title in enumerate(head)]
    body: list[Html] = []
    for number, row in enumerate(rows):
        cells = [
            element("th", cell, scope="row", dir="auto")
            if i == 0
            else element("td", cell, class_=kind(i), dir="auto" if i in running else None)
            for i, cell in enumerate(row)
        ]
        body.append(element("tr", *cells, class_="main" if number in strong else None))
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *titles)),
            element("tbody", *body),
            class_="short" if short else None,
        ),
        class_="scroll tall" if tall else "scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def code_block(value: str) -> Html:
    """Return preformatted text."""
    return element("pre", element("code", value))


def inline(value: object) -> str:
    """Return text for one line of Markdown: no line ends, no active characters, no HTML."""
    flat = " ".join(clean(str(value)).split())
    return _MARKDOWN.sub(r"\\\1", flat).replace("\\<", "&lt;").replace("\\>", "&gt;")


def fence(value: str, language: str = "") -> str:
    """Return a fenced code block whose fence is longer than any run of backticks inside."""
    body = clean(value).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"
