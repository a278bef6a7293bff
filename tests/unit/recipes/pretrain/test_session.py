from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "train"))
from thread_ranks import on_ranks

from litebert.errors import CheckpointError, SettingsError
from litebert.recipes.durations import parse_duration
from litebert.recipes.pretrain import run, session
from litebert.recipes.pretrain.job import open_run
from litebert.recipes.pretrain.session import (
    Session,
    open_session,
    preview,
    read_settings,
)
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.recipes.run_folder import START_FILES
from litebert.settings import dump_toml
from litebert.train.ranks import ALONE, Ranks
from litebert.train.stop import StopRequest

CONFIG = Path("settings.toml")


def begin(
    settings: PretrainSettings, out: Path, *, is_resume: bool = True, ranks: Ranks = ALONE
) -> Session:
    return open_session(
        settings,
        config=CONFIG,
        out=out,
        is_resume=is_resume,
        command="litebert pretrain settings.toml",
        say=lambda line: None,
        ranks=ranks,
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("600s", 600), ("45m", 2700), ("2h", 7200), (" 1.5D ", 129600), ("3 min", 180)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0h", "-1h", "2 weeks", "h", "1h30m", "nan", "1e3"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is no time; allowed are numbers with s, m, h or d"):
        parse_duration(text)


def test_settings_are_read_with_overrides_and_budget(wanted: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(dump_toml(wanted()), encoding="utf-8")
    found = read_settings(path, overrides=("train.seed=5",), time_budget="2h")
    assert (found.train.seed, found.train.max_seconds) == (5, 7200)
    with pytest.raises(SettingsError, match="no_such"):
        read_settings(path, overrides=("train.no_such=5",))


def test_a_preview_writes_nothing(wanted: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    lines = preview(wanted())
    assert any(line.startswith("speed ") for line in lines)
    assert not list(tmp_path.iterdir())


def test_a_run_begins_and_goes_on(wanted: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = begin(wanted(), out)
    assert first.resume_command == f"litebert pretrain settings.toml --out {out} --resume"
    names = {path.name for path in out.iterdir()}
    assert names == {*START_FILES, "config.toml", "chunks-train.bin"}
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = begin(wanted(), out)
    assert again.plan.settings == first.plan.settings
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    with pytest.raises(SettingsError, match="exists and is not empty"):
        begin(wanted(), out, is_resume=False)


def test_a_start_that_was_killed_is_done_again(wanted: Any, tmp_path: Path) -> None:
    """The settings are the last file; without them nothing can be resumed or lost."""
    out = tmp_path / "run"
    out.mkdir()
    for name in (*START_FILES, ".config.toml.tmp-123", ".env.json.tmp-1"):
        (out / name).write_text("litebert pretrain c.toml")
    with pytest.raises(SettingsError, match="not empty"):
        begin(wanted(), out, is_resume=False)
    begin(wanted(), out)
    assert not list(out.glob(".*"))


@pytest.mark.parametrize("name", ["letter.txt", ".config.toml", "env.json.bak"])
def test_files_of_somebody_else_are_left_alone(wanted: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "command.txt").write_text("mine")
    (tmp_path / name).write_text("mine too")
    with pytest.raises(SettingsError, match="not empty"):
        begin(wanted(), tmp_path)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"mine", "mine too"}


def test_intervals_stay_as_they_were_begun(wanted: Any, tmp_path: Path) -> None:
    """They follow from the measured speed, which is another one every time."""
    open_steps = {"train": {"eval_steps": None, "save_steps": None, "max_steps": 40}}
    first = begin(wanted(**open_steps), tmp_path / "run").plan.settings.train
    assert first.eval_steps == 2 and first.save_steps is not None
    _, again = open_run(tmp_path / "run", wanted(**open_steps))
    assert (again.train.eval_steps, again.train.save_steps) == (2, first.save_steps)
    _, other = open_run(tmp_path / "run", wanted(train={"data_workers": 3, "threads": 2}))
    assert (other.train.data_workers, other.train.threads) == (3, 2)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"data": {"max_length": 80}}, "data.max_length was 96, is 80"),
        ({"data": {"short_fraction": 0.3}}, "data.short_fraction was 0.1, is 0.3"),
        ({"model": {"source": "tiny"}}, "model.source was 'small', is 'tiny'"),
        ({"objectives": {"order": "none"}}, "objectives.order was"),
    ],
)
def test_other_settings_are_refused_by_name(
    wanted: Any, tmp_path: Path, sections: dict[str, Any], message: str
) -> None:
    begin(wanted(), tmp_path / "run")
    with pytest.raises(CheckpointError, match=message):
        begin(wanted(**sections), tmp_path / "run")
    begin(wanted(data={"verify": True}), tmp_path / "run")


def test_a_folder_that_is_no_run_is_refused(wanted: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such run folder"):
        open_run(tmp_path / "nothing", wanted())


def test_a_model_larger_than_memory_is_refused(
    wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name])
    with pytest.raises(SettingsError, match=r"needs about .* lower train\.micro_batch_tokens"):
        begin(wanted(), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    common: dict[str, Any] = {"config": CONFIG, "out": tmp_path / "run", "is_resume": False}
    open_session(wanted(), **common, command="", is_forced=True, say=lambda line: None)
    monkeypatch.setattr(os, "sysconf_names", {})
    begin(wanted(), tmp_path / "other")


def test_without_a_folder_the_next_one_is_taken(
    wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    common: dict[str, Any] = {
        "config": CONFIG,
        "out": None,
        "command": "",
        "say": lambda line: None,
    }
    paths = [
        open_session(wanted(), is_resume=is_resume, **common).folder.path
        for is_resume in (True, False, True)
    ]
    assert [path.name for path in paths] == ["settings-1", "settings-2", "settings-2"]


def test_the_first_rank_decides_and_writes_for_all(
    wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimated: list[int] = []

    def estimate(plan: Any, *, world: int = 1) -> Any:
        estimated.append(world)
        return run.estimate_plan(plan, world=world)

    monkeypatch.setattr(session, "estimate_plan", estimate)
    open_steps = {"train": {"eval_steps": None, "save_steps": None}}

    def do(ranks: Ranks) -> Session:
        return begin(wanted(**open_steps), tmp_path / "run", ranks=ranks)

    first, second = on_ranks(2, do)
    assert estimated == [2]
    assert first.plan.settings == second.plan.settings
    assert first.plan.source().fingerprint == second.plan.source().fingerprint
    assert first.folder == second.folder


def test_more_ranks_than_examples_are_refused(wanted: Any, tmp_path: Path) -> None:
    opened = begin(wanted(), tmp_path / "run")
    with pytest.raises(SettingsError, match="5 processes cannot share 4 examples"):
        run.run_plan(
            opened.plan,
            opened.folder,
            on_event=lambda event: None,
            stop=StopRequest(),
            ranks=Ranks(0, 5),
        )


def test_a_taken_folder_is_refused_before_anything_is_measured(
    wanted: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    out = tmp_path / "run"
    begin(wanted(), out)
    monkeypatch.setattr(session, "make_plan", lambda *_: pytest.fail("measured"))
    with pytest.raises(SettingsError, match=r"continue it with: litebert pretrain .* --resume"):
        begin(wanted(), out, is_resume=False)


def test_a_start_that_fails_leaves_no_folder(wanted: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(session, "estimate_plan", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        begin(wanted(), tmp_path / "run")
    assert not (tmp_path / "run").exists()
