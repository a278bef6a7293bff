"""Carry out a plan: train each seed, keep the best model, score it honestly, write the run folder."""

from __future__ import annotations

import json
import logging
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from litebert.checkpoint.folder import load_model
from litebert.checkpoint.saving import save_model
from litebert.errors import MissingDependencyError, TrainingDiverged
from litebert.model.albert import AlbertWithHead
from litebert.model.simple_start import start_simple
from litebert.recipes.finetune.calibrate import cross_fitted_ece
from litebert.recipes.finetune.outcome import Outcome, SeedResult
from litebert.recipes.word_vectors import cooccurrence_vectors
from litebert.tasks.baselines import Baseline, majority_baseline, tfidf_baseline
from litebert.tasks.scores import SCORES
from litebert.train.evaluate import Evaluator, predict_logits
from litebert.train.events import Event
from litebert.train.restart import fit_with_restarts
from litebert.train.stop import StopRequest

if TYPE_CHECKING:
    from litebert.recipes.finetune.plan import Plan
    from litebert.recipes.run_folder import RunFolder
    from litebert.train.settings import TrainSettings
    from litebert.train.state import FitResult

__all__ = ["BaselineScored", "SeedFinished", "SeedStarted", "run_plan"]

log = logging.getLogger(__name__)

MIN_CALIBRATION_EXAMPLES: Final = 50
"""From fewer answers a temperature would be chance: all right gives certainty, one wrong none."""


@dataclass(frozen=True, slots=True)
class BaselineScored:
    """A baseline is known, before training begins."""

    baseline: Baseline


@dataclass(frozen=True, slots=True)
class SeedStarted:
    """Training with one of the seeds begins."""

    seed: int
    number: int
    """From 1."""
    total: int


@dataclass(frozen=True, slots=True)
class SeedFinished:
    """Training with one of the seeds is over."""

    result: SeedResult


RunEvent = Event | BaselineScored | SeedStarted | SeedFinished
OnRunEvent = Callable[[RunEvent], None]


def run_plan(
    plan: Plan,
    folder: RunFolder,
    *,
    on_event: OnRunEvent,
    stop: StopRequest,
    resume: bool = False,
) -> Outcome:
    """Train, score and save.

    Args:
        plan: what to do.
        folder: where everything goes; models are written when all seeds are done.
        on_event: is told what happens.
        stop: asks for an early end, with a state that `resume` goes on from.
        resume: go on from the states in the folder.

    Raises:
        TrainingDiverged: every seed collapsed, restarts included.
        CheckpointError: the states in the folder are of another run, or the disk refuses.
        DataError, SettingsError: as `litebert.train.loop.fit`.
    """
    baselines = _score_baselines(plan, on_event) if plan.settings.has_baselines else []
    seeds: list[SeedResult] = []
    best: tuple[AlbertWithHead, FitResult] | None = None
    failure: TrainingDiverged | None = None
    for number in range(plan.settings.num_seeds):
        train = plan.settings.train
        train = train.model_copy(update={"seed": train.seed + number})
        on_event(SeedStarted(train.seed, number + 1, plan.settings.num_seeds))
        try:
            model, result = _train_seed(plan, train, folder, on_event, stop, resume=resume)
        except TrainingDiverged as error:
            failure = error
            seeds.append(SeedResult(train.seed, None, str(error)))
            on_event(SeedFinished(seeds[-1]))
            continue
        if result.status == "interrupted":
            return Outcome(plan, tuple(baselines), tuple(seeds), signal=result.signal)
        seed = _score_seed(plan, train.seed, model, result)
        on_event(SeedFinished(seed))
        if best is None or _is_better(plan, seed, seeds):
            best = (model, result)
        seeds.append(seed)
    if best is None:
        raise failure or TrainingDiverged("no seed finished", step=0)
    return _finish(plan, folder, baselines, seeds, *best)


def _score_baselines(plan: Plan, on_event: OnRunEvent) -> list[Baseline]:
    task, train, evaluation = plan.task, plan.train.examples, plan.eval.examples
    baselines = [majority_baseline(task, train, evaluation)]
    on_event(BaselineScored(baselines[0]))
    try:
        baselines.append(tfidf_baseline(task, train, evaluation))
    except MissingDependencyError as error:
        log.warning("the TF-IDF baseline is left out: %s", error)
        return baselines
    on_event(BaselineScored(baselines[1]))
    return baselines


def _train_seed(
    plan: Plan,
    train: TrainSettings,
    folder: RunFolder,
    on_event: OnRunEvent,
    stop: StopRequest,
    *,
    resume: bool,
) -> tuple[AlbertWithHead, FitResult]:
    words = _word_vectors(plan)

    def make_model(seed: int) -> AlbertWithHead:
        torch.manual_seed(seed)
        return new_model(plan, words)

    evaluator = Evaluator(
        plan.eval.encoded,
        plan.task.score,
        plan.task.metric,
        greater_is_better=SCORES[plan.task.metric].higher_is_better,
    )
    model, result = fit_with_restarts(
        make_model,
        plan.train.encoded,
        train,
        evaluate=evaluator,
        state_dir=folder.checkpoints(train.seed),
        resume=resume,
        on_event=on_event,
        stop=stop,
    )
    if not isinstance(model, AlbertWithHead):
        raise TypeError(f"trained a {type(model).__name__}")
    return model, result


