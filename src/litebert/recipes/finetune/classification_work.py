"""What a run does with classification and regression: baselines, calibration, the files it writes."""

from __future__ import annotations

import json
import logging
import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.errors import MissingDependencyError
from litebert.recipes.finetune.calibrate import cross_fitted_ece
from litebert.recipes.finetune.exit_choice import with_exits
from litebert.recipes.finetune.loss_choice import choose_loss
from litebert.recipes.finetune.outcome import Outcome, SeedResult
from litebert.tasks.baselines import Baseline, majority_baseline, tfidf_baseline
from litebert.tasks.classification_faults import below_chance, classification_faults
from litebert.tasks.long_texts import gather_texts
from litebert.tasks.scores import SCORES
from litebert.train.evaluate import Evaluate, Evaluator, predict_logits

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.model.albert import AlbertWithHead
    from litebert.recipes.finetune.plan import Plan, Split
    from litebert.tasks.classification import SequenceClassification
    from litebert.train.micro import StepLoss

__all__ = [
    "MIN_CALIBRATION_EXAMPLES",
    "ClassificationWork",
    "final_scores",
    "further",
    "score_table",
]

log = logging.getLogger(__name__)

MIN_CALIBRATION_EXAMPLES: Final = 50
"""From fewer answers a temperature would be chance: all right gives certainty, one wrong none."""


class ClassificationWork:
    """A `Work` on labelled texts and pairs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @property
    def step_loss(self) -> StepLoss | None:
        """What `[loss]` and `[exits]` ask for, or None for the plain loss."""
        return with_exits(self.plan, choose_loss(self.plan))

    @property
    def higher_is_better(self) -> bool:
        """Direction of the main score."""
        return SCORES[self.plan.task.metric].higher_is_better

    def baselines(self) -> Iterator[Baseline]:
        """Yield the majority answer, then TF-IDF where scikit-learn is installed."""
        task, train, evaluation = (
            self.plan.task,
            self.plan.train.examples,
            self.plan.eval.examples,
        )
        yield majority_baseline(task, train, evaluation)
        try:
            baseline = tfidf_baseline(task, train, evaluation)
        except MissingDependencyError as error:
            log.warning("the TF-IDF baseline is left out: %s", error)
            return
        yield baseline

    def evaluator(self) -> Evaluate:
        """Return what scores the model on the evaluation examples."""
        return Evaluator(
            self.plan.eval.encoded,
            self.plan.task.score,
            self.plan.task.metric,
            greater_is_better=self.higher_is_better,
            bounds=self.plan.eval.bounds,
        )

    def answer(self, model: AlbertWithHead) -> Float[np.ndarray, "N C"]:
        """Return the logits of the evaluation examples."""
        return _logits(model, self.plan.eval)

    def score(self, outputs: Float[np.ndarray, "N C"]) -> dict[str, float]:
        """Score logits of the evaluation examples."""
        return self.plan.task.score(outputs, self.plan.eval.labels())

    def further_scores(self, model: AlbertWithHead) -> dict[str, float]:
        """Return the main score on the further parts, such as "accuracy_mismatched" of MNLI."""
        task = self.plan.task
        return {
            f"{task.metric}_{name}": task.score(_logits(model, part), part.labels())[task.metric]
            for name, part, _ in self.plan.others
        }

    def task_of(self, chosen: SeedResult) -> SequenceClassification:
        """Return the task that a seed answers, uncalibrated."""
        del chosen
        return self.plan.task

    def finish(
        self,
        model: AlbertWithHead,
        chosen: SeedResult,
        baselines: tuple[Baseline, ...],
        seeds: tuple[SeedResult, ...],
    ) -> Outcome:
        """Calibrate the kept model and score the test set."""
        plan = self.plan
        labels, logits = plan.eval.labels(), chosen.logits
        is_enough = len(labels) >= MIN_CALIBRATION_EXAMPLES
        plain = self.task_of(chosen)
        task = plain.calibrated(logits, labels) if is_enough else plain
        test_scores: dict[str, float] = {}
        if plan.test is not None:
            test_scores = task.score(_logits(model, plan.test), plan.test.labels())
        return Outcome(
            plan,
            baselines,
            seeds,
            chosen=chosen,
            task=task,
            ece_before=None if task.kind == "regression" else plain.score(logits, labels)["ece"],
            ece_after=cross_fitted_ece(plain, logits, labels)
            if is_enough and task.kind != "regression"
            else None,
            test_scores=test_scores,
            faults=(
                *classification_faults(plain, logits, labels),
                *below_chance(plain, _last_accuracy(chosen), labels),
            ),
        )

    def files(self, outcome: Outcome) -> dict[str, str]:
        """Return the texts of `predictions.jsonl` and `scores.json`."""
        return {
            "predictions.jsonl": _prediction_lines(outcome),
            "scores.json": json.dumps(
                score_table(outcome, final_scores(outcome)), indent=2, ensure_ascii=False
            )
            + "\n",
        }


def _logits(model: AlbertWithHead, part: Split) -> Float[np.ndarray, "N C"]:
    logits = predict_logits(model, part.encoded)
    assert logits is not None  # noqa: S101 - only a stop request gives None
    return gather_texts(logits, part.bounds)


def _last_accuracy(chosen: SeedResult) -> float | None:
    return None if chosen.result is None else chosen.result.last_metrics.get("accuracy")


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


def further(plan: Any, chosen: SeedResult) -> dict[str, float]:
    """Return the scores of a seed on the further parts of the data.

    Args:
        plan: an `AnyPlan`.
        chosen: the seed.
    """
    names = [f"{plan.task.metric}_{name}" for name, *_ in getattr(plan, "others", ())]
    return {name: chosen.scores[name] for name in names if name in chosen.scores}


def final_scores(outcome: Outcome) -> dict[str, float]:
    """Return the scores of the kept model with its temperature, the calibration error cross-fitted."""
    chosen, task = outcome.chosen, outcome.task
    if chosen is None or chosen.logits is None or task is None:
        return {}
    scores = task.score(chosen.logits, outcome.plan.eval.labels()) | further(outcome.plan, chosen)
    return scores if outcome.ece_after is None else scores | {"ece": outcome.ece_after}


def score_table(outcome: Outcome, scores: dict[str, float]) -> dict[str, Any]:
    """Return the content of `scores.json`: the model, its seeds and the baselines side by side."""
    metric = outcome.plan.task.metric
    further_values = {
        f"{metric}_{name}": [
            seed.scores[f"{metric}_{name}"] for seed in outcome.seeds if seed.scores
        ]
        for name, *_ in getattr(outcome.plan, "others", ())
    }
    values = [seed.scores[metric] for seed in outcome.seeds if seed.scores]
    return {
        "format_version": 1,
        "metric": metric,
        "score": scores,
        "seeds": [
            {"seed": seed.seed, "score": seed.scores.get(metric), "failure": seed.failure or None}
            for seed in outcome.seeds
        ],
        "median": statistics.median(values) if values else None,
        "spread": max(values) - min(values) if values else None,
        "further": {
            name: {"seeds": found, "median": statistics.median(found)}
            for name, found in further_values.items()
            if found
        },
        "baselines": {baseline.name: baseline.scores for baseline in outcome.baselines},
        "test": outcome.test_scores or None,
        "ece_before": outcome.ece_before,
        "ece_after": outcome.ece_after,
        "temperature": getattr(outcome.task, "temperature", None),
    }
