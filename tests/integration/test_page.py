"""The page of the server in a real browser: every view, the dial, tables, keys, faults, hostile texts."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from serve_process import ServeProcess
from tests.chromium import Browser, Page
from tests.page_checks import CONTRASTS, NAMELESS, WIDER
from tests.serve_folders import make_folder

from litebert.runtime import Session
from litebert.serve.engine.describe import describe
from litebert.serve.engine.operations import OPERATIONS
from litebert.tasks.exit_file import EXIT_FILE, ExitCurve, ExitPoint

pytest.importorskip("fastapi")
pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

VIEWS = {"classify": "classify", "ner": "tag", "qa": "question", "embed": "similarity"}
"""Models that are served, and the first view of each."""
TEXT, SECOND = "the lamp near anna is fine", "a chair in berlin"
CHOICE = {"context": "", "question": "where", "choices": ["a lamp", "berlin", "anna"]}
KEPT = {"truncate": True, "keep": "head", "raw_scores": False, "top_k": None, "nested": False}
MASKED = "the [MASK] near the chair"
OTHERS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "pair": ("classify", "predict", KEPT | {"inputs": [[TEXT, SECOND]]},
             {"text": TEXT, "second": SECOND}, {"inputs": [[TEXT, SECOND]]}),
    "many": ("classify", "predict", KEPT | {"inputs": TEXT}, {"text": TEXT}, {"inputs": TEXT}),
    "score": ("classify", "predict", KEPT | {"inputs": TEXT}, {"text": TEXT}, {"inputs": TEXT}),
    "intent": ("tag", "ner", {"texts": [TEXT], "single": True}, {"text": TEXT}, {"inputs": TEXT}),
    "choice": ("choose", "choice", {"items": [CHOICE], "single": True},
               CHOICE | {"choices": " a lamp\n\nberlin\r\nanna\n"}, CHOICE),
    "words": ("mask", "fill_mask", {"text": MASKED, "top_k": 8}, {"text": MASKED},
              {"inputs": MASKED, "top_k": 8}),
}  # fmt: skip
"""Models whose answers are only shown, as an engine for each would cost more than it tells: the view, what
the engine is asked, what is typed, and the body that must come of it."""
ROUTES = {
    "predict": "/predict",
    "ner": "/v1/ner",
    "choice": "/v1/choice",
    "fill_mask": "/v1/fill-mask",
}
HOSTILE = (
    '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script> anna \U0001f469\u200d\U0001f680 '
    "\u202eberlin\u202c e\u0301\u0323 שלום ${window.hurt=1} {{7*7}} \\u003cb\\u003e &lt;b&gt; lamp"
)
KEY = "a key for tests".replace(" ", "-")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page") / "models"


@pytest.fixture(scope="module")
def server(browser: Browser, root: Path) -> Generator[ServeProcess]:
    folders = {kind: make_folder(kind, root) for kind in VIEWS}
    shallow, full = ExitPoint("", 1, 0.75, 1.0, 900.0), ExitPoint("", 2, 0.875, 2.0, 500.0)
    chosen = ExitPoint("confidence=0.9", 2, 0.87, 1.2, 800.0)
    curve = ExitCurve("accuracy", 0.005, "held-out", 80, 1, full, chosen, 0.0, (full, shallow))
    (folders["classify"] / EXIT_FILE).write_text(curve.to_json())
    process = ServeProcess(
        *(f"{kind}={folder}" for kind, folder in folders.items()), "--set", "watch=false"
    )
    try:
        yield process.wait_until_serving()
    finally:
        process.kill()


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def tab(browser: Browser, server: ServeProcess, downloads: Path) -> Generator[Page]:
    page = browser.open(server.url + "/", downloads=downloads)
    page.show(1280, 800)
    page.wait("document.querySelector('[role=tab]')")
    yield page
    page.close()


@pytest.fixture
def page(tab: Page, server: ServeProcess) -> Generator[Page]:
    """The page, which must not complain and must not ask anybody else."""
    tab.complaints.clear()
    tab.posted.clear()
    yield tab
    assert tab.complaints == []
    own = (server.url + "/", f"blob:{server.url}/", "data:")
    assert [url for url in tab.requests if not url.startswith(own)] == []


def choose_model(page: Page, kind: str) -> None:
    # Chosen again, a model is opened again, and what was waited for below is there before that.
    if page.js("document.querySelector('#model-choice').value") != kind:
        page.choose("#model-choice", kind)
    page.wait(
        f"document.title.startsWith('{kind} ') && document.querySelector('[role=tab]').id === 'tab-{VIEWS[kind]}'"
    )
    open_tab(page, VIEWS[kind])


def open_tab(page: Page, name: str) -> None:
    page.click(f"#tab-{name}")
    page.wait(f"!document.querySelector('#panel-{name}').hidden")


SHOWN = "document.querySelector('[role=tabpanel]:not([hidden])')"


def use_example(page: Page, number: int = 1) -> None:
    page.js(f"{SHOWN}.querySelectorAll('.example')[{number - 1}].click()")
    settle(page)


def settle(page: Page) -> None:
    """Wait until the answer is there."""
    page.wait(f"{SHOWN}.querySelector('.result[data-state]:not([aria-busy])')")


def last_post(page: Page) -> tuple[str, Any]:
    return page.posted[-1]


@pytest.mark.parametrize("kind", VIEWS)
def test_every_view_shows_what_the_server_answers(
    page: Page, server: ServeProcess, kind: str
) -> None:
    choose_model(page, kind)
    assert page.js(f"{SHOWN}.querySelectorAll('.example').length") == 6
    for number in (6, 1):
        use_example(page, number)
    path, body = last_post(page)
    status, answer, _ = server.ask(path, body)
    assert (status, body["model"]) == (200, kind)
    shown = page.js(f"{SHOWN}.querySelector('.result').innerText")
    for word in words_of(kind, answer):
        assert word in shown, (word, shown)
    spoken = page.wait("document.querySelector('#announcer').textContent")
    assert spoken.endswith(".")


SHOW = """
(async () => {
  const { %(view)s: view } = await import("/views/%(view)s.js");
  const [info, values] = [%(info)s, %(values)s];
  const body = view.body(values, info);
  const wanting = [];
  for (const name of Object.keys(values)) {
    try { view.body({ ...values, [name]: "" }, info); } catch (fault) { wanting.push(fault.message); }
  }
  const read = view.read(%(answer)s, info);
  const box = document.createElement("div");
  document.body.append(box);
  box.append(...[view.render(read, values, info, {})].flat(Infinity).filter(Boolean));
  const text = box.innerText;
  box.remove();
  return [view.route, body, text, view.summary(read, info), view.examples(info).length, wanting];
})()
"""


@pytest.mark.parametrize("kind", OTHERS)
def test_answers_of_other_models_are_shown(page: Page, kind: str, root: Path) -> None:
    view, operation, args, values, wanted = OTHERS[kind]
    session = Session(make_folder(kind, root), threads=1)
    plan = OPERATIONS[operation](session, args)
    outputs = [] if operation == "fill_mask" else session.outputs(plan.examples)
    answer = json.loads(plan.finish(outputs))
    script = {"info": describe(session), "values": values, "answer": answer}
    told = {"view": view} | {name: json.dumps(value) for name, value in script.items()}
    route, body, shown, spoken, examples, wanting = page.js(SHOW % told)
    assert (route, body, examples) == (ROUTES[operation], wanted, 6)
    for word in words_of(kind, answer):
        assert word in shown
    assert spoken
    assert any(text.startswith(("type ", "give at least two choices")) for text in wanting)


def words_of(kind: str, answer: Any) -> list[str]:
    """What must be read on the page."""
    if kind in ("classify", "pair"):
        rows = answer[0] if kind == "pair" else answer
        return [text for row in rows for text in (row["label"], share(row["score"]))]
    if kind == "many":
        return ["late", "broken", *(share(row["score"]) for row in answer)]
    if kind == "score":
        return [f"{answer[0]['score']:.3f}"]
    if kind == "ner":
        return [text for item in answer for text in (item["word"], item["entity_group"])]
    if kind == "intent":
        return [answer["intent"], *(item["text"] for item in answer["slots"])]
    if kind == "qa":
        return [answer[0]["answer"], share(answer[0]["score"])]
    if kind == "choice":
        return [answer["choice"], *(share(p) for p in answer["probabilities"])]
    if kind == "words":
        return [answer[0]["sequence"], *(share(word["score"]) for word in answer)]
    first, second = answer[:2]
    cosine = sum(a * b for a, b in zip(first, second, strict=True))
    return ["are most alike", f"{cosine:.2f}".replace("-", "−")]


def share(p: float) -> str:
    return "< 0.1 %" if 0 < p < 0.0005 else "> 99.9 %" if 0.9995 < p < 1 else f"{100 * p:.1f} %"


def test_the_dial_asks_again_as_it_turns(page: Page, server: ServeProcess) -> None:
    choose_model(page, "classify")
    use_example(page)
    assert "depth" not in last_post(page)[1]
    page.js("document.querySelector('.dial input[type=range]').focus()")
    page.press("ArrowLeft", 37)
    page.wait("document.querySelector('.dial-value').textContent === '1 of 2'")
    page.wait("document.querySelectorAll('.depths tbody tr').length === 2")
    settle(page)
    path, body = last_post(page)
    assert (path, body["depth"]) == ("/predict", 1)
    _, answer, _ = server.ask(path, body)
    shown = page.js(f"{SHOWN}.querySelector('.result').innerText")
    assert all(share(row["score"]) in shown for row in answer)
    dial = page.js("document.querySelector('.dial').innerText")
    assert "accuracy on 80 texts of held-out" in dial
    assert "75.0 %" in dial
    label = page.js("document.querySelector('.chart').getAttribute('aria-label')")
    assert label == "accuracy by depth: 1: 75.0 %, 2: 87.5 %"
    assert page.js("document.querySelectorAll('.chart').length") == 2
    assert page.js("document.querySelector('input[type=range]').ariaValueText") == "1 of 2 depths"
    rows = page.js("[...document.querySelectorAll('.depths tbody tr')].map((row) => row.innerText)")
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert all(row.split()[-1] == "ms" for row in rows)
    page.choose(".dial select", "auto")
    page.wait("document.querySelector('.dial').innerText.includes('87.0 % instead of 87.5 %')")
    settle(page)
    assert last_post(page)[1]["exit"] == "auto"
    page.choose(".dial select", "")


@pytest.mark.parametrize("kind", ["qa", "embed"])
def test_every_depth_can_be_asked_at_once(page: Page, kind: str) -> None:
    choose_model(page, kind)
    use_example(page)
    page.js(f"{SHOWN}.querySelector('.by-depth button').click()")
    page.wait(f"{SHOWN}.querySelectorAll('.depths tbody tr').length === 2")
    page.wait(f"!{SHOWN}.querySelector('.by-depth button').disabled")
    words = page.js(f"{SHOWN}.querySelector('.by-depth .hint').textContent")
    assert words in ("Every depth gives the same answer.", "Only the last depth gives this answer.")


def test_hostile_texts_are_shown_and_not_run(page: Page, server: ServeProcess) -> None:
    choose_model(page, "ner")
    page.type("#panel-tag textarea", HOSTILE)
    page.wait("document.querySelector('#panel-tag .text')?.textContent.includes('7*7')")
    _, answer, _ = server.ask("/v1/ner", {"inputs": HOSTILE, "model": "ner"})
    marks = page.js(
        "[...document.querySelectorAll('#panel-tag mark bdi')].map((node) => node.textContent)"
    )
    assert marks == [item["word"] for item in answer]
    assert any(
        "\U0001f680" in HOSTILE[: item["start"]] for item in answer
    )  # beyond the 16-bit part
    open_tab(page, "tokens")
    page.type("#panel-tokens textarea", HOSTILE)
    page.wait("document.querySelectorAll('#panel-tokens .piece').length > 20")
    _, (pieces,), _ = server.ask("/tokenize", {"inputs": HOSTILE, "model": "ner"})
    assert page.js("[...document.querySelectorAll('#panel-tokens .piece bdi')].map((node) => node.textContent)") == [
        piece["text"] for piece in pieces
    ]  # fmt: skip
    cells = page.js(
        "[...document.querySelectorAll('#panel-tokens tbody tr')].map((row) => row.cells[3].textContent)"
    )
    assert cells == [
        "" if piece["start"] is None else HOSTILE[piece["start"] : piece["stop"]]
        for piece in pieces
    ]
    page.js("document.querySelector('#panel-tokens textarea').value = 'half \\ud83d character'")
    page.js("document.querySelector('#panel-tokens .main').click()")
    page.wait("document.querySelector('#panel-tokens .piece')")
    settle(page)
    assert page.js("document.querySelectorAll('.fault').length") == 0
    assert page.js("window.hurt") is None
    assert page.js("document.querySelectorAll('main img, main script').length") == 0
    assert page.js("document.documentElement.scrollWidth <= innerWidth")


def test_what_is_lacking_is_said_as_a_sentence(page: Page) -> None:
    choose_model(page, "qa")
    page.type("#panel-question textarea", "where is the lamp")
    page.wait(f"{SHOWN}.querySelector('.result').innerText.includes('Paste the passage')")
    choose_model(page, "embed")
    page.type("#panel-similarity textarea", "the lamp")
    page.wait(
        f"{SHOWN}.querySelector('.result').innerText.includes('at least two texts, one a line.')"
    )


def test_refusals_of_the_server_are_sentences(tab: Page) -> None:
    choose_model(tab, "classify")
    tab.js(f"""(() => {{ const box = {SHOWN}.querySelector("textarea"); box.value = "a".repeat(20000);
        box.dispatchEvent(new Event("input")); }})()""")
    told = tab.wait(f"{SHOWN}.querySelector('.fault')?.innerText")
    assert told.startswith("Input 0 has 20000 characters; allowed: 16000.")
    tab.js(f"{SHOWN}.querySelector('.fault button').click()")
    settle(tab)
    use_example(tab)
    assert tab.js("document.querySelector('.fault')") is None


ROWS = [["id", "text", "note"], ["1", 'a "quoted" lamp; near', "x\r\ny"], ["2", "the  chair", ""],
        ["3", "", " kept "], ["4", "anna — \U0001f680 é", "=1+1"]]  # fmt: skip


def written(rows: list[list[str]], separator: str, *, end: str = "\r\n") -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, lineterminator=end).writerows(rows)
    return out.getvalue()


def test_a_dropped_table_comes_back_with_answers(
    page: Page, server: ServeProcess, downloads: Path, tmp_path: Path
) -> None:
    choose_model(page, "classify")
    open_tab(page, "batch")
    rows = [*ROWS, *([str(n), f"the lamp number {n}", "filler"] for n in range(5, 301))]
    path = tmp_path / "my table.csv"
    path.write_bytes(b"\xef\xbb\xbf" + written(rows, ";").encode())
    page.drop(".drop", path)
    page.wait("document.querySelector('#panel-batch .main').textContent === 'Run 300 rows'")
    assert "301 rows, separated by semicolons, UTF-8" in page.js(
        "document.querySelector('#panel-batch').innerText"
    )
    assert (
        page.js("document.querySelector('.columns select').selectedOptions[0].textContent")
        == "text"
    )
    page.click("#panel-batch .result .main")
    page.wait("document.querySelector('a[download]')")
    assert page.js("document.querySelector('a[download]').download") == "my table-labels.csv"
    page.click("a[download]")
    raw = arrived(downloads / "my table-labels.csv")
    assert raw.startswith(b"\xef\xbb\xbf")
    found = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), delimiter=";"))
    assert found[0] == [
        "id",
        "text",
        "note",
        "prediction",
        "probability",
        "p(bad)",
        "p(good)",
        "p(so-so)",
    ]
    assert [row[:3] for row in found] == rows
    for place in (1, 3, 4, 300):
        _, answer, _ = server.ask("/predict", {"inputs": rows[place][1], "model": "classify"})
        assert found[place][3] == answer[0]["label"]
        assert float(found[place][4]) == pytest.approx(answer[0]["score"], abs=1e-4)
    assert {body["model"] for _, body in page.posted} == {"classify"}
    assert max(len(body["inputs"]) for _, body in page.posted) == 32


def arrived(path: Path) -> bytes:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, list(path.parent.iterdir())
        time.sleep(0.02)
    return path.read_bytes()


def paste(page: Page, text: str) -> None:
    page.js(f"document.querySelector('#panel-batch textarea').value = {json.dumps(text)}")
    page.click("#panel-batch .input .actions button")


def test_a_row_that_cannot_be_answered_costs_the_others_nothing(
    page: Page, downloads: Path
) -> None:
    choose_model(page, "qa")
    open_tab(page, "batch")
    rows = [
        ["question", "context"],
        ["where", "the lamp in berlin"],
        ["where", ""],
        ["who", "anna has a book"],
    ]
    paste(page, written(rows, "\t", end="\n"))
    page.wait("document.querySelector('#panel-batch .result .main').textContent === 'Run 3 rows'")
    page.click("#panel-batch .result .main")
    page.wait("document.querySelector('a[download]')")
    assert "1 row could not be answered" in page.js(
        "document.querySelector('#panel-batch').innerText"
    )
    page.click("a[download]")
    raw = arrived(downloads / "pasted-answers.csv").decode()
    found = list(csv.DictReader(io.StringIO(raw, newline=""), delimiter="\t"))
    assert [bool(row["error"]) for row in found] == [False, True, False]
    assert found[0]["context"][int(found[0]["start"]) : int(found[0]["end"])] == found[0]["answer"]
    page.complaints[:] = [
        text for text in page.complaints if "422" not in text
    ]  # the network's own


def test_a_batch_is_cancelled_and_keeps_what_it_has(page: Page) -> None:
    choose_model(page, "embed")
    open_tab(page, "batch")
    paste(page, "\n".join(f"a line, {n}" if n % 7 else "plain" for n in range(12_000)))
    page.wait(
        "document.querySelector('#panel-batch .result .main').textContent === 'Run 12,000 rows'"
    )
    page.click("#panel-batch .result .main")
    page.wait("/\\d of 12,000 rows/.test(document.querySelector('#panel-batch .result').innerText)")
    page.click("#panel-batch .result .actions button.quiet")
    page.wait(
        "document.querySelector('#panel-batch .result').innerText.includes('Cancelled after')"
    )
    page.wait("document.querySelector('a[download]')")


PARSE = """
(async () => {
  const { parseCsv, csvLine, decoded } = await import("/csv.js");
  const found = [];
  for (const text of %s) {
    const { rows, separator, isCut } = await parseCsv(text);
    found.push([rows, separator, isCut, rows.map((row) => csvLine(row, separator || ",")).join("")]);
  }
  return found;
})()
"""
TABLES: list[tuple[str, list[list[str]], str, bool]] = [
    ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]], ",", False),
    ("a;b\n1,5;2\n3;4", [["a", "b"], ["1,5", "2"], ["3", "4"]], ";", False),
    ("a\tb\r1\t2\r", [["a", "b"], ["1", "2"]], "\t", False),
    ('a,b\n"x ""y"" z","1\n2"\n', [["a", "b"], ['x "y" z', "1\n2"]], ",", False),
    ('"a,b"\n"c,d"\n', [["a,b"], ["c,d"]], "", False),
    ("one, two\nplain\nthree, four, five\n", [["one, two"], ["plain"], ["three, four, five"]], "", False),
    ("\ufeffa,b\n\n\n1,2", [["a", "b"], ["1", "2"]], ",", False),
    ('a,b\n1,"open\n3,4', [["a", "b"], ["1", "open\n3,4"]], ",", True),
    ('a,b\n1,in "side"\n', [["a", "b"], ["1", 'in "side"']], ",", False),
    ('a,b\n"",""\n', [["a", "b"], ["", ""]], ",", False),
    ("", [], "", False),
]  # fmt: skip


def test_tables_are_read_as_written(page: Page) -> None:
    found = page.js(PARSE % json.dumps([text for text, *_ in TABLES]))
    for (text, rows, separator, is_cut), (got, by, cut, again) in zip(TABLES, found, strict=True):
        assert (got, by, cut) == (rows, separator, is_cut), text
        assert list(csv.reader(io.StringIO(again, newline=""), delimiter=by or ",")) == rows


def test_twelve_thousand_rows_do_not_freeze_the_page(page: Page) -> None:
    rows = [
        ["id", "text"],
        *([str(n), f'a "long" text, number {n}\r\n' + "word " * 40] for n in range(12_000)),
    ]
    text = written(rows, ",")
    page.js(f"window.big = {json.dumps(text)}; true")
    beats, count = page.js("""(async () => {
      const { parseCsv } = await import("/csv.js");
      let beats = 0;
      const beat = setInterval(() => { beats += 1; }, 0);
      const { rows } = await parseCsv(window.big);
      clearInterval(beat);
      return [beats, rows.length];
    })()""")
    assert count == 12_001
    assert beats >= 3  # every hundredth of a second other work gets its turn


def test_keyboard_alone_is_enough(page: Page) -> None:
    choose_model(page, "classify")
    page.js("document.querySelector('[role=tab]').focus()")
    page.press("ArrowRight", 39)
    assert page.js("document.activeElement.id") == "tab-tokens"
    page.press("End", 35)
    assert page.js("document.activeElement.id") == "tab-batch"
    page.press("Home", 36)
    page.press("Tab", 9)
    assert page.js("document.activeElement.tagName") == "TEXTAREA"
    page.call("Input.insertText", text="the lamp")
    page.press("Enter", 13, modifiers=2)
    settle(page)
    for _ in range(2):
        page.press("Tab", 9)
    assert page.js("document.activeElement.className") == "example"
    page.press("Enter", 13)
    page.wait(f"{SHOWN}.querySelector('textarea').value !== 'the lamp'")
    settle(page)
    outline = page.js("getComputedStyle(document.activeElement).outlineWidth")
    assert float(outline.removesuffix("px")) >= 2


@pytest.mark.parametrize("kind", ["classify", "ner", "embed"])
def test_screen_readers_weak_eyes_and_phones(page: Page, kind: str) -> None:
    choose_model(page, kind)
    use_example(page)
    tabs = page.js("[...document.querySelectorAll('[role=tab]')].map((node) => node.id.slice(4))")
    for width, dark in ((1280, False), (360, True)):
        page.show(width, 740, dark=dark, reduced=True)
        for name in tabs:
            open_tab(page, name)
            if name == "tokens" and page.js(f"{SHOWN}.querySelector('textarea').value") == "":
                use_example(page, 3)
            assert page.js(CONTRASTS) == [], (name, dark)
            assert page.js(WIDER) == [], (name, width)
            assert page.js(NAMELESS) == []
    page.show(1280, 800)
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "slider", "tab", "combobox", "image", "link", "checkbox"}
    nameless = [node for node in tree if not node.get("ignored") and node.get("role", {}).get("value") in roles
                and not node.get("name", {}).get("value")]  # fmt: skip
    assert nameless == []


def test_a_key_is_asked_for_kept_in_memory_and_a_lost_server_is_a_sentence(
    browser: Browser, server: ServeProcess, tmp_path: Path
) -> None:
    folder = make_folder("classify", tmp_path / "models")
    own = ServeProcess(folder, variables={"LITEBERT_API_KEY": KEY}).wait_until_serving()
    try:
        page = browser.open(own.url + "/")
        page.wait("document.querySelector('dialog[open]')")
        assert page.js("document.activeElement.id") == "api-key"
        page.type("#api-key", "wrong")
        page.press("Enter", 13)
        page.wait(
            "document.querySelector('#api-key-why')?.textContent === 'The key was not accepted.'"
        )
        page.type("#api-key", KEY)
        page.press("Enter", 13)
        page.wait("document.querySelector('[role=tab]')")
        use_example(page)
        assert page.js("document.querySelectorAll('.bar').length") == 3
        assert page.js(
            "[localStorage.length, sessionStorage.length, document.cookie, location.search]"
        ) == [0, 0, "", ""]
        assert all("401" in text for text in page.complaints)
        assert all(url.startswith(own.url) for url in page.requests)
        own.kill()
        page.js(f"{SHOWN}.querySelector('.main').click()")
        told = page.wait(f"{SHOWN}.querySelector('.fault')?.innerText")
        assert told.startswith("The server cannot be reached; is it still running?")
        page.close()
    finally:
        own.kill()
