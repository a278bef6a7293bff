"""The files of the page as routes: each by its exact address, so that every other one stays what it was."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.staticfiles import StaticFiles

__all__ = ["PAGE", "add_page", "page_paths"]

PAGE: Final = Path(__file__).parent / "page"
INDEX: Final = "index.html"
_KINDS: Final = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm"}
"""What a browser insists on, whatever the machine's own table says."""


def page_paths(folder: Path = PAGE) -> dict[str, str]:
    """Return the file of each address; none where there is no page."""
    if not (folder / INDEX).is_file():
        return {}
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in files]
    return {"/": INDEX, **{f"/{name}": name for name in names}}


def add_page(router: Router, folder: Path = PAGE) -> None:
    """Add the routes of all files."""
    paths = page_paths(folder)
    if not paths:
        return
    for ending, kind in _KINDS.items():
        mimetypes.add_type(kind, ending)
    files = StaticFiles(directory=folder)
    for path, name in paths.items():
        router.add_route(path, _sender(files, name), methods=["GET"], include_in_schema=False)


def _sender(files: StaticFiles, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def send(request: Request) -> Response:
        response = await files.get_response(name, request.scope)
        # A newer package has newer files: ask each time; what is the same is not sent again.
        response.headers["cache-control"] = "no-cache"
        return response

    return send
