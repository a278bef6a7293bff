"""The report is one closed page: complete, accessible, and deaf to hostile text."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from sample_run import hostile_run, sample_run

from litebert.recipes.markup import clean, element, table, text
from litebert.recipes.plots import draw_plots
from litebert.recipes.report import CONTENT_POLICY, render_report
from litebert.recipes.summary import Curve

VOID = {"meta"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav", "section",
    "h1", "h2", "h3", "p", "ul", "li", "a", "div", "dl", "dt", "dd", "strong", "span", "code", "pre",
    "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "details", "summary",
    "svg", "defs", "g", "path", "use", "text", "clippath", "rect", "image", "tspan",
}  # fmt: skip


class Page(HTMLParser):
    """Collects tags and attributes, and checks that they nest."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture(scope="module")
def plain():
    run = sample_run(8)
    return render_report(run, draw_plots(run, ["baselines", "curves", "confusion"]))


@pytest.fixture(scope="module")
def hostile():
    run = hostile_run()
    return render_report(run, draw_plots(run, ["baselines", "curves", "confusion"]))


def test_the_page_nests_and_uses_known_elements_only(plain, hostile):
    for source in (plain, hostile):
        page = Page(source)
        assert page.open == []
        assert {tag for tag, _ in page.tags} <= ALLOWED


def test_nothing_is_fetched_and_nothing_runs(plain, hostile):
    for source in (plain, hostile):
        page = Page(source)
        policies = [m.get("content") for m in page.all("meta") if "http-equiv" in m]
        assert policies == [CONTENT_POLICY]
        for tag, attributes in page.tags:
            for name, value in attributes.items():
                assert not name.startswith("on"), (tag, name)
                assert "javascript:" not in (value or "").lower() or name == "title", (tag, name)
                if name in ("href", "xlink:href", "src"):
                    assert (value or "").startswith(("#", "data:image/png;base64,")), value
                if name == "style":
                    assert "url(" not in (value or "").replace("url(#", "")
    assert "@import" not in plain and "url(http" not in plain


def test_hostile_text_is_shown_as_it_is(hostile):
    words = "".join(Page(hostile).words)
    assert "<script>alert(1)</script>" in words
    assert "<script" not in hostile.lower()
    assert "\u202e" not in hostile and "\x00" not in hostile
    hostile.encode("utf-8")


def test_everything_of_the_run_is_on_the_page(plain):
    words = "".join(Page(plain).words)
    run = sample_run(8)
    for expected in (
        run.name, "Beats the baselines", "bag of words", "constant answer", "1,240,312", *run.labels,
        *run.inferred, *run.warnings, *run.limits, run.predict_command, run.resume_command,
        run.command, run.settings_toml, "support.csv:40", "temperature 1.37", "20 % of support.csv",
        "Median", "1,000 steps", run.mistakes[0].text, "3,610,000", "2.13.0",
    ):  # fmt: skip
        assert expected in words, expected


def test_the_page_can_be_heard_and_reached_by_keyboard(plain):
    page = Page(plain)
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1 and len(page.all("table")) == len(page.all("caption"))
    assert all("scope" in th for th in page.all("th"))
    assert all(svg.get("role") == "img" and svg.get("aria-label") for svg in page.all("svg"))
    targets = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = [a["href"] for a in page.all("a")]
    assert links and all(link[1:] in targets for link in links)
    assert "prefers-color-scheme: dark" in plain and "width=device-width" in plain


def test_ids_are_unique(plain):
    ids = [attributes["id"] for _, attributes in Page(plain).tags if "id" in attributes]
    shared = {i for i in ids if ids.count(i) > 1}
    # Axes and text groups of figures repeat names that nothing refers to.
    used = {v[1:] for _, a in Page(plain).tags for n, v in a.items() if n.endswith("href")}
    assert not shared & used


def test_empty_parts_leave_no_section():
    run = sample_run(2).model_copy(
        update={"warnings": (), "inferred": (), "data": (), "label_counts": (), "confusion": (),
                "class_table": (), "reliability": (), "mistakes": (), "baselines": (), "seeds": (),
                "resume_command": "", "limits": (), "settings_toml": "", "environment": {},
                "steps": 0, "loss": Curve(), "seconds": 30.0, "scores": {}}
    )  # fmt: skip
    page = render_report(run)
    assert "Warnings" not in page and "<figure" not in page and "Go on training" not in page
    assert 'id="use"' in page and "30 s" in page


def test_many_classes_stay_readable():
    page = render_report(sample_run(150))
    assert "scroll tall" in page and "first 30 of" in page


def test_regression_shows_errors_instead_of_confidence():
    page = render_report(sample_run(2).model_copy(update={"kind": "regression", "seconds": 9000.0}))
    assert "squared error" in page and "2.5 h" in page and "a number for message" in page


@given(st.text())
def test_any_text_comes_back_from_the_escaped_form(value):
    page = Page(element("p", value))
    assert [tag for tag, _ in page.tags] == ["p"]
    assert "".join(page.words) == clean(value)
    assert Page(element("p", title=value)).all("p") == [{"title": clean(value)}]


def test_html_is_escaped_once():
    assert text(text("<&>")) == "&lt;&amp;&gt;"
    assert "&amp;lt;" not in table("t", ("<",), [("<",)])