def _word_vectors(plan: Plan) -> torch.Tensor | None:
    """Vectors from the training texts for a model that starts from nothing."""
    if plan.model.folder is not None:
        return None
    config = plan.model.config
    # One seed for all runs: only the weights and the order differ between training seeds.
    try:
        vectors = cooccurrence_vectors(
            (example.ids[1:-1] for example in plan.train.encoded),
            config.vocab_size,
            config.embedding_size,
            seed=0,
        )
    except MissingDependencyError as error:
        log.warning("word vectors start at random, which learns more slowly: %s", error)
        return None
    return torch.from_numpy(vectors)


def new_model(plan: Plan, words: torch.Tensor | None) -> AlbertWithHead:
    """Return the model that training starts from: a folder's weights, or new ones."""
    choice = plan.model
    if choice.folder is None:
        model = AlbertWithHead(choice.config, plan.task.head)
        start_simple(model, words)
        return model
    return load_model(
        choice.folder,
        plan.task.head,
        allow_new_head=True,
        allow_missing_pooler=True,
        changes={
            **plan.settings.model.config,
            "id2label": plan.task.config_labels(),
            "problem_type": plan.task.problem_type,
        },
    )


def _score_seed(plan: Plan, seed: int, model: AlbertWithHead, result: FitResult) -> SeedResult:
    logits = predict_logits(model, plan.eval.encoded)
    if logits is None:
        raise TrainingDiverged("scoring was stopped", step=result.step)
    return SeedResult(seed, logits, "", result, plan.task.score(logits, plan.eval.labels()))


def _is_better(plan: Plan, new: SeedResult, old: list[SeedResult]) -> bool:
    metric = plan.task.metric
    sign = 1.0 if SCORES[metric].higher_is_better else -1.0
    known = [sign * seed.scores[metric] for seed in old if seed.scores]
    return not known or sign * new.scores[metric] > max(known)


def _finish(
    plan: Plan,
    folder: RunFolder,
    baselines: list[Baseline],
    seeds: list[SeedResult],
    model: AlbertWithHead,
    result: FitResult,
) -> Outcome:
    """Calibrate the kept model, score the test set, and write models, predictions and scores."""
    finished = [seed for seed in seeds if seed.logits is not None]
    chosen = next(seed for seed in finished if seed.result is result)
    labels = plan.eval.labels()
    logits = chosen.logits if chosen.logits is not None else np.empty((0, 0))
    is_enough = len(labels) >= MIN_CALIBRATION_EXAMPLES
    task = plan.task.calibrated(logits, labels) if is_enough else plan.task
    test_scores: dict[str, float] = {}
    if plan.test is not None:
        test_logits = predict_logits(model, plan.test.encoded)
        test_scores = {} if test_logits is None else task.score(test_logits, plan.test.labels())
    outcome = Outcome(
        plan,
        tuple(baselines),
        tuple(seeds),
        chosen=chosen,
        task=task,
        ece_before=None if task.kind == "regression" else plan.task.score(logits, labels)["ece"],
        ece_after=cross_fitted_ece(plan.task, logits, labels)
        if is_enough and task.kind != "regression"
        else None,
        test_scores=test_scores,
    )
    save_model(model, folder.best, plan.model.tokenizer, task.to_json())
    if result.last_weights is not None:
        kept = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(result.last_weights)
        save_model(model, folder.last, plan.model.tokenizer, task.to_json())
        model.load_state_dict(kept)
    else:
        save_model(model, folder.last, plan.model.tokenizer, task.to_json())
    folder.write_text("predictions.jsonl", _prediction_lines(outcome))
    folder.write_json("scores.json", score_table(outcome))
    return outcome


def _prediction_lines(outcome: Outcome) -> str:
    chosen, task, plan = outcome.chosen, outcome.task, outcome.plan
    if chosen is None or chosen.logits is None or task is None:
        return ""
    lines: list[str] = []
    for example, answer in zip(plan.eval.examples, task.decode(chosen.logits), strict=True):
        row: dict[str, Any] = {"text": example.text}
        row |= {} if example.pair is None else {"pair": example.pair}
        row |= {"label": example.label, "file": str(example.path), "line": example.line}
        lines.append(json.dumps(row | answer.to_json(), ensure_ascii=False))
    return "".join(line + "\n" for line in lines)


def final_scores(outcome: Outcome) -> dict[str, float]:
    """Return the scores of the kept model with its temperature, the calibration error cross-fitted."""
    chosen, task = outcome.chosen, outcome.task
    if chosen is None or chosen.logits is None or task is None:
        return {}
    scores = task.score(chosen.logits, outcome.plan.eval.labels())
    return scores if outcome.ece_after is None else scores | {"ece": outcome.ece_after}


def score_table(outcome: Outcome) -> dict[str, Any]:
    """Return the content of `scores.json`: the model, its seeds and the baselines side by side."""
    metric = outcome.plan.task.metric
    values = [seed.scores[metric] for seed in outcome.seeds if seed.scores]
    return {
        "format_version": 1,
        "metric": metric,
        "score": final_scores(outcome),
        "seeds": [
            {"seed": seed.seed, "score": seed.scores.get(metric), "failure": seed.failure or None}
            for seed in outcome.seeds
        ],
        "median": statistics.median(values) if values else None,
        "spread": max(values) - min(values) if values else None,
        "baselines": {baseline.name: baseline.scores for baseline in outcome.baselines},
        "test": outcome.test_scores or None,
        "ece_before": outcome.ece_before,
        "ece_after": outcome.ece_after,
        "temperature": outcome.task.temperature if outcome.task else None,
    }
