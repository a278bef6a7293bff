"""Carry out a distillation: student, loop, comparison with the teacher, model folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litebert.checkpoint.files import TASK_FILE
from litebert.checkpoint.saving import save_model
from litebert.compress.teacher import Teacher
from litebert.errors import SettingsError
from litebert.objectives.distill import DistillLoss, DistillModel
from litebert.objectives.distill_targets import Teaching
from litebert.recipes.distill.checks import DistillEvaluator, make_check
from litebert.recipes.distill.plan import DistillPlan
from litebert.recipes.distill.source import DistillSource
from litebert.recipes.distill.student import make_student
from litebert.recipes.plain_folder import vector_task
from litebert.train.device import choose_device
from litebert.train.events import OnEvent
from litebert.train.loop import fit
from litebert.train.precision import choose_precision
from litebert.train.random_depth import RandomDepth
from litebert.train.source import BatchSource
from litebert.train.state import FitResult
from litebert.train.stop import StopRequest

if TYPE_CHECKING:
    from litebert.compress.teacher_cache import TeacherCache
    from litebert.recipes.distill.settings import DistillRun
    from litebert.recipes.run_folder import RunFolder
    from litebert.train.micro import StepLoss

__all__ = ["DistillOutcome", "run_plan"]

EVAL_STEPS: Final = 500
SAVE_STEPS: Final = 200
START_FILE: Final = "start.json"


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


def run_plan(
    plan: DistillPlan,
    folder: RunFolder,
    *,
    on_event: OnEvent,
    stop: StopRequest,
    on_made: Callable[[int, int], None] | None = None,
    resume: bool = False,
) -> DistillOutcome:
    """Distil, compare and save the student.

    Args:
        plan: what to do.
        folder: where states, metrics, the teacher's outputs and the student go.
        on_event: is told what happens.
        stop: asks for an early end, with a state that `resume` goes on from.
        on_made: is told of each part of the teacher's outputs that is made.
        resume: go on from the newest state in the folder.

    Raises:
        SettingsError: checks of vectors for a student that gives classes.
        LitebertError: as `litebert.train.loop.fit`; a damaged cache.
    """
    settings = plan.settings
    train = settings.train.model_copy(
        update={
            "eval_steps": settings.train.eval_steps or EVAL_STEPS,
            "save_steps": settings.train.save_steps or SAVE_STEPS,
        }
    )
    if settings.checks and plan.student.head != "embedding":
        raise SettingsError(
            "checks compare the vectors of pairs, and this student gives classes; leave them out"
        )
    cache = plan.cache(folder.path, on_made=on_made)
    evaluator = DistillEvaluator(
        plan.inputs.eval_texts,
        plan.inputs.eval_numbers,
        DistillLoss(
            settings.distill, plan.teaching(plan.cache(folder.path, held_out=True), held_out=True)
        ),
        [make_check(check, plan.student.tokenizer) for check in settings.checks],
        batch_tokens=train.micro_batch_tokens,
        precision=choose_precision(train.precision, choose_device(train.device)),
    )
    is_compared = settings.distill.hidden > 0 or settings.distill.pooled > 0
    model = make_student(
        plan.student, seed=train.seed, teacher_width=plan.teacher.width if is_compared else None
    )
    marks = _marks(folder, evaluator, model, plan, stop)
    result = fit(
        model,
        _source(plan, cache),
        train,
        evaluate=evaluator,
        state_dir=folder.path,
        resume=resume,
        on_event=on_event,
        stop=stop,
        step_loss=_step_loss(settings, plan.teaching(cache)),
    )
    if result.status != "interrupted":
        student = model.student.cpu()
        save_model(student, folder.last, plan.student.tokenizer, task=_task_of(plan))
    return DistillOutcome(plan, result, *marks)


def _step_loss(settings: DistillRun, teaching: Teaching) -> StepLoss:
    loss, exits = DistillLoss(settings.distill, teaching), settings.exits
    if exits.random_depth == "off":
        return loss
    return RandomDepth(loss, exits.random_depth, exits.first_depth)


def _source(plan: DistillPlan, cache: TeacherCache) -> BatchSource:
    settings = plan.settings
    key = f"{cache.fingerprint} {settings.distill.model_dump_json()} {settings.student!r}"
    return DistillSource(plan.inputs.texts, plan.inputs.count, settings.train, key=key)


def _task_of(plan: DistillPlan) -> str:
    """The text of the student's `task.json`."""
    positions = plan.student.config.max_position_embeddings
    if plan.task is not None:
        length = min(plan.task.max_length, positions)
        return plan.task.model_copy(update={"max_length": length}).to_json()
    start = plan.student.folder
    if start is not None and (start / TASK_FILE).exists() and plan.student.head == "embedding":
        return (start / TASK_FILE).read_text(encoding="utf-8")
    return vector_task(positions)


def _marks(
    folder: RunFolder,
    evaluator: DistillEvaluator,
    model: DistillModel,
    plan: DistillPlan,
    stop: StopRequest,
) -> tuple[dict[str, float], dict[str, float]]:
    """Numbers of the student before the first step, and of the teacher; computed once a run."""
    path = folder.path / START_FILE
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        return found["student"], found["teacher"]
    before = evaluator(model, stop)
    teacher: dict[str, float] = {}
    if isinstance(plan.teacher, Teacher) and plan.student.tokenizer.fingerprint == (
        plan.teacher.vocabulary
    ):
        scores = {check.name: check.score(plan.teacher.model, stop) for check in evaluator.checks}
        teacher = {name: value for name, value in scores.items() if value is not None}
        if len(teacher) < len(scores):
            return {}, {}
    if before is None:
        return {}, {}
    folder.write_json(START_FILE, {"student": before.metrics, "teacher": teacher})
    return before.metrics, teacher
