"""`litebert glue` from a small copy of the benchmark to its table and archive, resumed and refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from litebert.cli import app

pytestmark = pytest.mark.slow

SMALL = (
    "--epochs", "1", "--no-baselines", "--seeds", "1", "--set", "model.vocab_size=80", "--set", "train.threads=1",
    "--set", "train.batch_size=8", "--set", "train.precision=fp32", "--set", "train.guard.enabled=false",
    "--set", "model.config.hidden_size=16", "--set", "model.config.num_attention_heads=2",
    "--set", "model.config.intermediate_size=16", "--set", "model.config.num_hidden_layers=1",
    "--set", "data.max_length=32",
)  # fmt: skip
THINGS = ("dog", "cat", "ship", "train", "cook", "king")
MNLI = "index\tpromptID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"


def pairs(count: int) -> list[tuple[str, str, str]]:
    """(first, second, relation): the second sentence repeats, denies or changes the first."""
    found = []
    for n in range(count):
        thing, other = THINGS[n % 6], THINGS[(n + 2) % 6]
        second, relation = (
            (f"A {thing} came home.", "entailment"),
            (f"No {thing} came home.", "contradiction"),
            (f"A {other} sat outside.", "neutral"),
        )[n % 3]
        found.append((f'The old {thing} came "home" at {n % 9}.', second, relation))
    return found


def write_benchmark(folder: Path) -> Path:
    mnli, rte, cola = (folder / name for name in ("MNLI", "RTE", "CoLA"))
    for path in (mnli, rte, cola, folder / "AX", folder / "SST-2"):
        path.mkdir(parents=True)
    rows = [f"{i}\t{i}\tletters\t{a}\t{b}\t{r}\t{r}\n" for i, (a, b, r) in enumerate(pairs(30))]
    (mnli / "train.tsv").write_text(MNLI + "".join(rows))
    for name in ("dev_matched", "dev_mismatched"):
        (mnli / f"{name}.tsv").write_text(MNLI + "".join(rows[:9]))
    test = "".join(f"{i}\t{i}\tletters\t{a}\t{b}\n" for i, (a, b, _) in enumerate(pairs(6)))
    head = "index\tpromptID\tgenre\tsentence1\tsentence2\n"
    (mnli / "test_matched.tsv").write_text(head + test)
    texts = "index\tsentence1\tsentence2"
    entail = ["entailment" if r == "entailment" else "not_entailment" for *_, r in pairs(24)]
    labelled = [
        f"{i}\t{a}\t{b}\t{label}\n"
        for i, ((a, b, _), label) in enumerate(zip(pairs(24), entail, strict=True))
    ]
    (rte / "train.tsv").write_text(f"{texts}\tlabel\n" + "".join(labelled))
    (rte / "dev.tsv").write_text(f"{texts}\tlabel\n" + "".join(labelled[:8]))
    plain = "".join(f"{i}\t{a}\t{b}\n" for i, (a, b, _) in enumerate(pairs(5)))
    (rte / "test.tsv").write_text(f"{texts}\n{plain}")
    (folder / "AX" / "diagnostic.tsv").write_text(f"{texts}\n{plain}")
    full = "".join(f"\t\t\t\tnews\t{a}\t{b}\t{r}\n" for a, b, r in pairs(6))
    columns = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain"
    (folder / "AX" / "diagnostic-full.tsv").write_text(
        f"{columns}\tPremise\tHypothesis\tLabel\n{full}"
    )
    (cola / "train.tsv").write_text("this is\tno such table\n" * 9)
    (cola / "dev.tsv").write_text("nor\tthis\n")
    (folder / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nfine words\t1\n")
    return folder


def glue(*arguments: object) -> Result:
    """The command in this process, without a terminal."""
    return CliRunner().invoke(app, ["glue", "tiny", *map(str, arguments)])


def files(out: Path) -> dict[str, list[list[str]]]:
    with zipfile.ZipFile(out / "submission.zip") as archive:
        return {
            name: [line.split("\t") for line in archive.read(name).decode("ascii").splitlines()]
            for name in archive.namelist()
        }


def test_a_benchmark_is_trained_scored_packed_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Drawing takes longer than the trainings, and is tested elsewhere.
    monkeypatch.setattr("litebert.recipes.finetune.job.draw_plots", lambda summary: {})
    data, out = write_benchmark(tmp_path / "glue"), tmp_path / "out"
    dry = glue(data, "--out", out, "--dry-run", "--tasks", "RTE,SST-2", *SMALL)
    assert dry.exit_code == 0, dry.output
    assert "SST-2: left out, SST-2 has no train.tsv" in dry.stdout and "estimate" in dry.stdout
    assert not out.exists()

    told = (data, "--out", out, "--from-mnli", *SMALL)
    first = glue(*told)
    assert first.exit_code == 1, first.output  # CoLA failed, the others went on
    scores = json.loads((out / "scores.json").read_text("utf-8"))
    tasks = scores["tasks"]
    assert {key: task["status"] for key, task in tasks.items()} == {
        "mnli": "finished", "cola": "failed", "sst2": "left out", "mrpc": "left out",
        "stsb": "left out", "qqp": "left out", "qnli": "left out", "rte": "finished",
        "wnli": "left out",
    }  # fmt: skip
    assert set(tasks["mnli"]["scores"]) == {"accuracy", "accuracy_mismatched"}
    assert tasks["mnli"]["scores"]["accuracy"] == tasks["mnli"]["scores"]["accuracy_mismatched"]
    assert tasks["rte"]["start"] == "the model of MNLI"
    assert "column" in tasks["cola"]["note"] or "cells" in tasks["cola"]["note"]
    for line in (
        "MNLI    acc ",
        "CoLA    failed:",
        "RTE     acc ",
        "AX: Matthews",
        "QQP.tsv: all answers are 0",
    ):
        assert line in first.stdout, first.stdout
    medians = [tasks[key]["median"] for key in ("mnli", "rte")]
    assert scores["mean"]["median"] == pytest.approx(sum(medians) / 2)
    assert -1 <= scores["ax_matthews"] <= 1

    packed = files(out)
    assert sorted(packed) == sorted(
        f"{name}.tsv"
        for name in (
            "AX", "CoLA", "MNLI-m", "MNLI-mm", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B", "WNLI",
        )
    )  # fmt: skip
    rows = {"AX": 1104, "RTE": 3000, "MNLI-m": 9796, "MNLI-mm": 9847, "STS-B": 1379, "QQP": 390_965}
    for name, table in packed.items():
        assert table[0] == ["index", "prediction"]
        assert [row[0] for row in table[1:]] == [str(i) for i in range(len(table) - 1)]
        assert len(table) - 1 == rows.get(name.removesuffix(".tsv"), len(table) - 1)
    assert {row[1] for row in packed["MNLI-m.tsv"][1:7]} <= {
        "entailment",
        "neutral",
        "contradiction",
    }
    assert {row[1] for row in packed["RTE.tsv"][1:6]} <= {"entailment", "not_entailment"}
    assert scores["filled"]["RTE"] == (
        "2,995 of 3,000 answers are entailment: the test file lacks these rows"
    )
    assert "there is no test_mismatched.tsv" in scores["filled"]["MNLI-mm"]
    assert "cola has no model" in scores["filled"]["CoLA"]

    weights = out / "mnli" / "model-best" / "model.safetensors"
    stamps = [path.stat().st_mtime_ns for path in (weights, out / "submission" / "RTE.tsv")]
    (data / "CoLA" / "train.tsv").write_text(
        "".join(
            f"s\t{n % 2}\t\tthe {THINGS[n % 6]} {'sleeps' if n % 2 else 'sleep the'}\n"
            for n in range(24)
        )
    )
    (data / "CoLA" / "dev.tsv").write_text("s\t1\t\tthe dog sleeps\ns\t0\t\tthe dog sleep the\n")
    (data / "CoLA" / "test.tsv").write_text("index\tsentence\n0\tthe cat sleeps\n1\tcat the\n")
    second = glue(*told)
    assert second.exit_code == 0, second.output
    assert "finished before, kept" in second.stderr
    assert stamps == [path.stat().st_mtime_ns for path in (weights, out / "submission" / "RTE.tsv")]
    again = json.loads((out / "scores.json").read_text("utf-8"))
    assert again["tasks"]["cola"]["status"] == "finished"
    assert again["tasks"]["mnli"] == tasks["mnli"] and again["ax_matthews"] == scores["ax_matthews"]
    assert again["filled"]["RTE"] == scores["filled"]["RTE"]
    assert again["filled"]["CoLA"].startswith("1,061 of 1,063 answers")

    other = glue(data, "--out", out, "--from-mnli", *SMALL, "--seeds", "2")
    assert other.exit_code == 2 and "holds a run with another seeds: 1, now 2" in other.stderr


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    assert (
        "did you mean 'cola'" in glue(tmp_path, "--tasks", "colla", "--out", tmp_path / "o").stderr
    )
    for more in ((), ("--dry-run",)):
        nothing = glue(tmp_path, "--out", tmp_path / "p", *more)
        assert nothing.exit_code == 2 and "nothing to train on" in nothing.stderr
        assert not (tmp_path / "p").exists()
    absent = glue(tmp_path / "absent", "--out", tmp_path / "q")
    assert absent.exit_code == 65 and "give the folder that holds CoLA" in absent.stderr
    data = write_benchmark(tmp_path / "glue")
    for told in (("--dry-run",), ()):
        for model, message in (
            ("tinny", "did you mean 'tiny'? Allowed: a model folder or a run folder"),
            (
                "zzz",
                "encoder or preset; allowed: a model folder or a run folder, litebert-small-en",
            ),
            ("litebert-smal-en", "did you mean 'litebert-small-en'?"),
            (
                str(tmp_path / "none"),
                "there is no such folder; give a model folder or a run folder",
            ),
        ):
            out = tmp_path / "r"
            command = ["glue", model, str(data), "--out", str(out), *told]
            wrong = CliRunner().invoke(app, command)
            assert wrong.exit_code == 66 and message in wrong.stderr, wrong.output
            assert wrong.stderr.count("error:") == 1 and not out.exists()
        setting = glue(data, "--out", tmp_path / "r", "--set", "train.sed=1", *told)
        assert setting.exit_code == 2 and "no setting 'train.sed'" in setting.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    for place in ("full/letter.txt", "full/letter.txt/glue"):
        taken = glue(data, "--out", tmp_path / place)
        assert taken.exit_code == 2 and "letter.txt exists and is no folder" in taken.stderr
    taken = glue(data, "--out", tmp_path / "full")
    assert taken.exit_code == 2 and "is no GLUE run" in taken.stderr
