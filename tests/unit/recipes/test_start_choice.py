"""What a run that names no model starts from, and what its plan says about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.bert_folders import VOCABULARY, write_vocabulary
from tests.named_encoders import NAME, make_student, named_encoders

from litebert.errors import CheckpointError
from litebert.recipes.finetune.language import readable_share
from litebert.recipes.finetune.model_choice import ModelChoice
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.settings import build_settings
from litebert.text.tokenizer import Tokenizer

ENGLISH = ["the kettle is fine", "a broken lamp", "the boat sails at night", "a quiet harbour"]
OTHER = {
    "Greek": ["η κατσαρόλα είναι σπασμένη", "το πλοίο φεύγει τη νύχτα", "το λιμάνι είναι ήσυχο"],
    "Hindi": ["केतली टूटी हुई है", "नाव रात में चलती है", "बंदरगाह शांत है"],
    "Japanese": ["やかんが壊れています", "船は夜に出航します", "港は静かです"],
}


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoders")
    make_student(folder / NAME)
    return folder


def plan_for(folder: Path, texts: list[str], **changes: Any) -> Any:
    rows = [f"{text} {n},{'ab'[n % 2]}" for n in range(20) for text in texts]
    table = folder / "t.csv"
    table.write_text("text,label\n" + "\n".join(rows) + "\n", "utf-8")
    values: dict[str, Any] = {"data": {"train": str(table)}} | changes
    return make_plan(build_settings(FinetuneSettings, values))


def choice(plan: Any) -> ModelChoice:
    return plan.model


def test_english_starts_from_the_package_and_is_told(
    encoders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with named_encoders(encoders, monkeypatch):
        plan = plan_for(tmp_path, ENGLISH)
        assert choice(plan).folder == encoders / NAME
        assert plan.settings.model.source == NAME  # so that a resumed run does not choose anew
        assert "comes with litebert (--from scratch" in "\n".join(plan.describe())
        again = make_plan(plan.settings)
        assert choice(again).folder == encoders / NAME


@pytest.mark.parametrize("language", OTHER)
def test_other_languages_start_from_scratch_and_say_why(
    encoders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    with named_encoders(encoders, monkeypatch):
        plan = plan_for(tmp_path, OTHER[language])
        assert choice(plan).folder is None
        assert plan.settings.model.source == "scratch"
        said = "\n".join(plan.describe())
        assert f"not from {NAME}, which is English: its vocabulary reads 0%" in said


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ({"source": "scratch"}, ""),
        ({"vocab_size": 100}, "model.vocab_size is told"),
        (
            {"config": {"hidden_size": 32, "num_attention_heads": 2}},
            "model.config.hidden_size is told",
        ),
        (
            {"config": {"litebert": {"positions": "rotary"}}},
            "model.config.litebert.positions is told",
        ),
    ],
)
def test_what_only_new_weights_can_follow_gives_them(
    encoders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any], why: str
) -> None:
    with named_encoders(encoders, monkeypatch):
        plan = plan_for(tmp_path, ENGLISH, model=model)
        assert choice(plan).folder is None
        assert why in choice(plan).reason
        assert (NAME in choice(plan).reason) == bool(why)


def test_options_that_weights_can_follow_keep_them(
    encoders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with named_encoders(encoders, monkeypatch):
        changes = {"config": {"hidden_dropout_prob": 0.1, "litebert": {"exit_heads": True}}}
        plan = plan_for(tmp_path, ENGLISH, model=changes, exits={"heads": True})
        assert choice(plan).folder == encoders / NAME
        assert choice(plan).config.hidden_dropout_prob == 0.1


def test_a_folder_of_that_name_here_wins_and_wrong_names_are_corrected(
    encoders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with named_encoders(encoders, monkeypatch):
        told = plan_for(tmp_path, ENGLISH, model={"source": NAME})
        assert choice(told).reason == f"weights of {NAME}"
        with pytest.raises(CheckpointError, match="did you mean 'litebert-small-en'"):
            plan_for(tmp_path, ENGLISH, model={"source": "litebert-smal-en"})
        with pytest.raises(CheckpointError, match="did you mean 'tiny'"):
            plan_for(tmp_path, ENGLISH, model={"source": "tinny"})
        make_student(tmp_path / NAME, seed=1)
        here = plan_for(tmp_path, ENGLISH, model={"source": NAME})
        assert choice(here).folder == Path(NAME)


def test_the_published_pooler_may_be_told_to_pretrained_weights(
    encoders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"config": {"litebert": {"pooler_reads": "first"}}}
    with named_encoders(encoders, monkeypatch):
        plan = plan_for(tmp_path, ENGLISH, model=told)
        assert choice(plan).folder == encoders / NAME
        assert choice(plan).config.litebert.pooler_reads == "first"


def test_without_the_weights_everything_is_as_before(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, ENGLISH)
    assert choice(plan).folder is None
    assert "litebert-small-en" not in choice(plan).reason
    assert plan.settings.model.source == "scratch"


def test_records_start_from_it_too(
    encoders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "names.conll"
    path.write_text("\n".join(f"the O\nboat O\nKettle{n} B-PER\n" for n in range(20)))
    values = {"data": {"train": str(path), "task": "tagging"}}
    with named_encoders(encoders, monkeypatch):
        plan = make_plan(build_settings(FinetuneSettings, values))
        assert choice(plan).folder == encoders / NAME
        assert plan.settings.model.source == NAME


def test_the_share_counts_letters_of_words_that_are_read(tmp_path: Path) -> None:
    write_vocabulary(tmp_path)
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert "kettle" in VOCABULARY
    assert readable_share(tokenizer, ["the kettle"]) == 1.0
    assert readable_share(tokenizer, ["the zzz"]) == 0.5
    assert readable_share(tokenizer, ["Ωx the", "THE"]) == pytest.approx(6 / 8)
    for nothing in ([], [""], ["12 34 ..."], ["a b c"]):
        assert readable_share(tokenizer, nothing) == 1.0


def test_encoders_of_vectors_learn_every_task_at_a_rate_they_bear(tmp_path: Path) -> None:
    make_student(tmp_path / "vectors")
    make_student(tmp_path / "words", head="mlm", pooling="cls")
    rows = "\n".join(f"{text},{n}.5" for n in range(20) for text in ENGLISH)
    (tmp_path / "numbers.csv").write_text(f"text,label\n{rows}\n", "utf-8")
    rates = []
    for name in ("vectors", "words"):
        told = {
            "data": {"train": str(tmp_path / "numbers.csv")},
            "model": {"source": str(tmp_path / name)},
        }
        plan = make_plan(build_settings(FinetuneSettings, told))
        assert plan.task.problem_type == "regression"
        rates.append(plan.settings.train.learning_rate)
    assert rates == [2e-4, 1e-3]
