"""Every task trained once from the best encoder at hand, beside its simple answers.

    python -m benchmarks.tasks --data SHARED/data --model FOLDER [--model-for GROUP=FOLDER] [--only NAME,...]

Finished rows are kept in the JSON, so the measurement can be continued; `--page` writes
docs/results/tasks.md from what is there. Each model is exported too, and scored in int8.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.quantized_scores import exported_scores
from benchmarks.tasks_page import page
from litebert.recipes.finetune.record_plan import RecordPlan
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import RunFolder, environment
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "tasks.json"
PAGE = ROOT / "docs" / "results" / "tasks.md"


@dataclass(frozen=True)
class Row:
    """One task: where its data are, and what is told about them.

    Attributes:
        group: title of its table on the page.
        train: file or folder below the data folder.
        task: what `--task` takes, None for a table.
        eval: file to score on, None: the source's own or a held-out part.
        member: file inside a zip that is unpacked first.
        is_english: whether the English encoder is of use; else from scratch.
        data, options: further settings of `[data]` and `[task]`.
    """

    group: str
    train: str
    task: str | None = None
    eval: str | None = None
    member: str | None = None
    is_english: bool = True
    data: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


SECONDS = {"GLUE": 90.0, "Questions": 240.0, "Choices": 150.0, "Tags": 120.0, "Similarity": 90.0}
"""Group -> seconds of training: long texts take more."""
SPLIT = {"eval_fraction": 0.21}
"""10 of the 48 articles of the SQuAD 1.1 development file."""
TASKS: dict[str, Row] = {
    **{
        name: Row("GLUE", f"glue/{name}", f"glue/{name.lower().replace('-', '')}")
        for name in ("CoLA", "SST-2", "MRPC", "STS-B", "RTE", "WNLI")
    },
    **{
        f"{name} (part)": Row(
            "GLUE", f"glue_subsets/{name}/train.json", eval=f"glue_subsets/{name}/dev.json"
        )
        for name in ("QNLI", "QQP", "MNLI")
    },
    "SQuAD 1.1": Row("Questions", "squad/dev-v1.1.json.zip", "squad", data=SPLIT),
    "SQuAD 2.0": Row("Questions", "squad/cs224n-dev-v2.0.json", "squad_v2", data=SPLIT),
    "XQuAD de": Row("Questions", "xquad/xquad.de.json", "squad", is_english=False, data=SPLIT),
    "JSQuAD": Row("Questions", "jglue/jsquad-v1.3", "squad", is_english=False),
    "QuAC (one dialogue by heart)": Row(
        "Questions", "quac_sample/quac_sample.json", "quac", eval="quac_sample/quac_sample.json"
    ),
    "RACE middle": Row("Choices", "race", "race/middle"),
    "DREAM": Row("Choices", "dream", "dream"),
    "ARC easy": Row("Choices", "arc/arc_easy_dev.csv", "arc", eval="arc/arc_easy_test.csv"),
    "ARC challenge": Row(
        "Choices", "arc/arc_challenge_dev.csv", "arc", eval="arc/arc_challenge_test.csv"
    ),
    "CommonsenseQA": Row("Choices", "commonsense_qa/dev_rand_split.jsonl", "commonsense_qa"),
    "JCommonsenseQA": Row(
        "Choices", "jglue/jcommonsenseqa-v1.3", "jcommonsenseqa", is_english=False
    ),
    "WikiGold": Row("Tags", "wikigold/wikigold.conll.txt", "tagging"),
    "WNUT17": Row(
        "Tags", "wnut17/wnut17train.conll", "tagging", eval="wnut17/emerging.dev.conll"
    ),
    "AnEM": Row("Tags", "anem_ner/AnEM.train", "tagging", eval="anem_ner/AnEM.test"),
    "CoNLL-2002 es": Row(
        "Tags", "nltk/conll2002.zip", "tagging", member="conll2002/esp.train",
        eval="conll2002/esp.testa", is_english=False,
    ),
    "CoNLL-2002 nl": Row(
        "Tags", "nltk/conll2002.zip", "tagging", member="conll2002/ned.train",
        eval="conll2002/ned.testa", is_english=False,
    ),
    "ATIS": Row("Tags", "atis", "intent_slots"),
    "SNIPS": Row("Tags", "snips", "intent_slots"),
    "STS-B cosine": Row("Similarity", "glue/STS-B", "stsb"),
    "SICK": Row("Similarity", "sick", "sick"),
    "JSTS": Row("Similarity", "jglue/jsts-v1.3", "jsts", is_english=False),
}  # fmt: skip


def ignore(event: object) -> None:
    del event


def paths_of(row: Row, data: Path, scratch: Path) -> tuple[Path, Path | None]:
    """Return the file to train on and the one to score on, unpacked where they are in an archive."""
    train, evaluation = data / row.train, data / row.eval if row.eval else None
    if row.member is None:
        return train, evaluation
    with zipfile.ZipFile(train) as archive:
        names = [
            n for n in archive.namelist() if n.startswith((row.member, row.eval or row.member))
        ]
        archive.extractall(scratch / "unpacked", names)
    return (
        scratch / "unpacked" / row.member,
        scratch / "unpacked" / row.eval if row.eval else None,
    )


def settings_of(
    row: Row,
    data: Path,
    scratch: Path,
    *,
    source: str,
    max_examples: int,
    train: dict[str, Any],
    **run: Any,
) -> FinetuneSettings:
    """Return the settings of a training on a task.

    Args:
        row: the task.
        data: folder with the data sets.
        scratch: empty folder for what is unpacked.
        source: what is started from.
        max_examples: most examples that are read.
        train: further settings of `[train]`.
        run: settings of the run as a whole.
    """
    path, evaluation = paths_of(row, data, scratch)
    told = {"train": str(path), "eval": str(evaluation) if evaluation else None, "task": row.task}
    guard = {"on_collapse": "warn", "restarts": 0}
    return build_settings(
        FinetuneSettings,
        {
            "data": told | {"on_bad_row": "skip", "max_examples": max_examples} | row.data,
            "task": row.options,
            "model": {"source": source},
            "train": {"guard": guard} | train,
            **run,
        },
    )


def measure(name: str, given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Train one task and return its scores with what they depend on."""
    row = TASKS[name]
    source = given.models.get(row.group, given.model) if row.is_english else "scratch"
    seconds = given.seconds or SECONDS[row.group]
    settings = settings_of(
        row, Path(given.data), scratch, source=source, max_examples=given.max_examples,
        train={"max_seconds": seconds, "threads": 1, "patience": 100}, num_seeds=given.seeds,
    )  # fmt: skip
    plan = make_plan(settings)
    run = RunFolder.create(scratch / "run", name="run")
    outcome = run_plan(plan, run, on_event=ignore, stop=StopRequest())
    finished = [seed for seed in outcome.seeds if seed.scores and seed.result is not None]
    metric = plan.task.metric
    values = [seed.scores[metric] for seed in finished]
    best = max(finished, key=lambda seed: seed.scores[metric])
    is_record = isinstance(plan, RecordPlan)
    return {
        "group": row.group,
        "metric": metric,
        "median": statistics.median(values),
        "scores": values,
        "all_scores": best.scores,
        "baselines": {b.name: b.scores[metric] for b in outcome.baselines},
        "faults": list(outcome.faults),
        "train_examples": len(plan.train.examples),
        "eval_examples": len(plan.eval.examples),
        "skipped": len(plan.skipped),
        "max_length": plan.task.max_length,
        "steps": [seed.result.step for seed in finished if seed.result],
        "epochs": [round(seed.result.epoch, 2) for seed in finished if seed.result],
        "seconds": [round(seed.result.seconds) for seed in finished if seed.result],
        "kind": "records" if is_record else "table",
        "encoder": Path(source).name,
        "budget": seconds,
        "exported": exported_scores(plan, run.path, scratch),
    }


