"""Carry out a plan: train each seed, keep the best model, score it honestly, write the run folder."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from litebert.checkpoint.folder import load_model
from litebert.checkpoint.saving import save_model
from litebert.checkpoint.sentence_transformers import write_sentence_transformers
from litebert.errors import MissingDependencyError, TrainingDiverged
from litebert.model.albert import AlbertWithHead
from litebert.model.simple_start import start_simple
from litebert.recipes.finetune.adapt import freeze, loading_changes, with_parts
from litebert.recipes.finetune.few_shot_work import FewShotWork
from litebert.recipes.finetune.hazards import advice
from litebert.recipes.finetune.known_head import is_head_foreign, renew_head
from litebert.recipes.finetune.model_choice import head_options
from litebert.recipes.finetune.outcome import Outcome, SeedResult
from litebert.recipes.finetune.pooler_choice import start_pooler
from litebert.recipes.finetune.probe_start import start_classifier
from litebert.recipes.finetune.work import Work, work_of
from litebert.recipes.word_vectors import cooccurrence_vectors
from litebert.tasks.baselines import Baseline
from litebert.train.events import Event
from litebert.train.restart import fit_with_restarts
from litebert.train.stop import StopRequest

if TYPE_CHECKING:
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.recipes.run_folder import RunFolder
    from litebert.train.micro import StepLoss
    from litebert.train.settings import TrainSettings
    from litebert.train.state import FitResult

__all__ = ["BaselineScored", "SeedFinished", "SeedStarted", "new_model", "run_plan"]

log = logging.getLogger(__name__)


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
    plan: AnyPlan,
    folder: RunFolder,
    *,
    on_event: OnRunEvent,
    stop: StopRequest,
    resume: bool = False,
    step_loss: StepLoss | None = None,
) -> Outcome:
    """Train, score and save.

    Args:
        plan: what to do.
        folder: where everything goes; models are written when all seeds are done.
        on_event: is told what happens.
        stop: asks for an early end, with a state that `resume` goes on from.
        resume: go on from the states in the folder.
        step_loss: what is minimised instead of what the settings ask for.

    Raises:
        TrainingDiverged: every seed collapsed, restarts included.
        CheckpointError: the states in the folder are of another run, or the disk refuses.
        DataError, SettingsError: as `litebert.train.loop.fit`.
    """
    work = work_of(plan)
    baselines: list[Baseline] = []
    for baseline in work.baselines() if plan.settings.has_baselines else ():
        baselines.append(baseline)
        on_event(BaselineScored(baseline))
    seeds: list[SeedResult] = []
    best: tuple[AlbertWithHead, FitResult] | None = None
    failure: TrainingDiverged | None = None
    for number in range(plan.num_seeds):
        train = plan.settings.train
        train = train.model_copy(update={"seed": train.seed + number})
        on_event(SeedStarted(train.seed, number + 1, plan.num_seeds))
        try:
            trained = _train_seed(work, train, folder, on_event, stop, step_loss, resume=resume)
        except TrainingDiverged as error:
            failure = error
            seeds.append(SeedResult(train.seed, None, str(error)))
            on_event(SeedFinished(seeds[-1]))
            continue
        if trained is None:  # stopped after its last step
            return Outcome(plan, tuple(baselines), tuple(seeds), signal=stop.signal)
        model, result = trained
        if result.status == "interrupted":
            return Outcome(plan, tuple(baselines), tuple(seeds), signal=result.signal)
        outputs = work.answer(model)
        scores = work.score(outputs) | work.further_scores(model)
        seed = SeedResult(train.seed, outputs, "", result, scores)
        on_event(SeedFinished(seed))
        if best is None or _is_better(work, seed, seeds):
            best = (model, result)
        seeds.append(seed)
    if best is None:
        raise _explained(failure, plan)
    return _finish(work, folder, baselines, seeds, *best)


def _explained(failure: TrainingDiverged | None, plan: AnyPlan) -> TrainingDiverged:
    """Say after the last failure what to look at."""
    if failure is None:
        return TrainingDiverged("no seed finished", step=0)
    seeds = (
        ""
        if plan.num_seeds == 1
        else f"none of {plan.num_seeds} seeds could be trained; the last: "
    )
    failure.args = (f"{seeds}{failure}. {advice(plan.warnings)}",)
    return failure


def _train_seed(
    work: Work,
    train: TrainSettings,
    folder: RunFolder,
    on_event: OnRunEvent,
    stop: StopRequest,
    step_loss: StepLoss | None,
    *,
    resume: bool,
) -> tuple[AlbertWithHead, FitResult] | None:
    plan = work.plan
    state_dir = folder.checkpoints(train.seed)
    if isinstance(work, FewShotWork):
        return work.train_seed(train, state_dir, on_event, stop, resume=resume)
    words = _word_vectors(plan)

    def make_model(seed: int) -> AlbertWithHead:
        torch.manual_seed(seed)
        return new_model(plan, words)

    model, result = fit_with_restarts(
        make_model,
        plan.train.encoded,
        train,
        evaluate=work.evaluator(),
        step_loss=work.step_loss if step_loss is None else step_loss,
        state_dir=state_dir,
        resume=resume,
        on_event=on_event,
        stop=stop,
    )
    if not isinstance(model, AlbertWithHead):
        raise TypeError(f"trained a {type(model).__name__}")
    return model, result


def _word_vectors(plan: AnyPlan) -> torch.Tensor | None:
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


def new_model(plan: AnyPlan, words: torch.Tensor | None) -> AlbertWithHead:
    """Return the model that training starts from: a folder's weights, or new ones."""
    choice = plan.model
    if choice.folder is None:
        model = AlbertWithHead(choice.config, plan.task.head)
        is_pair: bool = getattr(plan.task, "is_pair", False)
        start_simple(model, words, has_matching_head=is_pair)
        freeze(model, plan.settings.adapt)
        return model
    told = plan.settings.model.config.get("litebert", {}) | head_options(plan.task)
    told |= {"pooler_reads": choice.config.litebert.pooler_reads}
    model = load_model(
        choice.folder,
        plan.task.head,
        allow_new_head=True,
        allow_missing_pooler=True,
        is_quiet=True,  # the plan has named what is new, once for all seeds
        changes={
            **plan.settings.model.config,
            "id2label": plan.task.config_labels(),
            "problem_type": plan.task.problem_type,
            "litebert": loading_changes(choice.folder, told),
        },
    )
    if is_head_foreign(plan):
        renew_head(model, plan.task.head)
    start_pooler(model, choice.folder)
    start_classifier(model, plan)
    model = with_parts(model, choice.config)
    freeze(model, plan.settings.adapt)
    return model


