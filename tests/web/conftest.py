"""One web host for all tests here; everything lies in a sub path."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.web.folders import make_folder, make_site
from tests.web.host import web_host


@dataclass
class Sites:
    """Exports and their pages, each made once."""

    root: Path
    address: str = ""
    folders: dict[str, Path] = field(default_factory=dict)

    def folder(self, kind: str) -> Path:
        """The export of a kind."""
        if kind not in self.folders:
            self.folders[kind] = make_folder(kind, self.root / "exports")
        return self.folders[kind]

    def site(self, kind: str) -> str:
        """The address of the page of a kind."""
        place = self.root / "host" / "some" / "path" / kind
        if not place.exists():
            make_site(self.folder(kind), place)
        return f"{self.address}some/path/{kind}/"

    def path(self, kind: str) -> Path:
        """The folder of the page of a kind."""
        self.site(kind)
        return self.root / "host" / "some" / "path" / kind


@pytest.fixture(scope="session")
def sites(browser_runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Sites]:
    pytest.importorskip("onnx")
    assert browser_runtime.is_dir()
    found = Sites(tmp_path_factory.mktemp("sites"))
    (found.root / "host").mkdir()
    (found.root / "exports").mkdir()
    with web_host(found.root / "host") as address:
        found.address = address
        yield found