def finished() -> dict[str, Any]:
    """Return the rows that are there, in the order of the page; those of before int8 was scored are not."""
    known = json.loads(RESULTS.read_text())["tasks"] if RESULTS.exists() else {}
    return {name: known[name] for name in TASKS if "exported" in known.get(name, {})}


def record(rows: dict[str, Any]) -> None:
    RESULTS.write_text(json.dumps({"tasks": rows, "environment": environment()}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", default="litebert-small-en", help="what tasks in English start from"
    )
    parser.add_argument("--data", help="folder with the data sets")
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--model-for",
        action="append",
        default=[],
        metavar="GROUP=FOLDER",
        dest="models",
        help="what a group of tasks starts from instead",
    )
    parser.add_argument("--seconds", type=float, help="of training, for each task the same")
    parser.add_argument("--max-examples", type=int, default=20_000)
    parser.add_argument("--again", action="store_true", help="begin the table anew")
    parser.add_argument("--page", action="store_true", help="write the page and stop")
    given = parser.parse_args()
    given.models = dict(pair.split("=", 1) for pair in given.models)
    if given.again:
        record({})
    wanted = [] if given.page else (given.only.split(",") if given.only else list(TASKS))
    for name in wanted:
        if name in finished():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                row = measure(name, given, Path(scratch))
            except Exception as error:  # the other tasks go on
                print(f"{name} failed: {type(error).__name__}: {error}", flush=True)
                continue
        print(name, json.dumps(row), flush=True)
        record(finished() | {name: row})  # read anew: another process may measure other tasks
    PAGE.write_text(page(finished(), RESULTS.parent))


if __name__ == "__main__":
    main()
