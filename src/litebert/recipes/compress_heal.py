"""Healing: a smaller model trained on for a while by the normal loop, on the user's labelled data.

It learns from the labels, and if asked from the answers of the model that it was made from.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint import fs
from litebert.checkpoint.files import CONFIG_FILE, TASK_FILE
from litebert.checkpoint.folder import load_model
from litebert.errors import SettingsError, TrainingDiverged
from litebert.recipes.compress_step import carry_files
from litebert.recipes.finetune.job import start_run
from litebert.recipes.finetune.loss_choice import label_loss
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import require_free
from litebert.settings import build_settings
from litebert.tasks.base import load_task
from litebert.tasks.classification import SequenceClassification
from litebert.text.tokenizer import Tokenizer
from litebert.train.stop import StopRequest
from litebert.train.teacher_loss import TeacherLoss

if TYPE_CHECKING:
    from torch import Tensor

    from litebert.recipes.finetune.run import OnRunEvent
    from litebert.recipes.finetune.work import AnyPlan

__all__ = ["HealOptions", "heal"]

HEAL_RATE: Final = 3e-4
"""Learning rate of healing: small models, trained already."""


@dataclass(frozen=True, slots=True)
class HealOptions:
    """How to train on.

    Attributes:
        train: labelled data; the format that the model was trained on.
        eval: labelled data that the best step is chosen on; None: a part of `train` is held out.
        task: named format, where the data need one.
        epochs: passes over the data, > 0.
        learning_rate: highest rate of the schedule.
        seed: of order and dropout.
        overrides: any setting of `litebert train`, as section.key=value.
        teacher: model folder whose answers are learnt beside the labels, such as the one before
            pruning; None: the labels alone.
        teacher_share: its part of the loss, above 0 to 1.
    """

    train: Path
    eval: Path | None = None
    task: str | None = None
    epochs: float = 2.0
    learning_rate: float = HEAL_RATE
    seed: int = 0
    overrides: tuple[str, ...] = ()
    teacher: Path | None = None
    teacher_share: float = 0.5


def heal(
    folder: Path,
    target: Path,
    options: HealOptions,
    *,
    on_event: OnRunEvent | None = None,
    stop: StopRequest | None = None,
) -> dict[str, Any]:
    """Train the model of a folder on, and write the best step to a new folder.

    A quantized folder is trained with its rounding (straight-through), so the result is on the grid.

    Args:
        folder: model folder with a task.
        target: new folder for the result.
        options: data and settings.
        on_event: is told what happens.
        stop: asks for an early end; nothing is written then.

    Returns:
        What was done, JSON values only: steps, seconds, scores.

    Raises:
        SettingsError: no task to train, or settings that do not fit.
        DataError: unusable data.
        TrainingDiverged: the training failed, or it was stopped.
    """
    plan = make_plan(_settings(folder, options))
    taught = None if options.teacher is None else _teacher_loss(options.teacher, plan, options)
    work = target.with_name(target.name + "-healing")
    require_free(work)  # what stands there is somebody's, and is not removed
    try:
        run = start_run(plan, work, f"litebert train {shlex.quote(str(options.train))}")
        outcome = run_plan(
            plan,
            run,
            on_event=on_event or _ignore,
            stop=stop or StopRequest(),
            step_loss=taught,
        )
        chosen = outcome.chosen
        if outcome.is_interrupted or chosen is None or chosen.result is None:
            raise TrainingDiverged("healing was stopped; nothing was written", step=0)
        _move(run.best, target)
        carry_files(folder, target)
        return {
            "epochs": options.epochs,
            "steps": chosen.result.step,
            "learning_rate": options.learning_rate,
            "data": options.train.name,
            "teacher_share": 0.0 if taught is None else options.teacher_share,
            "scores": dict(chosen.scores),
        }
    finally:
        if work.exists():
            fs.remove_tree(work)


def _teacher_loss(folder: Path, plan: AnyPlan, options: HealOptions) -> TeacherLoss:
    """Return the loss on labels and on the answers of the model of a folder.

    Raises:
        SettingsError: a task whose answers cannot be learnt like that.
    """
    task: Any = plan.task
    if getattr(task, "loss", "labels") != "labels" or task.head not in ("sequence", "token"):
        raise SettingsError(
            f"answers are learnt of classes and numbers of texts and of tokens, and task {task.name!r} has "
            "neither; heal on the labels alone (--heal labels)"
        )
    loss = label_loss(plan)
    ids = _teacher_ids(plan.model.tokenizer, Tokenizer.from_pretrained(folder))
    return TeacherLoss(
        loss,
        load_model(folder),
        share=options.teacher_share,
        problem_type=task.problem_type,
        ids=ids,
    )


def _teacher_ids(own: Tokenizer, teacher: Tokenizer) -> Tensor | None:
    """The teacher's id of each piece; None where they are the same."""
    import torch

    if own.fingerprint == teacher.fingerprint:
        return None
    places = {teacher.token(number): number for number in range(teacher.vocab_size)}
    names = [own.token(number) for number in range(own.vocab_size)]
    missing = [name for name in names if name not in places]
    if missing:
        raise SettingsError(
            f"the vocabulary of the teacher lacks {missing[0]!r:.40}; learn from the model that the smaller "
            "one was made from"
        )
    return torch.tensor([places[name] for name in names])


def _ignore(event: object) -> None:
    del event


def _settings(folder: Path, options: HealOptions) -> FinetuneSettings:
    if not (folder / TASK_FILE).is_file():
        raise SettingsError(
            f"{folder} has no {TASK_FILE}, so there is nothing to train it on; train it for a task first "
            "(litebert train), or leave healing out"
        )
    task: Any = load_task(folder)
    data: dict[str, Any] = {"train": str(options.train)}
    if options.eval is not None:
        data["eval"] = str(options.eval)
    if options.task is not None:
        data["task"] = options.task
    if isinstance(task, SequenceClassification):
        data |= {
            "text_columns": task.text_columns,
            "label_column": task.label_column,
            "kind": task.kind,
            "metric": task.metric,
            "max_length": task.max_length,
        }
    values: dict[str, Any] = {
        "data": data,
        "model": {"source": str(folder)},
        "train": {
            "epochs": options.epochs,
            "learning_rate": options.learning_rate,
            "seed": options.seed,
        },
        "num_seeds": 1,
        "few_shot": False,
        "has_baselines": False,
    }
    return build_settings(FinetuneSettings, values, path=None, overrides=list(options.overrides))


def _move(source: Path, target: Path) -> None:
    """Copy the files of a model folder; the configuration last."""
    fs.make_folder(target)
    paths = sorted(source.iterdir(), key=lambda path: path.name == CONFIG_FILE)
    for path in paths:
        if path.is_file() and not path.is_symlink():
            fs.write_file(target / path.name, path.read_bytes())
