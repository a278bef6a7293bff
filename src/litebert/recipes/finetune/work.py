"""What differs between kinds of tasks in a run: plan, baselines, loss, answers, scores, files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from litebert.recipes.finetune.exit_heads import with_exit_heads
from litebert.recipes.finetune.hazards import with_warnings
from litebert.recipes.finetune.option_lines import option_lines
from litebert.recipes.finetune.paper import with_expectation, with_recipe
from litebert.recipes.finetune.plan import Plan, make_table_plan
from litebert.recipes.finetune.record_plan import RecordPlan, make_record_plan
from litebert.tasks.records import RECORD_KINDS

if TYPE_CHECKING:
    from litebert.model.albert import AlbertWithHead
    from litebert.recipes.finetune.outcome import Outcome, SeedResult
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.tasks.baselines import Baseline
    from litebert.train.evaluate import Evaluate
    from litebert.train.micro import StepLoss

__all__ = ["AnyPlan", "Work", "make_plan", "work_of"]

AnyPlan = Plan | RecordPlan


class Work(Protocol):
    """The part of a run that depends on the kind of task."""

    plan: Any
    """What is to be done, an `AnyPlan`."""

    @property
    def step_loss(self) -> StepLoss | None:
        """What is minimised; None: the model's loss on the labels, watched by the guard."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Direction of the main score."""
        ...

    def baselines(self) -> Iterator[Baseline]:
        """Yield simple answers with their scores, the weakest first."""
        ...

    def evaluator(self) -> Evaluate:
        """Return what scores the model during training."""
        ...

    def answer(self, model: AlbertWithHead) -> Any:
        """Return what the model gives for the evaluation examples."""
        ...

    def score(self, outputs: Any) -> dict[str, float]:
        """Score what `answer` returned."""
        ...

    def further_scores(self, model: AlbertWithHead) -> dict[str, float]:
        """Return the main score on each further part of the data, as "metric_part"; often none."""
        ...

    def finish(
        self,
        model: AlbertWithHead,
        chosen: SeedResult,
        baselines: tuple[Baseline, ...],
        seeds: tuple[SeedResult, ...],
    ) -> Outcome:
        """Choose temperatures and thresholds for the kept model, and score the test set."""
        ...

    def files(self, outcome: Outcome) -> dict[str, str]:
        """Return the texts of predictions and scores by file name."""
        ...


def make_plan(settings: FinetuneSettings) -> AnyPlan:
    """Read the data, find out the task, split, choose a model, and encode.

    Raises:
        DataError: unreadable or unusable data.
        SettingsError: settings that contradict the data.
        CheckpointError: the model folder to start from is not usable.
    """
    from litebert.train.optim import OPTIMIZERS
    from litebert.train.schedule import find_schedule

    OPTIMIZERS.get(settings.train.optimizer)  # a wrong name is said before time is spent
    find_schedule(settings.train.schedule)
    settings = with_exit_heads(with_recipe(settings))
    make = make_record_plan if settings.data.task in RECORD_KINDS else make_table_plan
    plan = make(settings)
    option_lines(plan)  # what does not fit the task or the model is refused now
    return with_warnings(with_expectation(plan))


def work_of(plan: AnyPlan) -> Work:
    """Return the work of a plan."""
    if isinstance(plan, RecordPlan):
        from litebert.recipes.finetune.record_work import RecordWork

        return RecordWork(plan)
    if plan.is_few_shot:
        from litebert.recipes.finetune.few_shot_work import FewShotWork

        return FewShotWork(plan)
    from litebert.recipes.finetune.classification_work import ClassificationWork

    return ClassificationWork(plan)