def _is_better(work: Work, new: SeedResult, old: list[SeedResult]) -> bool:
    metric = work.plan.task.metric
    sign = 1.0 if work.higher_is_better else -1.0
    known = [sign * seed.scores[metric] for seed in old if seed.scores]
    return not known or sign * new.scores[metric] > max(known)


def _finish(
    work: Work,
    folder: RunFolder,
    baselines: list[Baseline],
    seeds: list[SeedResult],
    model: AlbertWithHead,
    result: FitResult,
) -> Outcome:
    """Write models, predictions and scores."""
    plan = work.plan
    chosen = next(seed for seed in seeds if seed.result is result)
    outcome = work.finish(model, chosen, tuple(baselines), tuple(seeds))
    task = (outcome.task or plan.task).to_json()
    save_model(model, folder.best, plan.model.tokenizer, task)
    if result.last_weights is not None:
        kept = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(result.last_weights)
        save_model(model, folder.last, plan.model.tokenizer, task)
        model.load_state_dict(kept)
    else:
        save_model(model, folder.last, plan.model.tokenizer, task)
    if model.head == "embedding" and model.config.model_type == "albert":
        for place in (folder.best, folder.last):
            write_sentence_transformers(place, model.config, plan.task.max_length)
    for name, text in work.files(outcome).items():
        folder.write_text(name, text)
    return outcome
