"""Signals and kills during `predict`, `embed` and `search` leave nothing half-written; glue refuses a file as --out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import litebert.cli.ended as ended
from litebert.checkpoint.leftovers import QUIET_SECONDS, is_running, remove_leftovers
from litebert.cli import app
from litebert.cli.ended import clean_end
from litebert.data.similar import SimilarRecord
from litebert.errors import DataError
from litebert.recipes.prediction_rows import PredictionRows, output_form
from litebert.tasks.base import Prediction
from litebert.tasks.similarity import Similarity


def gone_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_unwinds_the_command_and_is_its_exit_code(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    out = tmp_path / "p.txt"

    def rows() -> PredictionRows:
        def endless() -> object:
            for count in range(100):
                if count == 3:
                    os.kill(os.getpid(), number)
                yield {"text": "x"}, Prediction("a", 1.0, {"a": 1.0})

        return PredictionRows(endless())  # pyright: ignore[reportArgumentType]

    with pytest.raises(typer.Exit) as caught, clean_end():
        rows().save(out, "plain")
    assert caught.value.exit_code == 128 + number
    assert list(tmp_path.iterdir()) == [] and name in capsys.readouterr().err
    assert signal.getsignal(number) == before


def test_ignored_signals_and_other_threads_are_left_alone() -> None:
    import threading

    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with clean_end():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, old)
    seen: list[object] = []

    def inside() -> None:
        with clean_end():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
    assert ended.__all__ == ["clean_end"]


def test_what_a_killed_process_left_goes_and_all_else_stays(tmp_path: Path) -> None:
    gone, target = gone_process(), tmp_path / "v.npy"
    old = time.time() - 2 * QUIET_SECONDS
    stay = [
        ".v.npy.rows-1", f".v.npy.rows-{os.getpid()}", f".v.npy.rows-{gone}0x", "v.npy",
        f".w.npy.rows-{gone}", f".v.npy.other-{gone}",
    ]  # fmt: skip
    for name in (*stay, f".v.npy.rows-{gone}", f".v.npy.tmp-{gone}"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (old, old))
    fresh = tmp_path / f".v.npy.parquet-{gone}"
    fresh.write_text("x")
    remove_leftovers(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*stay, fresh.name])
    assert not is_running(gone) and is_running(os.getpid()) and is_running(10**30)
    remove_leftovers(tmp_path / "none" / "v.npy")


def test_an_empty_text_is_a_text(model_dir: Path) -> None:
    result = CliRunner().invoke(app, ["predict", str(model_dir), ""])
    assert result.exit_code == 0, result.output


def test_two_texts_are_a_record_of_similarity_and_one_is_none() -> None:
    record = Similarity().from_text("a lamp", "a light")
    assert isinstance(record, SimilarRecord) and record.texts == ("a lamp", "a light")
    for texts in (("a",), ("a", " "), ("", "b")):
        with pytest.raises(DataError, match="--pair"):
            Similarity().from_text(*texts)


def test_forms_of_outputs() -> None:
    assert output_form(Path("a.csv")) == "csv" and output_form(Path("a.out")) is None


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_glue_refuses_a_file_for_its_folder(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "CoLA").mkdir()
    out = tmp_path / "file"
    out.write_text("mine")
    result = CliRunner().invoke(app, ["glue", "tiny", str(tmp_path), "--out", str(out), *options])
    assert result.exit_code == 2 and "is no folder; choose another --out" in result.output
    assert out.read_text() == "mine"
