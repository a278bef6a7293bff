"""Markdown and HTML lose their marks, running text loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litebert.data.corpus import CorpusOptions, read_documents
from litebert.data.corpus.markup import without_html

BOOK = """# Title: The Slow River

## Author: N. N.

## Year: 1901

-------

##  CHAPTER I.

It was the _Heron_ that **nobody** had seen, *or* so they said;\x20\x20
the snake_case of life, 2 * 3, and one footnote.*

* * *

> "A quotation," said she,
> [who](http://example.org/x "t") `knew`.

- one
* two

Setext
======

```
kept
```

![drawing](x.png)Not &amp; *un_believ_able* \\* <b>bold</b> a < b <unk>
"""

CLEAN = """CHAPTER I.

It was the Heron that nobody had seen, or so they said;
the snake_case of life, 2 * 3, and one footnote.

"A quotation," said she,
who knew.

one
two

Setext

kept

Not & un_believ_able * bold a < b <unk>"""


def read(path: Path, **options: object) -> list[str]:
    def fail(fault: object) -> None:
        raise AssertionError(str(fault))

    chosen = CorpusOptions.model_validate(options)
    return [document.text for document in read_documents([path], chosen, on_fault=fail)]


def test_a_markdown_book_is_one_document_without_marks(tmp_path: Path) -> None:
    path = tmp_path / "book.md"
    path.write_text(BOOK, encoding="utf-8")
    assert read(path) == [CLEAN]


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        ("---\ntitle: X\ndate: 1\n---\n", ""),
        ("# Title: X\n\n## Year: 1\n\n---\n", ""),
        ("# A heading\n\n---\n", "A heading\n\n"),
        ("# Title: X\n\n## Year: 1\n\n", "Title: X\n\nYear: 1\n\n"),
        ("---\n", ""),
    ],
)
def test_only_a_head_of_metadata_is_left_out(tmp_path: Path, head: str, kept: str) -> None:
    path = tmp_path / "book.md"
    path.write_text(head + "Text.\n\nMore.", encoding="utf-8")
    assert read(path)[0].removeprefix("title: X\ndate: 1\n") == kept + "Text.\n\nMore."


def test_marks_of_lines_count_only_at_their_start(tmp_path: Path) -> None:
    path = tmp_path / "book.md"
    path.write_text("- one - two > three # four\n\n  > a - b\n", encoding="utf-8")
    assert read(path) == ["one - two > three # four\n\na - b"]


def test_a_front_matter_that_never_ends_is_text(tmp_path: Path) -> None:
    path = tmp_path / "book.md"
    path.write_text("---\n" + "line\n" * 90, encoding="utf-8")
    assert read(path)[0].count("line") == 90


@pytest.mark.parametrize(
    "mark",
    ["*", "_", "`", "[", "](", "![", "<b", "&", "\\", "> ", "# ", "- ", "<!--", "# a #", "  "],
)
def test_marks_without_end_cost_linear_time(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "book.md"
    path.write_text(mark * 50_000 + "\nText.", encoding="utf-8")
    assert read(path)[-1].endswith("Text.")


@pytest.mark.parametrize(
    ("source", "clean"),
    [
        ("<p>One.</p><p>Two<br>three</p>", "One.\n\nTwo\n\nthree"),
        ("a <strong>bold</strong> <a href='x'>link</a>", "a bold link"),
        ("5 < 6 and 7 > 3, <unk> stays", "5 < 6 and 7 > 3, <unk> stays"),
        ("&lt;p&gt; Z&uuml;ge &#8211;", "<p> Züge –"),
        ("a<!-- hidden --> b", "a  b"),
    ],
)
def test_html(source: str, clean: str) -> None:
    assert without_html(source) == clean


def test_a_json_document_joins_its_strings(tmp_path: Path) -> None:
    path = tmp_path / "land.json"
    value = {
        "Geography": {"Area": {"text": "small<br>flat"}, "note": "not this"},
        "People": [{"text": "few &amp; far"}, {"text": ["one", "two"]}, {"text": {"x": "no"}}],
    }
    path.write_text(json.dumps(value), encoding="utf-8")
    assert read(path) == ["small\n\nflat\n\nfew & far\n\none\n\ntwo"]
    assert read(path, text_field="note") == ["not this"]
