"""`prune` from folder to folder: smaller matrices, an exact vocabulary, healing, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.bert_folders import WORDS, make_bert
from typer.testing import CliRunner

from litebert.checkpoint.folder import load_model
from litebert.checkpoint.saving import save_model
from litebert.cli import app
from litebert.errors import SettingsError
from litebert.recipes.compress_heal import HealOptions
from litebert.recipes.compress_measure import MeasureOptions
from litebert.recipes.evaluate import EvaluationJob
from litebert.recipes.predictor import Predictor
from litebert.recipes.prune import PruneJob, prune_folder
from litebert.text.tokenizer import Tokenizer


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Texts whose class follows from one word."""
    rows = [
        f"the {thing} is {word} today number {number},{label}"
        for number in range(3)
        for thing in ("kettle", "lamp", "chair", "radio")
        for word, label in (("broken", "bad"), ("lovely", "good"), ("quiet", "so-so"))
    ]
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_everything_at_once_and_healed(model_dir: Path, table: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the kettle is broken\n\nthe lamp is lovely\n", encoding="utf-8")
    out = tmp_path / "small"
    result = CliRunner().invoke(
        app,
        ["prune", str(model_dir), "--out", str(out), "--heads", "1", "--ffn", "20", "--vocab",
         str(corpus), "--data", str(table), "--train", str(table), "--epochs", "1", "--json"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    step = json.loads(result.stdout)["steps"][0]
    assert step["facts"]["healing"]["steps"] > 0
    assert step["facts"]["after"]["heads"] == 1 and step["facts"]["after"]["ffn"] == 20
    model = load_model(out)
    assert model.model.encoder.ffns[0].up.weight.shape == (20, 32)  # pyright: ignore
    assert model.model.encoder.attentions[0].output.weight.shape == (32, 16)  # pyright: ignore
    assert model.config.model_type == "litebert"
    assert step["after"]["parameters"] < step["before"]["parameters"]
    old, new = Tokenizer.from_pretrained(model_dir), Tokenizer.from_pretrained(out)
    assert new.vocab_size == model.config.vocab_size < old.vocab_size
    for text in ("the kettle is broken", "the radio is quiet today number 2"):
        before = [old.token(i) for i in old.encode(text).ids]
        assert [new.token(i) for i in new.encode(text).ids] == before
    answer = Predictor.load(out).predict(["the lamp is lovely"])[0]
    assert answer.label in ("bad", "good", "so-so")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_healing_can_learn_from_the_unpruned_model(
    model_dir: Path, table: Path, tmp_path: Path
) -> None:
    out, corpus = tmp_path / "small", tmp_path / "corpus.txt"
    corpus.write_text("the kettle is broken\n", encoding="utf-8")
    arguments = ["--ffn", "20", "--vocab", str(corpus), "--train", str(table), "--epochs", "1"]
    result = CliRunner().invoke(
        app,
        ["prune", str(model_dir), "--out", str(out), *arguments, "--heal", "distill", "--json"],
    )
    assert result.exit_code == 0, result.output
    step = json.loads(result.stdout)["steps"][0]
    assert step["facts"]["healing"]["teacher_share"] == 0.5
    assert any("answers of the unpruned model" in note for note in step["notes"])


def test_only_answers_to_labels_are_learnt(model_dir: Path) -> None:
    from types import SimpleNamespace

    from litebert.recipes import compress_heal

    options = HealOptions(Path("rows.csv"), teacher=model_dir)
    plan: Any = SimpleNamespace(task=SimpleNamespace(head="span", name="squad"))
    with pytest.raises(SettingsError, match="--heal labels"):
        compress_heal._teacher_loss(model_dir, plan, options)
    own = Tokenizer.from_pretrained(model_dir)
    narrow, _ = own.narrowed(own.used_ids(["the kettle"]))
    with pytest.raises(SettingsError, match="lacks"):
        compress_heal._teacher_ids(own, narrow)


def test_a_vocabulary_of_a_size(model_dir: Path, table: Path, tmp_path: Path) -> None:
    size = Tokenizer.from_pretrained(model_dir).vocab_size - 4
    command = ["prune", str(model_dir), "--vocab-size", str(size)]
    first, second = tmp_path / "first", tmp_path / "second"
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the kettle is broken\n\nthe lamp is lovely\n", encoding="utf-8")
    for words in (["--out", str(first)], ["--out", str(second), "--vocab", str(corpus)]):
        result = CliRunner().invoke(app, [*command, *words])
        assert result.exit_code == 0, result.output
    for out in (first, second):
        assert load_model(out).config.vocab_size == size
        assert Tokenizer.from_pretrained(out).vocab_size == size
    assert Predictor.load(first).predict(["the lamp is lovely"])


def test_a_vocabulary_alone_changes_no_answer(model_dir: Path, table: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the kettle is broken\n", encoding="utf-8")
    job = PruneJob(MeasureOptions(EvaluationJob(table), rounds=1, max_drop=0.0), vocab=(corpus,))
    report = prune_folder(model_dir, tmp_path / "small", job)
    assert report.drop == 0.0 and report.outputs is not None
    assert report.outputs.cosine_min == pytest.approx(1.0, abs=1e-6)
    text = "the chair is lovely today"
    a, b = (Predictor.load(f).predict([text])[0] for f in (model_dir, tmp_path / "small"))
    assert a.scores == pytest.approx(b.scores, abs=1e-6)


def test_depth_and_named_heads_need_no_data(model_dir: Path, tmp_path: Path) -> None:
    job = PruneJob(MeasureOptions(rounds=1), depth=1, keep_heads=(1,))
    report = prune_folder(model_dir, tmp_path / "small", job)
    assert report.after.depth == 1 and report.facts["kept_heads"] == [[1]]
    assert any("Not healed" in line for line in report.lines())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nothing to prune"),
        ({"heads": 1}, "measured on labelled data"),
        ({"depth": 99}, "pruning goes down"),
        ({"keep_heads": (9,)}, "different numbers from 0 to 1"),
        ({"depth": 1, "examples": 0}, "1 and more"),
    ],
)
def test_jobs_that_cannot_be_done_are_refused(
    options: dict[str, Any], words: str, model_dir: Path, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=words):
        prune_folder(model_dir, tmp_path / "small", PruneJob(MeasureOptions(rounds=1), **options))
    assert not list(tmp_path.iterdir())


def test_folders_without_a_task_are_not_scored(
    model_dir: Path, table: Path, tmp_path: Path
) -> None:
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(model_dir, bare)
    (bare / "task.json").unlink()
    job = PruneJob(MeasureOptions(rounds=1), ffn=8, train=table)
    with pytest.raises(SettingsError, match=r"has no task\.json"):
        prune_folder(bare, tmp_path / "small", job)


def test_vectors_are_pruned_by_what_they_feel(tmp_path: Path) -> None:
    bert, folded = tmp_path / "bert", tmp_path / "folded"
    make_bert(bert)
    text = tmp_path / "text.txt"
    words = [word for word in WORDS if word.isalpha()]
    text.write_text("\n\n".join(" ".join(words[n : n + 6]) for n in range(12)), encoding="utf-8")
    assert CliRunner().invoke(app, ["fold", str(bert), "--out", str(folded)]).exit_code == 0
    out = tmp_path / "narrow"
    command = ["prune", str(folded), "--out", str(out), "--ffn", "12", "--texts", str(text)]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)["steps"][-1]["facts"]
    assert facts["importance_tokens"] > 0
    assert load_model(out).config.intermediate_size == 12
    # What is kept matters more than a share by chance, and a unit that nothing reads does not at all.
    assert facts["unit_importance_kept"][0] > 12 / load_model(folded).config.intermediate_size
    table = tmp_path / "rows.csv"
    table.write_text("text,label\na,b\nb,c\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"vectors have no loss of their own.*--texts"):
        job = PruneJob(MeasureOptions(), ffn=8, train=table)
        prune_folder(folded, tmp_path / "labels", job)
    encoder = tmp_path / "encoder"
    save_model(load_model(folded).model, encoder, Tokenizer.from_pretrained(folded))
    with pytest.raises(SettingsError, match="no head that gives vectors"):
        prune_folder(encoder, tmp_path / "bare", PruneJob(MeasureOptions(), ffn=8, texts=(text,)))
    text.write_text("\n\n", encoding="utf-8")
    empty = CliRunner().invoke(app, [*command[:3], str(tmp_path / "none"), *command[4:]])
    assert empty.exit_code == 65
    assert "no text" in empty.output


def test_texts_that_decide_nothing_are_refused(tmp_path: Path) -> None:
    job = PruneJob(MeasureOptions(), vocab_size=10, texts=(tmp_path / "text.txt",))
    with pytest.raises(SettingsError, match="none are removed; tell --heads or --ffn"):
        job.check()


def test_texts_are_for_vectors_alone(model_dir: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the kettle is broken\n", encoding="utf-8")
    job = PruneJob(MeasureOptions(), ffn=8, texts=(text,))
    with pytest.raises(SettingsError, match="whose own loss says what matters"):
        prune_folder(model_dir, tmp_path / "out", job)
