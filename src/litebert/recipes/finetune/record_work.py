"""What a run does with records: answers put together from features, official scores, thresholds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from litebert.recipes.finetune.classification_work import score_table
from litebert.recipes.finetune.exit_choice import with_exits
from litebert.recipes.finetune.loss_choice import choose_loss
from litebert.recipes.finetune.outcome import Outcome, SeedResult
from litebert.train.evaluate import Evaluation, predict_outputs
from litebert.train.step_losses import make_step_loss

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from litebert.model.albert import AlbertWithHead
    from litebert.recipes.finetune.record_plan import RecordPart, RecordPlan
    from litebert.tasks.baselines import Baseline
    from litebert.tasks.records import Answer, RecordTask
    from litebert.train.evaluate import Evaluate
    from litebert.train.micro import StepLoss
    from litebert.train.stop import StopRequest

__all__ = ["RecordWork"]

Outputs = Sequence["np.ndarray"]


class RecordWork:
    """A `Work` on records."""

    higher_is_better = True

    def __init__(self, plan: RecordPlan) -> None:
        self.plan = plan

    @property
    def step_loss(self) -> StepLoss:
        """What `[loss]` and `[exits]` ask for, or the loss that the task names."""
        loss = choose_loss(self.plan) or make_step_loss(self.plan.task.loss, self.plan.task)
        return with_exits(self.plan, loss) or loss

    def baselines(self) -> Iterator[Baseline]:
        """Yield the task's own simple answers."""
        yield from self.plan.task.baselines(self.plan.train.examples, self.plan.eval.examples)

    def evaluator(self) -> Evaluate:
        """Return what answers the evaluation records and scores the answers."""
        return self._evaluate

    def answer(self, model: AlbertWithHead) -> Outputs:
        """Return the outputs for the features of the evaluation records."""
        return _outputs(model, self.plan.eval)

    def score(self, outputs: Outputs) -> dict[str, float]:
        """Score the answers to the evaluation records."""
        return _scores(self.plan.task, self.plan.eval, outputs)

    def further_scores(self, model: AlbertWithHead) -> dict[str, float]:
        """Return nothing: records have no further parts."""
        del model
        return {}

    def finish(
        self,
        model: AlbertWithHead,
        chosen: SeedResult,
        baselines: tuple[Baseline, ...],
        seeds: tuple[SeedResult, ...],
    ) -> Outcome:
        """Choose thresholds, score the test set, and look for collapses."""
        plan = self.plan
        part = plan.eval
        task = plan.task.fitted(part.examples, part.features, chosen.logits)
        answers = task.answers(part.examples, part.features, chosen.logits)
        test_scores: dict[str, float] = {}
        if plan.test is not None:
            test_scores = _scores(task, plan.test, _outputs(model, plan.test))
        return Outcome(
            plan,
            baselines,
            seeds,
            chosen=chosen,
            task=task,
            test_scores=test_scores,
            faults=tuple(task.faults(part.examples, answers)),
        )

    def files(self, outcome: Outcome) -> dict[str, str]:
        """Return predictions, scores, and the files that the task itself is known by."""
        part, task = self.plan.eval, outcome.task
        outputs = None if outcome.chosen is None else outcome.chosen.logits
        if task is None or outputs is None:
            return {}
        answers = task.answers(part.examples, part.features, outputs)
        scores = task.evaluate(part.examples, answers)
        table = json.dumps(score_table(outcome, scores), indent=2, ensure_ascii=False)
        official = getattr(task, "files", None)
        own: dict[str, str] = (
            {} if official is None else official(part.examples, part.features, outputs)
        )
        # QuAC's own file of predictions has the name of ours.
        own = {f"official-{n}" if n == "predictions.jsonl" else n: t for n, t in own.items()}
        return own | {
            "predictions.jsonl": "".join(_lines(task, part.examples, answers)),
            "scores.json": table + "\n",
        }

    def _evaluate(self, model: nn.Module, stop: StopRequest) -> Evaluation | None:
        start = time.monotonic()
        outputs = predict_outputs(model, self.plan.eval.encoded, stop=stop)
        if outputs is None:
            return None
        scores = self.score(outputs)
        return Evaluation(
            score=scores[self.plan.task.metric], metrics=scores, seconds=time.monotonic() - start
        )


def _outputs(model: nn.Module, part: RecordPart) -> Outputs:
    outputs = predict_outputs(model, part.encoded)
    assert outputs is not None  # noqa: S101 - only a stop request gives None
    return outputs


def _scores(task: RecordTask, part: RecordPart, outputs: Outputs) -> dict[str, float]:
    return task.evaluate(part.examples, task.answers(part.examples, part.features, outputs))


def _lines(task: RecordTask, records: Sequence[Any], answers: Sequence[Answer]) -> Iterator[str]:
    for record, answer in zip(records, answers, strict=True):
        row = task.show(record) | answer.to_json()
        yield json.dumps(row, ensure_ascii=False) + "\n"
