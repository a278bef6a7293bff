"""Carry out a distillation: student, loop, comparison with the teacher, model folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch

from litebert.checkpoint.folder import load_model
from litebert.checkpoint.saving import save_model
from litebert.model.albert import AlbertWithHead
from litebert.objectives.distill import DistillLoss, DistillModel
from litebert.recipes.distill.checks import DistillEvaluator, make_check
from litebert.recipes.distill.plan import DistillPlan
from litebert.recipes.distill.source import DistillSource
from litebert.train.device import choose_device
from litebert.train.events import OnEvent
from litebert.train.loop import fit
from litebert.train.precision import choose_precision
from litebert.train.state import FitResult
from litebert.train.stop import StopRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from litebert.recipes.run_folder import RunFolder

__all__ = ["DistillOutcome", "new_student", "run_plan"]

EVAL_STEPS: Final = 500
SAVE_STEPS: Final = 200


@dataclass(frozen=True, slots=True, eq=False)
class DistillOutcome:
    """How a run ended.

    Attributes:
        plan: what was done.
        result: how the loop ended.
        start: the evaluator's numbers of the student before the first step.
        teacher: the checks' numbers of the teacher.
    """

    plan: DistillPlan
    result: FitResult
    start: dict[str, float]
    teacher: dict[str, float]

    @property
    def is_interrupted(self) -> bool:
        """Whether the run can be continued."""
        return self.result.status == "interrupted"


def new_student(plan: DistillPlan) -> DistillModel:
    """Return the student as it starts, with its projection if it needs one.

    Raises:
        CheckpointError: the folder is not usable.
    """
    torch.manual_seed(plan.settings.train.seed)
    if plan.folder is None:
        student = AlbertWithHead(plan.config, "embedding")
        student.model.pooler = None
    else:
        student = load_model(
            plan.folder, "embedding", changes={"litebert": {"pooling": "mean"}}
        ).train()
    distill = plan.settings.distill
    needs_width = distill.hidden > 0 or distill.pooled > 0
    return DistillModel(student, plan.teacher.width if needs_width else None)


def run_plan(
    plan: DistillPlan,
    folder: RunFolder,
    *,
    on_event: OnEvent,
    stop: StopRequest,
    say: Callable[[str], None],
    resume: bool = False,
) -> DistillOutcome:
    """Distil, compare and save the student.

    Args:
        plan: what to do.
        folder: where states, metrics, the teacher's outputs and the student go.
        on_event: is told what happens.
        stop: asks for an early end, with a state that `resume` goes on from.
        say: is told lines for people.
        resume: go on from the newest state in the folder.

    Raises:
        LitebertError: as `litebert.train.loop.fit`; a damaged cache.
    """
    settings = plan.settings
    train = settings.train.model_copy(
        update={
            "eval_steps": settings.train.eval_steps or EVAL_STEPS,
            "save_steps": settings.train.save_steps or SAVE_STEPS,
        }
    )
    cache = plan.cache(folder.path)
    held_out = plan.cache(folder.path, held_out=True)
    precision = choose_precision(train.precision, choose_device(train.device))
    evaluator = DistillEvaluator(
        plan.eval_texts,
        plan.eval_numbers,
        DistillLoss(settings.distill, held_out),
        [make_check(check, plan.tokenizer) for check in settings.checks],
        batch_tokens=train.micro_batch_tokens,
        precision=precision,
    )
    key = f"{cache.fingerprint} {settings.distill.model_dump_json()} {settings.student!r}"
    source = DistillSource(plan.texts, plan.count, train, key=key)
    model = new_student(plan)
    marks = _marks(folder, evaluator, model, plan, stop)
    result = fit(
        model,
        source,
        train,
        evaluate=evaluator,
        state_dir=folder.path,
        resume=resume,
        on_event=on_event,
        stop=stop,
        step_loss=DistillLoss(settings.distill, cache),
    )
    if result.status != "interrupted":
        save_model(model.student.cpu(), folder.last, plan.tokenizer)
    del say
    return DistillOutcome(plan, result, *marks)


def _marks(
    folder: RunFolder,
    evaluator: DistillEvaluator,
    model: DistillModel,
    plan: DistillPlan,
    stop: StopRequest,
) -> tuple[dict[str, float], dict[str, float]]:
    """Numbers of the student before the first step, and of the teacher; computed once a run."""
    import json

    path = folder.path / "start.json"
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        return found["student"], found["teacher"]
    before = evaluator(model, stop)
    teacher = {
        check.name: value
        for check in evaluator.checks
        if (value := check.score(plan.teacher.model, stop)) is not None
    }
    if before is None or len(teacher) < len(evaluator.checks):
        return {}, {}
    folder.write_json("start.json", {"student": before.metrics, "teacher": teacher})
    return before.metrics, teacher
