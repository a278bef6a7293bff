"""Carry out a pretraining plan: model, loop, held-out scores, model folder."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from litebert.checkpoint.folder import load_model, untrained_parts
from litebert.checkpoint.saving import save_model
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.simple_start import start_simple
from litebert.objectives.loss import PretrainingLoss
from litebert.objectives.model import make_pretraining_model, model_to_save
from litebert.objectives.rtd_model import RtdModel
from litebert.recipes.fold import count_pieces
from litebert.recipes.pretrain.estimate import Estimate, estimate_run
from litebert.recipes.pretrain.evaluate import PretrainEvaluator, make_eval_batch
from litebert.recipes.pretrain.plan import PretrainPlan
from litebert.recipes.word_vectors import cooccurrence_vectors
from litebert.train.device import choose_device
from litebert.train.events import OnEvent
from litebert.train.freeze import freeze_weights, trained_names
from litebert.train.loop import fit
from litebert.train.plan import StepPlan
from litebert.train.precision import choose_precision
from litebert.train.prefetch import Prefetched
from litebert.train.ranks import ALONE, Ranks
from litebert.train.source import BatchSource
from litebert.train.state import FitResult
from litebert.train.stop import StopRequest

if TYPE_CHECKING:
    from litebert.recipes.pretrain.settings import PretrainSettings
    from litebert.recipes.run_folder import RunFolder

__all__ = ["PretrainOutcome", "estimate_plan", "new_model", "resolve", "run_plan"]

EVALUATIONS: Final = 20
"""Evaluations of a run that says nothing about them."""
SAVE_SECONDS: Final = 300.0
"""Time between saved states of a run that says nothing about it."""


@dataclass(frozen=True, slots=True, eq=False)
class PretrainOutcome:
    """How a run ended.

    Attributes:
        plan: what was done.
        result: how the loop ended; its last metrics are those of the end.
    """

    plan: PretrainPlan
    result: FitResult

    @property
    def is_interrupted(self) -> bool:
        """Whether the run can be continued."""
        return self.result.status == "interrupted"


def new_model(plan: PretrainPlan) -> AlbertWithHead | RtdModel:
    """Return the model that training starts from: a folder's weights, or new ones from the seed.

    Raises:
        CheckpointError: the folder is not usable.
    """
    torch.manual_seed(plan.settings.train.seed)
    if plan.folder is None:
        model = make_pretraining_model(plan.config, plan.settings.objectives)
        if plan.settings.model.start == "word_vectors" and isinstance(model, AlbertWithHead):
            start_simple(model, _word_vectors(plan), has_matching_head=True)
        return model
    model = load_model(
        plan.folder,
        plan.head,
        allow_new_head=True,
        allow_missing_pooler=True,
        changes=plan.settings.model.config,
    )
    if plan.settings.model.train == "head":
        _train_head_alone(model, plan)
    return model


def _train_head_alone(model: AlbertWithHead, plan: PretrainPlan) -> None:
    """Freeze all but the head, whose biases start at the logarithm of each piece's share if it is new."""
    names = [name for name, _ in model.named_parameters()]
    freeze_weights(model, trained_names(names, only=["head"]))
    folder = plan.folder
    if "mlm" in model.heads and folder is not None and "mlm" in untrained_parts(folder, plan.head):
        size = model.config.vocab_size
        counts = count_pieces(plan.shards.folder, plan.tokenizer, size) + 1.0
        bias = (counts / counts.mean()).log().to(torch.float32)
        model.heads["mlm"].load_state_dict({"bias": bias}, strict=False)


def _word_vectors(plan: PretrainPlan) -> torch.Tensor:
    """Vectors from a sample of the text, spread over all of it.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    sample = np.random.default_rng(plan.settings.train.seed).permutation(plan.train_chunks)
    texts = (plan.train_index.chunk(int(number)).ids for number in sample)
    config = plan.config
    vectors = cooccurrence_vectors(texts, config.vocab_size, config.embedding_size, seed=0)
    return torch.from_numpy(vectors)


def estimate_plan(plan: PretrainPlan, *, world: int = 1) -> Estimate:
    """Return what the run will cost, measured on its own model and batches."""
    loss = PretrainingLoss(plan.settings.objectives, seed=plan.settings.train.seed)
    return estimate_run(
        new_model(plan), plan.config, plan.source(), loss, plan.settings, world=world
    )


def resolve(settings: PretrainSettings, estimate: Estimate) -> PretrainSettings:
    """Return the settings with the intervals filled in that were left open.

    A run that goes on uses the numbers of its beginning, however fast the machine is then.
    """
    train = settings.train
    step_seconds = estimate.tokens_per_step / estimate.tokens_per_second
    steps = min(estimate.total_steps, max(1, round(estimate.seconds / step_seconds)))
    eval_steps = train.eval_steps or max(1, steps // EVALUATIONS)
    save_steps = train.save_steps or max(1, min(round(SAVE_SECONDS / step_seconds), steps))
    update = {"eval_steps": eval_steps, "save_steps": save_steps}
    return settings.model_copy(update={"train": train.model_copy(update=update)})


def run_plan(
    plan: PretrainPlan,
    folder: RunFolder,
    *,
    on_event: OnEvent,
    stop: StopRequest,
    resume: bool = False,
    ranks: Ranks = ALONE,
) -> PretrainOutcome:
    """Train, score and save the model.

    Args:
        plan: what to do.
        folder: where states, metrics and the model go.
        on_event: is told what happens.
        stop: asks for an early end, with a state that `resume` goes on from.
        resume: go on from the newest state in the folder.
        ranks: the processes that train together.

    Raises:
        SettingsError: more ranks than examples of a step.
        LitebertError: as `litebert.train.loop.fit`.
    """
    train, objectives = plan.settings.train, plan.settings.objectives
    if ranks.world > train.batch_size:
        raise SettingsError(
            f"{ranks.world} processes cannot share {train.batch_size} examples of a step; raise "
            "train.batch_size or start fewer"
        )
    loss = PretrainingLoss(objectives, seed=train.seed)
    device = choose_device(train.device)
    eval_maker = plan.maker(plan.eval_index)
    evaluator = PretrainEvaluator(
        make_eval_batch(eval_maker, plan.eval_chunks, ranks),
        PretrainingLoss(objectives, seed=train.seed, maker=eval_maker),
        train.micro_batch_tokens,
        choose_precision(train.precision, device),
        ranks,
    )
    model = new_model(plan)
    with ExitStack() as stack:
        source: BatchSource = plan.source()
        if train.data_workers:
            total = StepPlan(source, train).total_steps
            source = stack.enter_context(Prefetched(source, train.data_workers, total))
        result = fit(
            model,
            source,
            train,
            evaluate=evaluator,
            state_dir=folder.path,
            resume=resume,
            on_event=on_event,
            stop=stop,
            step_loss=loss,
            ranks=ranks,
        )
    if result.status != "interrupted" and ranks.is_first:
        save_model(model_to_save(model.cpu()), folder.last, plan.tokenizer)
    return PretrainOutcome(plan, result)
