"""Which student learns: the weights of a folder, or new ones of a preset, with the head it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from litebert.checkpoint.folder import load_model
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.presets import PRESETS, preset
from litebert.objectives.distill import DistillModel
from litebert.recipes.distill.recut import is_narrower
from litebert.recipes.distill.settings import DistillRun
from litebert.recipes.model_source import source_folder
from litebert.recipes.pretrain.plan import token_ids
from litebert.text.tokenizer import Tokenizer

__all__ = ["StudentChoice", "choose_student", "make_student"]

FROM_TEACHER = ("id2label", "problem_type")


@dataclass(frozen=True, slots=True, eq=False)
class StudentChoice:
    """The student before it has weights.

    Attributes:
        config: sizes and head.
        tokenizer: its own.
        folder: model folder with the weights it starts from; None: new ones.
        head: "embedding", or "sequence" where a task is learnt.
    """

    config: AlbertConfig
    tokenizer: Tokenizer
    folder: Path | None
    head: str


def choose_student(
    settings: DistillRun, teacher: Path, *, shards: Path | None, is_task: bool
) -> StudentChoice:
    """Choose configuration and vocabulary.

    A preset takes the vocabulary of the shards, or the teacher's.

    Args:
        settings: the run.
        teacher: model folder of the teacher.
        shards: folder of shards, if that is where the texts are.
        is_task: whether the teacher's answers to its task are learnt.

    Raises:
        SettingsError: a configuration that does not fit.
        CheckpointError: no such model, or a folder is not usable.
    """
    student = settings.student
    head = "sequence" if is_task else "embedding"
    changes: dict[str, Any] = {"litebert": {"head": head, "pooling": "mean"}}
    if is_task:
        changes |= _labels_of(teacher)
    if student.source in PRESETS:
        place = teacher if shards is None else shards / "tokenizer"
        tokenizer = Tokenizer.from_pretrained(place)
        ours = {"vocab_size": tokenizer.vocab_size, **token_ids(tokenizer)}
        told = student.config | {
            "litebert": student.config.get("litebert", {}) | changes["litebert"]
        }
        config = preset(student.source).replace(**(ours | changes | told))
        return StudentChoice(config, tokenizer, None, head)
    folder = source_folder(student.source)
    if student.config:
        raise SettingsError(
            "student.config changes a preset; the folder that student.source names has a shape of "
            "its own, so leave it out"
        )
    tokenizer = Tokenizer.from_pretrained(folder)
    if shards is not None and not _reads(
        Tokenizer.from_pretrained(shards / "tokenizer"), tokenizer
    ):
        raise SettingsError(
            f"the shards {shards} were made with another vocabulary than the student's; prepare the "
            f"text with --tokenizer {folder}"
        )
    config = AlbertConfig.load(folder).replace(**changes)
    return StudentChoice(config, tokenizer, folder, head)


def _reads(shards: Tokenizer, student: Tokenizer) -> bool:
    """Whether a student can learn from shards: in its own pieces, or in more of them."""
    return shards.fingerprint == student.fingerprint or is_narrower(student, shards)


def make_student(choice: StudentChoice, *, seed: int, teacher_width: int | None) -> DistillModel:
    """Return the student as it starts, in training mode.

    Args:
        choice: what it is.
        seed: of new weights.
        teacher_width: numbers of a hidden state of the teacher, if such are compared.

    Raises:
        CheckpointError: the folder is not usable.
    """
    torch.manual_seed(seed)
    if choice.folder is None:
        student = AlbertWithHead(choice.config, choice.head)
        if choice.head == "embedding":
            student.model.pooler = None
    else:
        changes: dict[str, Any] = {"litebert": {"pooling": "mean"}}
        if choice.head == "sequence":
            changes |= {name: getattr(choice.config, name) for name in FROM_TEACHER}
        student = load_model(
            choice.folder,
            choice.head,
            allow_new_head=True,
            allow_missing_pooler=choice.head == "sequence",
            changes=changes,
        )
    return DistillModel(student, teacher_width).train()


def _labels_of(teacher: Path) -> dict[str, Any]:
    """Labels and kind of problem of a teacher, whatever library it is of."""
    from litebert.checkpoint.files import CONFIG_FILE
    from litebert.model.config import read_config_json

    values = read_config_json(teacher / CONFIG_FILE)
    found = {name: values[name] for name in FROM_TEACHER if values.get(name) is not None}
    sizes = {"vocab_size": 8, "hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 8}
    # Labels come as texts and in any order; the configuration knows what they may look like.
    config = AlbertConfig.from_dict(sizes | {"num_hidden_layers": 1} | found)
    return {name: getattr(config, name) for name in FROM_TEACHER}
