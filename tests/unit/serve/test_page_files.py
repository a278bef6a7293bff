"""The page's files as routes beside those of the service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from litebert.serve.page_files import PAGE, add_page, page_paths


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "a.js").write_text("export {};")
    (tmp_path / "model.wasm").write_bytes(b"\0asm")
    app = Starlette()
    app.add_route("/", lambda _: PlainTextResponse("posted"), methods=["POST"])
    add_page(app.router, tmp_path)
    return TestClient(app)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "text/html"), ("/index.html", "text/html"), ("/views/a.js", "text/javascript"),
     ("/model.wasm", "application/wasm")],
)  # fmt: skip
def test_files_are_sent_with_the_kind_that_browsers_insist_on(
    client: TestClient, path: str, kind: str
) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, kind)
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get(path, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head(path).status_code == 200


def test_other_addresses_and_methods_are_what_they_were(client: TestClient) -> None:
    assert client.post("/").text == "posted"
    assert client.put("/").status_code == 405
    for path in ("/views", "/views/", "/views/b.js", "/%2e%2e/secret", "/views/../index.htm"):
        assert client.get(path).status_code == 404


def test_no_page_is_no_route(tmp_path: Path) -> None:
    assert page_paths(tmp_path) == {}
    app = Starlette()
    add_page(app.router, tmp_path)
    assert TestClient(app).get("/").status_code == 404


def test_the_page_names_only_its_own_files_and_runs_nothing_inline() -> None:
    known = set(page_paths())
    assert "/" in known
    for name in known - {"/"}:
        path = PAGE / name.lstrip("/")
        if path.suffix not in (".js", ".html", ".css") or "local" in path.parts:
            continue
        text = path.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        )
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        for found in re.findall(r'(?:from|import\()\s*"(\.[^"]+)"', text):
            target = (path.parent / found).resolve()
            assert target.is_file() or "local" in target.parts, (name, found)
    index = (PAGE / "index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", index)
    for found in re.findall(r'(?:src|href)="([^"#]+)"', index):
        assert f"/{found}" in known
    assert index.count('<meta name="litebert-mode" content="server">') == 1
