"""Models in a real browser: every route answers as the server does, and nothing leaves the page."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.chromium import Browser, Page
from tests.web.conftest import Sites
from tests.web.folders import BLANK, KINDS
from tests.web.server_answers import server_answer
from tests.web.texts import HOSTILE

from litebert.runtime.session import Session
from litebert.serve.engine.describe import describe

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SAME = 2e-3
"""Allowed difference of a number: both compute the same integers, and round activations the same way
but for ties, which the last bits of other kernels decide."""
LONG = " ".join(["the kettle near the lamp is fine, she said in berlin"] * 12)
PASSAGE = "Anna went to berlin by boat. The kettle near the lamp is fine, she said. " * 3
ASKED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "classify": [
        ("/predict", {"inputs": "the kettle is fine"}),
        ("/predict", {"inputs": ["the lamp", LONG, ""], "top_k": 2}),
        ("/predict", {"inputs": "the kettle", "raw_scores": True, "depth": 1}),
        ("/predict", {"inputs": ["the kettle is fine", "a lamp"], "exit": "patience=1"}),
        ("/predict", {"inputs": "the radio", "exit": "confidence=0.4,first=2"}),
        ("/predict", {"inputs": "the radio", "exit": "entropy=0.9"}),
        ("/embed", {"inputs": ["the kettle", "😀 日本"], "dimensions": 8}),
        ("/embed", {"inputs": "the kettle", "normalize": False, "depth": 1}),
        ("/similarity", {"inputs": {"source_sentence": "a lamp", "sentences": ["a chair", "a lamp"]}}),
        ("/tokenize", {"inputs": list(HOSTILE)}),
        ("/tokenize", {"inputs": "the kettle", "add_special_tokens": False}),
    ],
    "pair": [
        ("/predict", {"inputs": ["the kettle", "a lamp"]}),
        ("/predict", {"inputs": [["a", "b"], ["the radio", LONG]]}),
        ("/rerank", {"query": "kettle", "texts": ["a lamp", "the kettle", "b"], "return_text": True}),
    ],
    "embed": [
        ("/embed", {"inputs": ["the kettle", LONG, "b"]}),
        ("/rerank", {"query": "kettle", "texts": ["a lamp", "the kettle"]}),
    ],
    "ner": [
        ("/v1/ner", {"inputs": "Anna met 😀 berlin, near the lamp."}),
        ("/v1/ner", {"inputs": [LONG, "日本語 in berlin", "e\u0301 lamp\u200b"]}),
    ],
    "intent": [("/v1/ner", {"inputs": ["go to berlin by lamp", LONG]})],
    "qa": [
        ("/v1/qa", {"question": "who went?", "context": PASSAGE}),
        ("/v1/qa", {"question": "who?", "context": "😀 Anna 日本 went.", "top_k": 3}),
    ],
    "qa2": [
        ("/v1/qa", {"inputs": [{"question": "who?", "context": PASSAGE}, {"question": "x", "context": "b"}]}),
        ("/v1/qa", {"question": "where is the kettle?", "context": PASSAGE, "top_k": 3, "depth": 1}),
    ],
    "choice": [
        ("/v1/choice", {"question": "what is fine?", "context": PASSAGE, "choices": ["the lamp", "a", "b c"]}),
        ("/v1/choice", {"inputs": [{"question": "the _ is fine", "choices": ["kettle", "lamp"]},
                                   {"question": "what?", "choices": ["a radio", "a book"]}]}),
    ],
    "words": [
        ("/v1/fill-mask", {"inputs": "the [MASK] is fine"}),
        ("/v1/fill-mask", {"inputs": "the [MASK] near [MASK]", "top_k": 2}),
    ],
    "score": [("/predict", {"inputs": ["the kettle", "a lamp"]}),
              ("/predict", {"inputs": "the kettle", "exit": "patience=1,tolerance=0.3"})],
    "many": [("/predict", {"inputs": ["the kettle", "a lamp"]}),
             ("/predict", {"inputs": "the kettle", "exit": "confidence=0.6"})],
}  # fmt: skip
WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    ("/nowhere", {}, 404, "there is no route"),
    ("/v1/qa", {"question": "a", "context": "b"}, 422, "needs a model that answers questions"),
    ("/v1/fill-mask", {"inputs": "[MASK]"}, 422, "needs a model that predicts words"),
    ("/predict", {"inputs": 5}, 422, "must be a text"),
    ("/predict", {"inputs": "a", "depht": 1}, 422, "not known here"),
    ("/predict", {"inputs": "a", "depth": 99}, 422, "depth is 99; allowed: 1 to"),
    ("/predict", {"inputs": "a", "exit": "hope=1"}, 422, "exit criterion"),
    ("/predict", {"inputs": "a", "exit": "auto"}, 422, "no rule was chosen"),
    ("/predict", {"inputs": [["a", "b"]]}, 422, "got a pair of texts"),
    ("/embed", {"inputs": LONG, "truncate": False}, 422, "at most 64 are allowed"),
    ("/embed", {"inputs": "a", "dimensions": 99}, 422, "vectors have 32 numbers"),
]
OPEN = """(async () => {
  const { openLocal } = await import("./local/backend.js");
  const manifest = await (await fetch("model/manifest.json")).json();
  window.shares = [];
  window.backend = await openLocal(manifest, (share, text) => shares.push([share, text]));
  return backend.status();
})()"""
ASK = """(async (asked) => {
  const told = [];
  for (const [route, body] of asked) {
    try { told.push(await backend.post(route, body)); }
    catch (fault) { told.push({ status: fault.status, message: fault.message }); }
  }
  return told;
})(%s)"""


@contextmanager
def opened(browser: Browser, address: str) -> Generator[tuple[Page, dict[str, Any]]]:
    """The blank page of a site with the model in it, and what the model says of itself."""
    page = browser.open(address + BLANK)
    try:
        yield page, page.js(OPEN)
    finally:
        page.close()


def ask(page: Page, asked: list[Any]) -> list[Any]:
    return page.js(ASK % json.dumps(asked))


def assert_quiet(page: Page, address: str) -> None:
    """No complaint, and nothing was asked for elsewhere."""
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(address)] == []


def assert_alike(ours: Any, theirs: Any, place: str) -> None:
    """Refuse other words, places or shapes, and numbers that differ by more than `SAME`."""
    if isinstance(theirs, float):
        assert isinstance(ours, int | float) and abs(ours - theirs) <= SAME * max(1, abs(theirs)), (
            place
        )
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict) and ours.keys() == theirs.keys(), (place, ours, theirs)
        for key in theirs:
            assert_alike(ours[key], theirs[key], f"{place}.{key}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs), (place, ours, theirs)
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_alike(a, b, f"{place}.{number}")
    else:
        assert ours == theirs, (place, ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_every_route_answers_as_the_server_does(kind: str, browser: Browser, sites: Sites) -> None:
    address, session = sites.site(kind), Session(sites.folder(kind), threads=1)
    with opened(browser, address) as (page, status):
        theirs = describe(session)
        own = theirs.keys() - {"precision", "routes", "threads"}
        assert {key: status[key] for key in own} == {key: theirs[key] for key in own}
        assert set(status["routes"]) == set(theirs["routes"]) - {"/decode", "/v1/embeddings"}
        asked = ASKED[kind]
        for (route, body), ours in zip(asked, ask(page, list(asked)), strict=True):
            theirs = server_answer(session, route, body)
            assert_alike(ours, theirs, f"{kind} {route} {body}"[:200])
        assert_quiet(page, address)
        assert any(url.endswith(".onnx") for url in (u.partition("?")[0] for u in page.requests))


def test_faults_are_sentences(browser: Browser, sites: Sites) -> None:
    with opened(browser, sites.site("classify")) as (page, _):
        told = ask(page, [(route, body) for route, body, _, _ in WRONG])
        for (route, body, status, words), found in zip(WRONG, told, strict=True):
            assert found["status"] == status and words in found["message"], (route, body, found)
        shares = page.js("shares")
    assert shares[0][0] == 0 and shares[-1] == [1, "The model is ready"]
    assert [share for share, _ in shares] == sorted(share for share, _ in shares)


def test_what_is_no_longer_wanted_is_called_off(browser: Browser, sites: Sites) -> None:
    with opened(browser, sites.site("classify")) as (page, _):
        told = page.js("""(async () => {
          const off = new AbortController();
          const end = (work) => work.then(() => "done", (fault) => fault.name);
          const works = [1, 2, 3].map((n) => end(backend.post("/embed", { inputs: "a ".repeat(50) + n },
            n === 2 ? { signal: off.signal } : {})));
          off.abort();
          works.push(end(backend.post("/embed", { inputs: "b" }, { signal: off.signal })));
          return Promise.all(works);
        })()""")
    assert told == ["done", "AbortError", "done", "AbortError"]


@pytest.mark.parametrize("fault", ["changed", "missing", "short", "manifest", "version"])
def test_damaged_files_are_told(fault: str, browser: Browser, sites: Sites) -> None:
    graph = sites.path("many") / "model" / "graph.onnx"
    manifest = sites.path("many") / "model" / "manifest.json"
    data, text = graph.read_bytes(), manifest.read_text("utf-8")
    words = {"changed": "is not the one that was exported", "missing": "is not beside the page",
             "short": "is not the one that was exported", "manifest": "is not the one that was exported",
             "version": "of another version than the page"}  # fmt: skip
    try:
        if fault == "changed":
            graph.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
        elif fault == "missing":
            graph.unlink()
        elif fault == "short":
            graph.write_bytes(data[:-1])
        else:
            values = json.loads(text)
            if fault == "manifest":
                values["files"]["tokenizer.json"]["sha256"] = "0" * 64
            else:
                values["format_version"] = 99
            manifest.write_text(json.dumps(values))
        page = browser.open(sites.site("many") + BLANK)
        assert words[fault] in page.js(f"{OPEN}.catch((fault) => fault.message)")
        page.close()
    finally:
        graph.write_bytes(data)
        manifest.write_text(text, "utf-8")


def test_the_page_itself_runs_the_model(browser: Browser, sites: Sites) -> None:
    address = sites.site("classify")
    page = browser.open(address)
    page.wait("document.querySelector('main textarea') !== null")
    assert page.js("document.querySelector('meta[name=litebert-mode]').content") == "static"
    assert_quiet(page, address)
    page.close()
