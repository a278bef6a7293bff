"""An outcome as the facts that plots, report and model card show."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

from litebert import __version__
from litebert.data.records import RecordSplit
from litebert.model.counting import parameter_count, unshared_parameter_count
from litebert.recipes.finetune.classification_work import MIN_CALIBRATION_EXAMPLES, further
from litebert.recipes.finetune.hazards import CUT_FRACTION
from litebert.recipes.finetune.plan import Plan
from litebert.recipes.finetune.record_mistakes import worst_answers
from litebert.recipes.finetune.record_plan import RecordPlan, record_lengths
from litebert.recipes.run_folder import environment
from litebert.recipes.summary import (
    BaselineScore,
    Curve,
    DataFile,
    LabelCount,
    ModelFacts,
    RunSummary,
    SeedScore,
)
from litebert.settings import dump_toml
from litebert.tasks.evaluation import evaluate_answers
from litebert.tasks.labels import label_names
from litebert.tasks.slices import record_slices

if TYPE_CHECKING:
    from litebert.data.examples import Example
    from litebert.data.tables import Table
    from litebert.recipes.finetune.outcome import Outcome
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.recipes.run_folder import RunFolder
    from litebert.tasks.classification import SequenceClassification

__all__ = ["summarize"]


def summarize(outcome: Outcome, folder: RunFolder, command: str) -> RunSummary:
    """Gather everything about a finished run.

    Raises:
        ValueError: the run was interrupted.
    """
    plan, chosen, task = outcome.plan, outcome.chosen, outcome.task
    if chosen is None or chosen.logits is None or chosen.result is None or task is None:
        raise ValueError("an interrupted run has no summary")
    own = (
        _of_records(outcome, folder) if isinstance(plan, RecordPlan) else _of_table(outcome, folder)
    )
    result = chosen.result
    metrics = _read_metrics(folder, chosen.seed)
    train_lines = [line for line in metrics if line["kind"] == "train"]
    eval_lines = [line for line in metrics if line["kind"] == "eval"]
    common = RunSummary(
        name=folder.path.name,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        litebert_version=__version__,
        command=command,
        predict_command="",
        seed=chosen.seed,
        kind="",
        head=task.head,
        metric=task.metric,
        settings_toml=dump_toml(plan.settings),
        model=_model_facts(plan, folder),
        data=_data_files(plan),
        scores={},
        evaluated=len(plan.eval.examples),
        baselines=tuple(
            BaselineScore(name=b.name, method=b.method, scores=b.scores, seconds=b.seconds)
            for b in outcome.baselines
        ),
        seeds=tuple(
            SeedScore(seed=s.seed, score=s.scores[task.metric], is_chosen=s is chosen)
            for s in outcome.seeds
            if s.scores
        ),
        lengths=dict(sorted(plan.lengths.items())),
        max_length=task.max_length,
        loss=_curve(train_lines, "loss"),
        learning_rate=_curve(train_lines, "learning_rate"),
        eval_scores={
            key: _curve([line["metrics"] | {"step": line["step"]} for line in eval_lines], key)
            for key in dict.fromkeys((task.metric, "log_loss"))
            if any(key in line["metrics"] for line in eval_lines)
        },
        best_step=result.best_step,
        steps=result.step,
        seconds=result.seconds,
        tokens_per_second=result.tokens_seen / max(result.seconds, 1e-9),
        warnings=_warnings(outcome),
        limits=_limits(plan),
        environment=_environment(),
    )
    return common.model_copy(update=own)


def _of_table(outcome: Outcome, folder: RunFolder) -> dict[str, Any]:
    """Return the facts of classification and regression."""
    plan, task = outcome.plan, outcome.task
    logits: Any = outcome.chosen.logits if outcome.chosen else None
    evaluation = evaluate_answers(task, logits, plan.eval.labels(), plan.eval.examples)
    scores = dict(evaluation.scores)
    if outcome.ece_after is not None:
        scores["ece"] = outcome.ece_after
    scores |= {} if outcome.chosen is None else further(plan, outcome.chosen)
    sample = '"your text"' if not task.is_pair else '"first text" --pair "second text"'
    return {
        "predict_command": f"litebert predict {shlex.quote(str(folder.path))} {sample}",
        "kind": task.kind,
        "labels": task.labels,
        "text_columns": task.text_columns,
        "label_column": task.label_column,
        "inferred": plan.schema.reasons,
        "label_counts": _label_counts(plan, task),
        "scores": scores,
        "class_table": evaluation.class_table,
        "confusion": evaluation.confusion,
        "points": evaluation.points,
        "temperature": task.temperature,
        "ece_before": outcome.ece_before,
        "reliability": evaluation.reliability,
        "mistakes": evaluation.mistakes,
        "slices": evaluation.slices,
        "abstention": evaluation.abstention,
    }


def _of_records(outcome: Outcome, folder: RunFolder) -> dict[str, Any]:
    """Return the facts of a task over records."""
    part, task = outcome.plan.eval, outcome.task
    logits = outcome.chosen.logits if outcome.chosen else None
    answers = task.answers(part.examples, part.features, logits)
    return {
        "predict_command": f"litebert predict {shlex.quote(str(folder.path))} FILE",
        "kind": task.name,
        "labels": tuple(task.config_labels().values()),
        "inferred": outcome.plan.notes,
        "scores": dict(task.evaluate(part.examples, answers)),
        "mistakes": worst_answers(task, part.examples, answers),
        "slices": record_slices(task, part.examples, answers, record_lengths(part.examples)),
    }


def _read_metrics(folder: RunFolder, seed: int) -> list[dict[str, Any]]:
    path = folder.checkpoints(seed) / "metrics.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _curve(lines: list[dict[str, Any]], key: str) -> Curve:
    return Curve.of((int(line["step"]), float(line.get(key, "nan"))) for line in lines)


def _model_facts(plan: AnyPlan, folder: RunFolder) -> ModelFacts:
    config = plan.model.config
    weights = folder.best / "model.safetensors"
    return ModelFacts(
        name=str(plan.model.folder or plan.settings.model.source),
        parameters=parameter_count(config, head=plan.task.head),
        unshared_parameters=unshared_parameter_count(config, head=plan.task.head),
        size_bytes=weights.stat().st_size,
        is_pretrained=plan.model.folder is not None,
        facts={
            "start": plan.model.reason,
            "depths": str(config.num_hidden_layers),
            "width": str(config.hidden_size),
            "embedding": str(config.embedding_size),
            "sharing": config.litebert.sharing,
            "vocabulary": f"{plan.model.tokenizer.vocab_size:,} pieces",
            "maximum length": f"{plan.task.max_length} tokens",
        },
    )


def _data_files(plan: AnyPlan) -> tuple[DataFile, ...]:
    files: list[DataFile] = []
    for role, split, table in plan.parts():
        files.append(
            DataFile(
                role=role,
                name=table.path.name if table else "held out",
                sha256=table.sha256 if table else "",
                examples=len(split.examples),
                skipped=sum(table is not None and row.path == table.path for row in plan.skipped),
                note=_read_as(table) if table else "; ".join(plan.notes),
            )
        )
    return tuple(files)


def _read_as(table: Table | RecordSplit[Any]) -> str:
    return "" if isinstance(table, RecordSplit) else f"{table.format}, {table.encoding}"


def _label_counts(plan: Plan, task: SequenceClassification) -> tuple[LabelCount, ...]:
    if task.kind == "regression":
        return ()

    def count(examples: list[Example]) -> Counter[str]:
        return Counter(
            name for e in examples if e.label is not None for name in label_names(e, task.kind)
        )

    train, evaluation = count(plan.train.examples), count(plan.eval.examples)
    return tuple(
        LabelCount(label=label, train=train[label], evaluation=evaluation[label])
        for label in task.labels
    )


def _warnings(outcome: Outcome) -> tuple[str, ...]:
    found: list[str] = []
    if outcome.plan.skipped:
        first = outcome.plan.skipped[0]
        found.append(
            f"{len(outcome.plan.skipped)} records were left out, first {first.path.name}:{first.line}: {first.reason}"
        )
    found.extend(outcome.faults)
    found.extend(outcome.plan.warnings)
    if CUT_FRACTION >= getattr(outcome.plan, "truncated_fraction", 0.0) > 0.05:
        found.append(
            f"{outcome.plan.truncated_fraction:.0%} of the training texts are cut at "
            f"{outcome.plan.task.max_length} tokens; try --max-length or --long-texts windows"
        )
    for seed in outcome.seeds:
        if seed.failure:
            found.append(f"seed {seed.seed} failed: {seed.failure}")
        elif seed.result is not None:
            found.extend(
                f"seed {seed.seed}: {finding.message}"
                for finding in seed.result.findings
                if finding.is_confirmed
            )
            found.extend(
                f"seed {seed.seed}: restarted, {attempt['reason']}"
                for attempt in seed.result.attempts
            )
    return tuple(found)


def _limits(plan: AnyPlan) -> tuple[str, ...]:
    limits = [
        "Scored on texts of the same source as the training texts; other sources were not tested.",
        "The best step was chosen on the evaluation examples, so the score is slightly too good.",
    ]
    if plan.num_seeds > 1:
        limits.append(
            f"The kept model is the best of {plan.num_seeds} seeds on the evaluation examples; the "
            "median of the seeds is what another training would likely reach."
        )
    if len(plan.eval.examples) < 200:
        limits.append(f"{len(plan.eval.examples)} evaluation examples make an uncertain score.")
    if len(plan.eval.examples) < MIN_CALIBRATION_EXAMPLES and _is_calibrated(plan):
        limits.append("Probabilities are not calibrated: there are too few evaluation examples.")
    if plan.model.folder is None:
        limits.append(
            "Trained from random weights: words that the training texts lack mean nothing to it."
        )
    return tuple(limits)


def _is_calibrated(plan: AnyPlan) -> bool:
    return isinstance(plan, Plan) and plan.task.kind != "regression"


def _environment() -> dict[str, str]:
    facts = environment()
    return {"python": facts["python"], "system": facts["system"]} | facts["packages"]
