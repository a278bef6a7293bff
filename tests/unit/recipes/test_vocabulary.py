"""`litebert vocab`: from files to a folder of tokenizer files and a report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.checkpoint.fs import StorageError
from litebert.cli import app
from litebert.data.corpus import CorpusOptions
from litebert.errors import DataError, SettingsError
from litebert.recipes.vocabulary import (
    PRESETS,
    VocabularyProgress,
    VocabularySettings,
    make_vocabulary,
)
from litebert.settings import build_settings
from litebert.text.tokenizer import Tokenizer

WORDS = [
    "river",
    "stone",
    "lantern",
    "bright",
    "morning",
    "quiet",
    "orchard",
    "copper",
    "willow",
    "meadow",
    "harbour",
    "winter",
]
BODY = "\n\n".join(
    f"The {a} {b}{a[:3]} of {c}{b[-2:]}.\nIt is {c}." for a in WORDS for b in WORDS for c in WORDS
)
GERMAN = "\n\n".join(
    f"Die schöne {a}tür über der {b}höhe, größer als {c}."
    for a in WORDS
    for b in WORDS
    for c in WORDS[:4]
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text(BODY, encoding="utf-8")
    (folder / "b.txt").write_text(BODY[: len(BODY) // 2].upper(), encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_has_the_tokenizer_and_the_report(corpus: Path, tmp_path: Path) -> None:
    seen: list[VocabularyProgress] = []
    settings = VocabularySettings(size=60)
    report = make_vocabulary([corpus], tmp_path / "v", settings, on_progress=seen.append)
    assert set(content(tmp_path / "v")) == {
        "spiece.model", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "vocabulary.json",
    }  # fmt: skip
    tokenizer = Tokenizer.from_pretrained(tmp_path / "v")
    assert tokenizer.vocab_size == report.size == 60
    assert tokenizer.fingerprint == report.fingerprint
    assert json.loads((tmp_path / "v" / "vocabulary.json").read_text("utf-8")) == report.to_json()
    assert [Path(part.name).name for part in report.parts] == ["a.txt", "b.txt"]
    assert report.total.documents == report.documents == sum(p.documents for p in report.parts)
    assert report.total.coverage == 1.0 and report.total.unknown_rate == 0.0
    assert 1.0 < report.total.fertility < 6.0
    assert not report.is_sampled and not report.warnings and not report.faults
    assert [p.phase for p in seen][-2:] == ["learning", "measuring"]
    assert seen[-1].characters == report.characters


def test_the_same_corpus_and_seed_give_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    settings = VocabularySettings(size=60, max_bytes=20_000)
    for name in ("a", "b"):
        assert make_vocabulary([corpus], tmp_path / name, settings).is_sampled
    other = settings.model_copy(update={"seed": 1})
    make_vocabulary([corpus], tmp_path / "c", other)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert content(tmp_path / "a")["spiece.model"] != content(tmp_path / "c")["spiece.model"]


def test_presets_keep_or_strip_marks_and_stripping_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "de.txt"
    path.write_text(GERMAN, encoding="utf-8")
    stripped = make_vocabulary([path], tmp_path / "english", VocabularySettings(size=60))
    assert any("lose a mark (ö ü" in warning for warning in stripped.warnings)
    kept = make_vocabulary(
        [path], tmp_path / "accents", VocabularySettings(size=50, script="accents")
    )
    assert not kept.warnings
    tokenizer = Tokenizer.from_pretrained(tmp_path / "accents")
    assert tokenizer.decode(tokenizer.pieces("Über größer").ids) == "über größer"


def test_vowel_signs_are_warned_of_once(tmp_path: Path) -> None:
    path = tmp_path / "hi.txt"
    path.write_text(
        "\n\n".join(f"नदी के किनारे {i} पेड़ हैं और पानी ठंडा है।" for i in range(300)), encoding="utf-8"
    )
    report = make_vocabulary([path], tmp_path / "v", VocabularySettings(size=60))
    assert sum("--script indic" in warning for warning in report.warnings) == 1
    report = make_vocabulary([path], tmp_path / "w", VocabularySettings(size=60, script="indic"))
    assert not any("--script" in warning for warning in report.warnings)


def test_too_little_text_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One small text.", encoding="utf-8")
    report = make_vocabulary([path], tmp_path / "v", VocabularySettings(size=5000))
    assert report.size < 50
    (warning,) = (text for text in report.warnings if "give more text" in text)
    assert "--size" not in warning  # a size so small would be refused
    path.write_text(" ".join(f"{chr(97 + i % 26)}{i} word" for i in range(600)), encoding="utf-8")
    report = make_vocabulary([path], tmp_path / "w", VocabularySettings(size=5000))
    assert 50 <= report.size < 5000
    assert any(f"--size {report.size}" in warning for warning in report.warnings)


def test_many_files_are_reported_by_the_path_given(tmp_path: Path) -> None:
    for part in ("x", "y"):
        (tmp_path / part).mkdir()
        for number in range(60):
            (tmp_path / part / f"{number:03}.txt").write_text(BODY[:3000], encoding="utf-8")
    report = make_vocabulary(
        [tmp_path / "x", tmp_path / "y"], tmp_path / "v", VocabularySettings(size=60)
    )
    assert [Path(part.name).name for part in report.parts] == ["x", "y"]


def test_nothing_is_left_behind_when_it_fails(corpus: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    (corpus / "a.txt").write_text("\n".join(chr(0x4E00 + i) for i in range(3000)), encoding="utf-8")
    with pytest.raises(SettingsError, match="cannot hold the characters"):
        make_vocabulary([corpus], tmp_path / "v", VocabularySettings(size=60, script="cjk"))
    assert sorted(tmp_path.iterdir()) == before


def test_a_taken_folder_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "x").touch()
    with pytest.raises(SettingsError, match="not empty"):
        make_vocabulary([tmp_path / "absent"], tmp_path / "v")


def test_a_corpus_without_text_says_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.png").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(DataError, match=r"no text \(1 x not text; first: .*an image"):
        make_vocabulary([tmp_path / "c"], tmp_path / "v")
    with pytest.raises(DataError, match="no such file"):
        make_vocabulary([tmp_path / "absent"], tmp_path / "v")


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="allowed: english, accents"):
        build_settings(VocabularySettings, {"script": "latin"})
    assert all(0.999 < preset.coverage < 1.0 and preset.languages for preset in PRESETS.values())


def test_the_command(corpus: Path, tmp_path: Path) -> None:
    def run(*words: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["vocab", *map(str, words)])
        return result.exit_code, result.stdout, result.stderr

    (corpus / "c.png").write_bytes(b"\x89PNG\r\n")
    code, out, err = run(corpus, "--size", 60, "--out", tmp_path / "v")
    assert code == 0, err
    assert "60 pieces, from all" in out and "a.txt" in out
    assert "left out  1 x not text" in err and "learning" in err
    code, out, err = run(corpus, "--size", 60, "--out", tmp_path / "w", "--json")
    assert code == 0 and json.loads(out)["size"] == 60 and json.loads(out)["seconds"] >= 0
    assert content(tmp_path / "v") == content(tmp_path / "w")
    (corpus / "two\nlines.txt").write_text("A kettle sings in the kitchen.\n" * 9)
    code, out, err = run(corpus, corpus / "two\nlines.txt", "--size", 60, "--out", tmp_path / "n")
    assert code == 0 and "two\\nlines.txt" in out
    code, out, err = run(corpus, "--out", tmp_path / "v")
    assert code == 2 and "not empty" in err
    code, out, err = run(corpus, "--out", tmp_path / "x", "--documents", "page")
    assert code == 2 and "documents" in err
    code, out, err = run(tmp_path / "absent", "--out", tmp_path / "x")
    assert code == 66 and "no such file" in err


def test_options_of_the_corpus_reach_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\n".join(json.dumps({"body": line}) for line in BODY.split("\n\n")), encoding="utf-8"
    )
    with pytest.raises(DataError, match="'body'"):
        make_vocabulary([path], tmp_path / "v", VocabularySettings(size=60))
    settings = VocabularySettings(size=60, corpus=CorpusOptions(text_field="body"))
    assert make_vocabulary([path], tmp_path / "v", settings).documents == len(WORDS) ** 3


def test_a_place_that_cannot_be_written_is_told_before_reading(
    corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    told: list[VocabularyProgress] = []
    with pytest.raises(StorageError):
        make_vocabulary([corpus], tmp_path / "file" / "out", on_progress=told.append)
    assert not told


def test_a_size_is_advised_only_where_it_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 500)
    report = make_vocabulary([tmp_path / "a.txt"], tmp_path / "out")
    (warning,) = report.warnings
    assert warning.endswith("give more text")


LEARN_AND_INTERRUPT = """
import os, signal, sys
from pathlib import Path
from litebert.recipes.vocabulary import make_vocabulary
import litebert.recipes.vocabulary.run as run

def learn(texts, *_, **__):
    os.kill(os.getpid(), signal.SIGINT)

run.train_vocabulary = learn
signal.signal(signal.SIGINT, signal.default_int_handler)
make_vocabulary([Path(sys.argv[1])], Path(sys.argv[2]))
"""


def test_ctrl_c_while_learning_ends_at_once_and_leaves_nothing(
    corpus: Path, tmp_path: Path
) -> None:
    """SentencePiece would call the interruption a fault of the text."""
    command = [sys.executable, "-c", LEARN_AND_INTERRUPT, str(corpus), str(tmp_path / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
