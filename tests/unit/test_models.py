"""Names of encoders: where they lead, what wins over them, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.named_encoders import named_encoders

from litebert import models
from litebert.errors import CheckpointError, SettingsError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two named encoders, and something that is none; the working folder is empty."""
    folder = tmp_path / "encoders"
    for name in ("litebert-small-en", "our-own"):
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text("{}")
    (folder / "empty").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


def test_names_lead_to_folders(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with named_encoders(place, monkeypatch):
        assert models.available() == ("litebert-small-en", "our-own")
        assert models.default() == "litebert-small-en"
        assert models.path("our-own") == place / "our-own"
        assert models.locate("litebert-small-en") == place / "litebert-small-en"
        assert models.locate(Path("litebert-small-en")) == place / "litebert-small-en"
        assert models.is_name("our-own")
        assert not models.is_name("empty")


def test_what_exists_wins_and_other_paths_stay(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with named_encoders(place, monkeypatch):
        Path("litebert-small-en").mkdir()
        assert models.locate("litebert-small-en") == Path("litebert-small-en")
        assert not models.is_name("litebert-small-en")
        for word in ("runs/litebert-small-e", "my-run", "", "x" * 5000, "a\0b"):
            assert models.locate(word) == Path(word)


@pytest.mark.parametrize("word", ["litebert-smal-en", "litebert-small-eng", "Litebert-small-en"])
def test_almost_a_name_is_corrected(
    place: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    with named_encoders(place, monkeypatch):
        with pytest.raises(CheckpointError, match="did you mean 'litebert-small-en'"):
            models.locate(word)
        with pytest.raises(CheckpointError, match="known: litebert-small-en, our-own"):
            models.path("zzzz")


def test_an_installation_without_weights_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none").mkdir()
    with named_encoders(tmp_path / "none", monkeypatch):
        assert models.available() == ()
        assert models.default() is None
        with pytest.raises(CheckpointError, match="does not hold its weights") as caught:
            models.locate("litebert-small-en")
        assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_another_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        models.set_folder(tmp_path / "nowhere")
