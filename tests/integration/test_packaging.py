"""The wheel, installed without extras into a fresh environment: no torch, and still of use."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from tests.named_encoders import NAME, make_named_encoder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TORCH_FREE = ("errors", "files", "models", "registry", "settings", "text", "data", "tasks", "cli", "model.config",
              "model.presets", "model.sharing", "model.counting", "model.head_kinds",
              "recipes.describe", "recipes.doctor", "recipes.data_check")  # fmt: skip
MOST_WHEEL_BYTES = 30_000_000
MOST_GRAPH_BYTES = 7_000_000
"""Of the int8 graph with the tokenizer."""
WALK = """
import importlib, pkgutil, sys
names = []
for name in {roots!r}:
    module = importlib.import_module("litebert." + name)
    names.append(module.__name__)
    if hasattr(module, "__path__"):
        for found in pkgutil.walk_packages(module.__path__, module.__name__ + "."):
            importlib.import_module(found.name)
            names.append(found.name)
assert "torch" not in sys.modules
print(len(names))
"""


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, with a stand-in for the encoder where the weights are not here."""
    out, source = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("source")
    for name in (".gitignore", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(repository / name, source / name)
    shutil.copytree(
        repository / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    encoder = source / "src" / "litebert" / "models" / NAME
    if not encoder.exists():
        made = make_named_encoder(tmp_path_factory.mktemp("encoder") / "encoders")
        shutil.copytree(made, encoder)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(wheel: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--retries", "1",
           "--disable-pip-version-check", "-c", str(repository / "constraints.txt")]  # fmt: skip
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, check=False)
    offline = ("Could not find a version", "Failed to establish", "Connection", "timed out")
    if done.returncode and any(word in done.stderr for word in offline):
        pytest.skip(f"pip reaches no package index: {done.stderr.strip().splitlines()[-1]:.200}")
    assert done.returncode == 0, done.stderr[-2000:]
    return programs


def call(bare: Path, program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV", "LITEBERT_MODELS")
    }
    return subprocess.run(
        [str(bare / program), *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_wheel_holds_what_runs_need(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(n for n in names if n.endswith("/METADATA"))).decode("utf-8")
    for name in ("py.typed", "recipes/report.css", "recipes/quickstart/train.csv",
                 "recipes/quickstart/eval.csv", "__main__.py", "serve/page/index.html",
                 "serve/page/app.js", "serve/page/views/classify.js"):  # fmt: skip
        assert f"litebert/{name}" in names, name
    assert all(name.startswith(("litebert/", "litebert-")) for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert any(name.endswith("licenses/LICENSE") for name in names)
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    assert not [line for line in required if "torch" in line and "extra ==" not in line]


def test_the_wheel_holds_the_runtime_of_the_browser(wheel: Path, browser_runtime: Path) -> None:
    """It is fetched, not tracked, so the build has to be told of it."""
    place = "litebert/serve/page/local/onnxruntime/"
    with zipfile.ZipFile(wheel) as archive:
        inside = {n.removeprefix(place): archive.getinfo(n).file_size
                  for n in archive.namelist() if n.startswith(place)}  # fmt: skip
    assert inside == {path.name: path.stat().st_size for path in browser_runtime.iterdir()}


def test_the_wheel_carries_the_encoder_and_stays_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_WHEEL_BYTES
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    folder = f"litebert/models/{NAME}/"
    for name in ("config.json", "model.safetensors", "onnx/litebert_int8.onnx", "export.json",
                 "task.json", "tokenizer.json", "vocab.txt", "README.md"):  # fmt: skip
        assert folder + name in sizes, name
    graph = sizes[folder + "onnx/litebert_int8.onnx"]
    assert (
        graph + sizes[folder + "tokenizer.json"] + sizes[folder + "vocab.txt"] <= MOST_GRAPH_BYTES
    )


def test_the_encoder_works_by_name_without_torch(bare: Path, tmp_path: Path) -> None:
    code = f"""
import sys
import litebert
model = litebert.load("{NAME}")
vectors = model.embed(["the kettle is broken", "a quiet harbour"])
assert vectors.shape == (2, model.hidden_size), vectors.shape
assert "torch" not in sys.modules
print(litebert.models.available())
"""
    done = call(bare, "python", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert NAME in done.stdout
    (tmp_path / "texts.txt").write_text("the kettle is broken\na boat sails\n")
    for arguments in (("embed", "texts.txt"), ("search", "texts.txt", "a lamp", "--no-cache"),
                      ("embed", NAME, "texts.txt"), ("info", NAME)):  # fmt: skip
        done = call(bare, "litebert", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]


def test_torch_free_modules_import_without_torch(bare: Path, tmp_path: Path) -> None:
    done = call(bare, "python", "-c", "import torch", cwd=tmp_path)
    assert "No module named 'torch'" in done.stderr
    done = call(bare, "python", "-c", WALK.format(roots=TORCH_FREE), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_reading_commands_work_without_torch(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "text,label\n"
        + "".join(f"the lamp number {i} is {'ab'[i % 2]},{'ab'[i % 2]}\n" for i in range(40))
    )
    for arguments in (("--help",), ("--version",), ("info", "albert-base-v2", "--json"),
                      ("compare", "albert-base-v2", "bert-base"), ("train", "--help"),
                      ("doctor", "--json"), ("data", "check", "t.csv", "--json")):  # fmt: skip
        done = call(bare, "litebert", *arguments, cwd=tmp_path)
        assert done.returncode == 0 or arguments[0] in ("doctor", "data"), done.stderr
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        if "--json" in arguments:
            assert json.loads(done.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "t.csv"),
        ("predict", ".", "text"),
        ("evaluate", ".", "t.csv"),
        ("quickstart",),
        ("convert", "a.bin", "out"),
    ],
)
def test_commands_that_need_torch_say_so(
    bare: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = call(bare, "litebert", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert 'pip install "litebert[train]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_names_that_need_torch_say_so(bare: Path, tmp_path: Path) -> None:
    code = """
import litebert
from litebert.errors import MissingDependencyError
print(litebert.parameter_count(litebert.preset("albert-base-v2")), litebert.Tokenizer.__name__)
print(litebert.Session.__name__)  # needs none
calls = {name: lambda name=name: getattr(litebert, name) for name in ("AlbertModel", "AlbertWithHead", "Predictor")}
for name, call in (calls | {"load": lambda: litebert.load(".")}).items():
    try:
        call()
    except MissingDependencyError as error:
        assert error.extra == "train", error
    else:
        raise SystemExit(name)
"""
    done = call(bare, "python", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["Tokenizer", "Session"]
