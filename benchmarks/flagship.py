"""What the encoders of the package are worth: fine-tuned on thirteen tasks, and their vectors as they are.

    python -m benchmarks.flagship --data ../shared/data [--only SST-2,TREC] [--starts pretrained,scratch]
        [--seeds 3] [--seconds 600] [--max-examples 20000] [--teacher FOLDER] [--model FOLDER]

One row for each task, start and seed, kept in benchmarks/results/NAME.json as soon as it is finished,
so that the measurement can be continued; `--page` writes docs/results/flagship.md from what is there.
Starts: `pretrained` (--model), `scratch` (the default of `litebert train` without an encoder),
`teacher` (--teacher, fine-tuned the same way).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.quantized_scores import exported_scores
from benchmarks.tasks import SPLIT, Row, ignore, settings_of
from litebert.checkpoint.folder import load_model
from litebert.data.readers import ReadOptions
from litebert.models import DEFAULT, NAMES, locate
from litebert.recipes.exit_run import set_exit
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.plain_folder import plain_folder
from litebert.recipes.predictor import Predictor
from litebert.recipes.run_folder import RunFolder, environment
from litebert.runtime.session import Session
from litebert.runtime.text_model import TextModel
from litebert.tasks.records import RECORD_KINDS
from litebert.text.tokenizer import Tokenizer
from litebert.train.stop import StopRequest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "results" / "flagship.md"

TASKS: dict[str, Row] = {
    **{
        name: Row("Texts and pairs", f"glue/{name}", f"glue/{name.lower().replace('-', '')}")
        for name in ("SST-2", "CoLA", "MRPC", "RTE", "STS-B")
    },
    "TREC": Row("Texts and pairs", "nltk/qc.zip", "trec", member="qc"),
    "Banking77": Row("Texts and pairs", "banking77/train.csv", eval="banking77/test.csv"),
    "AG News": Row(
        "Texts and pairs", "ag_news/train_subset_10k.tsv", "ag_news", eval="ag_news/test.csv"
    ),
    "CLINC150": Row("Texts and pairs", "clinc150/data_full.json", "clinc150"),
    "WikiGold": Row("Records", "wikigold/wikigold.conll.txt", "tagging"),
    "CoNLL-2002 es": Row(
        "Records", "nltk/conll2002.zip", "tagging", member="conll2002/esp.train",
        eval="conll2002/esp.testa",
    ),
    "SQuAD 1.1": Row("Records", "squad/dev-v1.1.json.zip", "squad", data=SPLIT),
    "RACE middle": Row("Records", "race", "race/middle"),
}  # fmt: skip
VECTORS = {"STS-B": ("glue/STS-B", "stsb", "eval"), "SICK": ("sick", "sick", "test")}
"""Folder, kind and part of the scored pairs."""
STARTS = ("pretrained", "scratch", "teacher")
BARS = {"SST-2": ("accuracy", 0.86), "TREC": ("accuracy", 0.95), "Banking77": ("accuracy", 0.92)}
"""What was set as a goal before the measurement."""


def measure(
    name: str, start: str, seed: int, given: argparse.Namespace, scratch: Path
) -> dict[str, Any]:
    """Train one task once and return its scores with what they depend on."""
    row = TASKS[name]
    source = {"pretrained": given.model, "scratch": "scratch"}.get(start)
    if source is None:
        source = str(plain_folder(Path(given.teacher), scratch))
    train: dict[str, Any] = {"seed": seed, "threads": given.threads}
    train |= {} if given.seconds is None else {"max_seconds": given.seconds}
    train |= {} if given.epochs is None else {"epochs": given.epochs}
    train |= {} if given.rate is None else {"learning_rate": given.rate}
    # They are the same for every start and seed.
    has_baselines = start == given.starts[0] and seed == 0
    settings = settings_of(
        row, given.data, scratch, source=source, max_examples=given.max_examples,
        train=train, has_baselines=has_baselines, num_seeds=1,
    )  # fmt: skip
    plan = make_plan(settings)
    run = RunFolder.create(scratch / "run", name="run")
    outcome = run_plan(plan, run, on_event=ignore, stop=StopRequest())
    done = outcome.seeds[0]
    if not done.scores or done.result is None:
        raise RuntimeError(f"{name} from {start} gave no score: {done}")
    exported = {}
    if start == "pretrained" and seed == 0:
        exported = exported_scores(plan, run.best, scratch / "exported")
    return {
        "task": name,
        "start": start,
        "seed": seed,
        "metric": plan.task.metric,
        "score": done.scores[plan.task.metric],
        "all_scores": done.scores,
        "test_scores": dict(outcome.test_scores),
        "ece": [outcome.ece_before, outcome.ece_after],
        "baselines": {b.name: dict(b.scores) for b in outcome.baselines},
        "exported": exported,
        "faults": list(outcome.faults),
        "train_examples": len(plan.train.examples),
        "eval_examples": len(plan.eval.examples),
        "learning_rate": plan.settings.train.learning_rate,
        "steps": done.result.step,
        "epochs": round(done.result.epoch, 2),
        "seconds": round(done.result.seconds),
    }


def correlation(model: TextModel, name: str, data: Path) -> float:
    """Return the Spearman correlation of cosines with the scores of people, nothing trained."""
    folder, kind_name, part = VECTORS[name]
    kind = RECORD_KINDS.get(kind_name)
    source: Any = kind.read(data / folder, ReadOptions(), True)
    records = {"eval": source.eval, "test": source.test}[part].records
    task: Any = kind.make_task(records, {"max_length": 128})
    model.task = task
    features = task.features(records, model.tokenizer, labelled=False)
    outputs = model.outputs([feature.encoded for feature in features])
    return task.evaluate(records, task.answers(records, features, outputs))["spearman"]


def measure_vectors(given: argparse.Namespace, scratch: Path, known: dict[str, Any]) -> None:
    """Fill `known` with the correlations of the encoder, of its int8 graph, and of the teacher."""
    folder = locate(given.model)
    makers: dict[str, Any] = {"encoder": lambda: Predictor.load(folder)}
    if (folder / "export.json").exists():
        makers["int8"] = lambda: Session(folder, threads=given.threads)
    if given.teacher:
        makers["teacher"] = lambda: Predictor.load(plain_folder(Path(given.teacher), scratch))
    for side, make in makers.items():
        for name in VECTORS:
            if name not in known.setdefault(side, {}):
                known[side][name] = correlation(make(), name, given.data)
                print(f"vectors {side} {name}: {known[side][name]:.4f}", flush=True)


def measure_depths(given: argparse.Namespace, known: dict[str, float]) -> None:
    """Fill `known` with the correlation on STS-B of the vectors after each depth."""
    folder = locate(given.model)
    for depth in range(1, Predictor.load(folder).model.config.num_hidden_layers + 1):
        if str(depth) not in known:
            model = Predictor.load(folder)
            set_exit(model, folder, depth=depth)
            known[str(depth)] = correlation(model, "STS-B", given.data)
            print(f"depth {depth} STS-B: {known[str(depth)]:.4f}", flush=True)


def masked_words(given: argparse.Namespace) -> dict[str, float]:
    """Return how often masked pieces of WikiText-2 (test) are found: first guess, and among five.

    Every seventh piece is masked, in the first 300 paragraphs of 30 words and more.
    """
    folder = locate(given.model)
    model, tokenizer = load_model(folder, "mlm").eval(), Tokenizer.from_pretrained(folder)
    text = (given.data / "corpora" / "wikitext-2-raw" / "wiki.test.raw").read_text("utf-8")
    paragraphs = [line for line in text.splitlines() if len(line.split()) >= 30][:300]
    hits, hits_of_five, count = 0, 0, 0
    for encoded in tokenizer.encode_batch(paragraphs, max_length=128):
        ids = torch.tensor(encoded.ids)[None]
        places = torch.arange(4, ids.shape[1] - 1, 7)
        targets = ids[0, places].clone()
        ids[0, places] = tokenizer.mask_id
        with torch.inference_mode():
            best = model(ids).logits[0, places].topk(5, -1).indices
        hits += int((best[:, 0] == targets).sum())
        hits_of_five += int((best == targets[:, None]).any(-1).sum())
        count += len(targets)
    return {"first": hits / count, "among_five": hits_of_five / count, "masked": count}


def summed_up(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return one entry a task: medians of each start, and the simple answers."""
    found: dict[str, dict[str, Any]] = {}
    for name in TASKS:
        own = [row for row in rows if row["task"] == name]
        if not own:
            continue
        metric = own[0]["metric"]
        entry: dict[str, Any] = {"metric": metric, "train_examples": own[0]["train_examples"]}
        simple = next((row["baselines"] for row in own if row["baselines"]), {})
        scores = [values[metric] for values in simple.values() if metric in values]
        entry["majority"] = scores[0] if scores else None
        entry["tfidf"] = simple["tfidf"][metric] if "tfidf" in simple else None
        for start in STARTS:
            values = [row["score"] for row in own if row["start"] == start]
            entry[start] = statistics.median(values) if values else None
            entry[f"{start}_seeds"] = values
        epochs = [row["epochs"] for row in own if row["start"] == "pretrained"]
        entry["pretrained_epochs"] = statistics.median(epochs) if epochs else None
        errors = [
            row["ece"][1]
            for row in own
            if row["start"] == "pretrained" and row["ece"][1] is not None
        ]
        entry["pretrained_ece"] = statistics.median(errors) if errors else None
        exported = next((row["exported"] for row in own if row.get("exported")), None)
        entry["int8_loses"] = (
            exported["fp32"]["score"] - exported["int8"]["score"] if exported else None
        )
        if name in BARS:
            score, bar = BARS[name]
            # The official test set where the source has one with labels.
            got = [
                (row.get("test_scores") or row["all_scores"]).get(score)
                for row in own
                if row["start"] == "pretrained"
            ]
            entry["bar"] = {
                "score": score,
                "wanted": bar,
                "got": statistics.median(got) if got else None,
            }
        found[name] = entry
    return found


