"""A run on few examples: pairs train the encoder, a linear head on its vectors is the classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litebert.errors import TrainingDiverged
from litebert.recipes.finetune.classification_work import ClassificationWork
from litebert.recipes.finetune.few_shot import run_few_shot

if TYPE_CHECKING:
    from pathlib import Path

    from litebert.model.albert import AlbertWithHead
    from litebert.recipes.finetune.outcome import SeedResult
    from litebert.recipes.finetune.plan import Plan
    from litebert.tasks.embedding_classification import EmbeddingClassification
    from litebert.train.events import OnEvent
    from litebert.train.settings import TrainSettings
    from litebert.train.state import FitResult
    from litebert.train.stop import StopRequest

__all__ = ["FewShotWork"]


class FewShotWork(ClassificationWork):
    """A `Work` whose outputs are vectors and whose task, with its head, is learnt by each seed."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._newest: EmbeddingClassification | None = None
        self._tasks: dict[int, EmbeddingClassification] = {}

    def train_seed(
        self,
        train: TrainSettings,
        state_dir: Path,
        on_event: OnEvent,
        stop: StopRequest,
        *,
        resume: bool,
    ) -> tuple[AlbertWithHead, FitResult] | None:
        """Train one seed; None when a stop was requested before its end.

        Raises:
            TrainingDiverged: numbers stayed non-finite.
        """
        plan = self.plan
        folder = plan.model.folder
        if folder is None:
            raise TrainingDiverged("few examples need pretrained weights", step=0)
        few = run_few_shot(
            folder,
            plan.model.tokenizer,
            plan.task,
            plan.train.examples,
            seed=train.seed,
            train=train,
            changes=plan.settings.model.config,
            state_dir=state_dir,
            resume=resume,
            on_event=on_event,
            stop=stop,
        )
        if few is None:
            return None
        self._newest = few.task
        self._tasks[train.seed] = few.task
        return few.model, few.result

    def score(self, outputs: Any) -> dict[str, float]:
        """Score vectors of the evaluation examples with the head of the newest seed."""
        return (self._newest or self.plan.task).score(outputs, self.plan.eval.labels())

    def task_of(self, chosen: SeedResult) -> EmbeddingClassification:
        """Return the task with the head that this seed learnt."""
        return self._tasks[chosen.seed]
