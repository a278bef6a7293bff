"""The commands of the page on serving run, and the example files name what there is."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.serve_process import ServeProcess
from tests.serve_folders import make_folder
from typer.testing import CliRunner

from litebert.cli import app
from litebert.serve.settings import ServeSettings

pytest.importorskip("fastapi")
pytest.importorskip("onnx")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "serve.md").read_text("utf-8")
EXAMPLES = ROOT / "examples" / "serve"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page")
    make_folder("classify", root / "models").rename(root / "reviews-onnx")
    return root


@pytest.fixture(scope="module")
def server(place: Path) -> Generator[ServeProcess]:
    process = ServeProcess(place / "reviews-onnx").wait_until_serving()
    yield process
    process.kill()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def test_the_settings_are_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    lines = [line for block in blocks("text") for line in block.splitlines() if "--show" in line]
    assert len(lines) == 2
    for line in lines:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output


def test_the_requests_are_answered(server: ServeProcess) -> None:
    for line in "".join(blocks("bash")).splitlines():
        words = shlex.split(line)
        assert words[0] == "curl"
        path = words[1].removeprefix("localhost:8080")
        body = words[-1].encode() if "-d" in words else None
        status, answer, _ = server.ask(path, body)
        assert (status, bool(answer)) == (200, True)


def test_the_python_of_the_page_runs(server: ServeProcess) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("huggingface_hub")
    for block in blocks("python"):
        names: dict[str, Any] = {}
        exec(block.replace("http://localhost:8080", server.url), names)  # noqa: S102 - our own page
        if "client" in names:
            names["client"].close()


def test_every_setting_that_is_named_is_one() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE))
    bodies = {"raw_scores", "top_k", "return_text", "encoding_format", "source_sentence", "error_type",
              "entity_group", "token_str", "batch_tokens"}  # fmt: skip
    assert named - bodies <= set(ServeSettings.model_fields)


def test_the_examples_name_options_that_exist() -> None:
    yaml = pytest.importorskip("yaml")
    deployment, _ = yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text("utf-8"))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    docker = (EXAMPLES / "Dockerfile").read_text("utf-8")
    unit = (EXAMPLES / "litebert.service").read_text("utf-8")
    words = [*container["args"], *re.findall(r"--[a-z-]+", docker.partition("ENTRYPOINT")[2])]
    words += re.findall(r"--[a-z-]+", unit)
    helped = CliRunner().invoke(app, ["serve", "--help"], terminal_width=200).output
    for word in words:
        assert not word.startswith("--") or word in helped
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in ("/ready", "/health")
    import tomllib

    table = tomllib.loads((EXAMPLES / "serve.toml").read_text("utf-8"))
    ServeSettings.model_validate(table)


ONLY = """
import importlib.machinery, sys
allowed = set(sys.argv[2:]) | set(sys.stdlib_module_names)
class Ban:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Ban())
import litebert.cli, litebert.serve.configuration, litebert.serve.server
from litebert.runtime.session import Session
from litebert.serve.engine import describe, loop
describe.self_test(Session(sys.argv[1], threads=1))
"""


def test_the_image_holds_all_that_is_imported(place: Path) -> None:
    names = (EXAMPLES / "requirements.txt").read_text("utf-8").splitlines()
    allowed = {name.replace("-", "_") for name in names if name and not name.startswith("#")}
    allowed |= {"litebert", "google", "opentelemetry", "sitecustomize", "usercustomize"}
    done = subprocess.run(
        [sys.executable, "-c", ONLY, str(place / "reviews-onnx"), *sorted(allowed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