def page() -> str:
    """Return the Markdown page of what was measured of each encoder."""
    lines = [
        "# The encoders of the package, measured",
        "",
        "Fine-tuned with the defaults of `litebert train`, but for the epochs that are named (a time budget ended",
        "some runs early), beside the most frequent answer, TF-IDF with logistic regression, a model that starts",
        "from new weights, and the teacher fine-tuned the same way.",
        "Medians over seeds (pretrained, from scratch, teacher); scored on the development set, which also chose the",
        "best step, or on a held-out part. ECE is the expected calibration error of the pretrained start after the",
        "temperature was fitted, int8 what its export loses; epochs are its own.",
        "Made with `python -m benchmarks.flagship`; every run is in `benchmarks/results/NAME.json`.",
    ]
    for name in NAMES:
        path = RESULTS / f"{name}.json"
        lines += ["", f"## {name}", ""]
        lines += section(json.loads(path.read_text())) if path.exists() else ["Not measured yet."]
        stem = f"distill-{name.removeprefix('litebert-')}"
        if (PAGE.parent / "plots" / f"{stem}.png").exists():
            lines += ["", f"![How it learnt from its teacher](plots/{stem}.png)"]
    return "\n".join(lines) + "\n"


def section(results: dict[str, Any]) -> list[str]:
    """Return the lines about one encoder."""
    tasks, vectors = results.get("tasks", {}), results.get("vectors", {})
    lines = [
        "| Task | Score | Rows | Majority | TF-IDF | Scratch | Pretrained | Teacher | int8 | ECE | Epochs | Seeds |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in tasks.items():
        cells = [row[key] for key in ("majority", "tfidf", "scratch", "pretrained", "teacher")]
        cells += [row.get("int8_loses"), row.get("pretrained_ece")]
        shown = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        seeds = "/".join(str(len(row[f"{start}_seeds"])) for start in STARTS)
        lines.append(
            f"| {name} | {row['metric']} | {row['train_examples']:,} | {' | '.join(shown)} | "
            f"{row['pretrained_epochs'] or '-'} | {seeds} |"
        )
    if not tasks:
        lines = ["Fine-tuning: not measured yet."]
    missing = [name for name in TASKS if name not in tasks]
    if tasks and missing:
        lines += ["", f"Not measured: {', '.join(missing)}."]
    goals = [(name, row["bar"]) for name, row in tasks.items() if row.get("bar", {}).get("got")]
    if goals:
        lines += ["", "Goals that were set before:", ""]
        lines += [
            f"- {name}: {bar['score']} {bar['got']:.3f}, wanted {bar['wanted']:.2f}"
            + (" (reached)" if bar["got"] >= bar["wanted"] else " (**missed**)")
            for name, bar in goals
        ]
    if vectors:
        lines += [
            "",
            "Without fine-tuning: Spearman correlation of the cosine of two texts' vectors with the scores that",
            "people gave.",
            "",
            f"| | {' | '.join(VECTORS)} |",
            "|---|" + "---:|" * len(VECTORS),
        ]
        for side, values in vectors.items():
            shown = [f"{values[name]:.4f}" if name in values else "-" for name in VECTORS]
            lines.append(f"| {side} | {' | '.join(shown)} |")
    words = results.get("words")
    if words:
        lines += [
            "",
            f"Masked words of WikiText-2: {words['first']:.1%} right at the first guess, {words['among_five']:.1%} "
            f"among five ({words['masked']:,} pieces).",
        ]
    depths = results.get("depths", {})
    if depths:
        lines += [
            "",
            "After each depth (nothing was trained for leaving early), STS-B:",
            "",
            f"| Depth | {' | '.join(depths)} |",
            "|---|" + "---:|" * len(depths),
            f"| Spearman | {' | '.join(f'{value:.3f}' for value in depths.values())} |",
        ]
    return lines


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--model", default=DEFAULT, help="the encoder")
    parser.add_argument("--teacher", help="model folder of the teacher")
    parser.add_argument("--only", default="", help="comma-separated tasks")
    parser.add_argument("--starts", default="pretrained,scratch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="time budget of one training")
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--rate", type=float, help="peak learning rate")
    parser.add_argument("--max-examples", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, help="default: benchmarks/results/NAME.json")
    parser.add_argument("--no-vectors", action="store_true")
    parser.add_argument("--page", action="store_true", help="write the page and stop")
    given = parser.parse_args()
    given.starts = [name.strip() for name in given.starts.split(",") if name.strip()]
    wrong = [name for name in given.starts if name not in STARTS]
    wrong += [name for name in given.only.split(",") if name and name not in TASKS]
    if wrong:
        parser.error(
            f"unknown: {', '.join(wrong)}; starts {', '.join(STARTS)}; tasks {', '.join(TASKS)}"
        )
    if "teacher" in given.starts and not given.teacher:
        parser.error("the start teacher needs --teacher FOLDER")
    return given


def main() -> None:
    """Measure what is asked for and not measured yet."""
    given = arguments()
    path: Path = given.results or RESULTS / f"{Path(given.model).name}.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"rows": {}}

    def keep() -> None:
        rows = known["rows"]
        known["tasks"] = summed_up(list(rows.values()))
        known["environment"] = environment()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=1) + "\n")
        PAGE.write_text(page())

    names = [name for name in given.only.split(",") if name] or list(TASKS)
    wanted = [
        (name, start, seed)
        for seed in range(given.seeds)
        for name in names
        for start in given.starts
    ]
    for name, start, seed in [] if given.page else wanted:
        key = f"{name}/{start}/{seed}"
        if key in known["rows"]:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                row = measure(name, start, seed, given, Path(scratch))
            except Exception as error:  # the other tasks go on
                print(f"{key} failed: {type(error).__name__}: {error}", flush=True)
                continue
        print(f"{key}: {row['metric']} {row['score']:.4f} in {row['seconds']} s", flush=True)
        known["rows"][key] = row
        keep()
    if not given.page and not given.no_vectors:
        with tempfile.TemporaryDirectory() as scratch:
            measure_vectors(given, Path(scratch), known.setdefault("vectors", {}))
        measure_depths(given, known.setdefault("depths", {}))
        if "words" not in known:
            known["words"] = masked_words(given)
            print(f"masked words: {known['words']}", flush=True)
    keep()


if __name__ == "__main__":
    main()
