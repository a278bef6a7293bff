"""A distillation before it begins: teacher, student, texts, cache; nothing is computed yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litebert.compress.teacher import Answering, Teacher
from litebert.compress.teacher_cache import TeacherCache, TextSet
from litebert.compress.teacher_transformers import load_teacher
from litebert.errors import DataError, SettingsError
from litebert.model.counting import parameter_count
from litebert.objectives.distill import DistillSettings
from litebert.objectives.distill_targets import Teaching
from litebert.recipes.distill.inputs import Inputs, file_inputs, shard_inputs
from litebert.recipes.distill.reading import is_shard_folder, read_file
from litebert.recipes.distill.recut import RecutTargets, RecutTexts, is_narrower
from litebert.recipes.distill.settings import DistillRun
from litebert.recipes.distill.student import StudentChoice, choose_student
from litebert.recipes.run_folder import model_folder
from litebert.train.random_depth import depth_probabilities

if TYPE_CHECKING:
    from litebert.tasks.classification import SequenceClassification

__all__ = ["DistillPlan", "make_plan", "parts_of"]

CACHE_FOLDER: Final = "teacher"
NEEDS_SAME_PIECES: Final = ("hidden", "relation")


@dataclass(frozen=True, slots=True, eq=False)
class DistillPlan:
    """What a run will do.

    Attributes:
        settings: resolved settings.
        teacher_folder: model folder of the teacher.
        teacher: who is asked.
        student: its configuration, vocabulary and start.
        inputs: texts to learn from and to compare on.
        task: the teacher's, where its answers to it are learnt.
    """

    settings: DistillRun
    teacher_folder: Path
    teacher: Answering
    student: StudentChoice
    inputs: Inputs
    task: SequenceClassification | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """What the teacher is asked for."""
        return parts_of(self.settings.distill)

    def cache(
        self,
        run: Path,
        *,
        held_out: bool = False,
        on_made: Callable[[int, int], None] | None = None,
    ) -> TeacherCache:
        """Return the teacher's outputs on the texts.

        Args:
            run: run folder, where they lie if no other place is named.
            held_out: those on the texts that are compared on.
            on_made: is told of each shard that is made.
        """
        place = self.settings.data.cache
        inputs = self.inputs
        texts: TextSet = inputs.teacher_eval_texts if held_out else inputs.teacher_texts
        folder = run / CACHE_FOLDER if place is None else Path(place)
        return TeacherCache(folder, self.teacher, texts, self.parts, on_made)

    def teaching(self, cache: TeacherCache, *, held_out: bool = False) -> Teaching:
        """Return what the teacher says, for each token of the student's.

        Args:
            cache: result of `cache`.
            held_out: as it was made with.
        """
        texts = self.inputs.eval_texts if held_out else self.inputs.texts
        return RecutTargets(cache, texts) if isinstance(texts, RecutTexts) else cache

    def describe(self) -> list[str]:
        """Return the plan in lines for a person."""
        config, inputs = self.student.config, self.inputs
        count = parameter_count(config, head=self.student.head)
        weights = self.settings.distill.weights
        return [
            f"teacher   {self.teacher.describe()}",
            f"student   {count / 1e6:.2f} M parameters, {config.num_hidden_layers} depths of width "
            f"{config.hidden_size}, from {self.student.folder or 'new weights'}",
            f"texts     {inputs.count:,} of {inputs.num_tokens:,} tokens to learn from, "
            f"{len(inputs.eval_numbers):,} to compare on; {inputs.note}",
            "learns    " + ", ".join(f"{name} x {weight:g}" for name, weight in weights.items()),
        ]


def parts_of(settings: DistillSettings) -> tuple[str, ...]:
    """Return what a teacher must be asked for."""
    needed = {
        "hidden": settings.hidden > 0,
        "pooled": settings.pooled > 0 or settings.similarity > 0,
        "logits": settings.soft > 0,
        "relations": settings.relation > 0,
    }
    return tuple(name for name, is_needed in needed.items() if is_needed)


def make_plan(settings: DistillRun) -> DistillPlan:
    """Open teacher, texts and student.

    Raises:
        SettingsError: settings that contradict each other, the data or the models.
        DataError: texts that cannot be used.
        CheckpointError: a model folder is not usable.
    """
    distill, data = settings.distill, settings.data
    folder = model_folder(Path(settings.teacher))
    is_task = distill.soft > 0 or distill.labels > 0
    teacher = load_teacher(
        folder, "sequence" if is_task else "embedding", relation_depth=distill.relation_depth
    )
    path = Path(data.path)
    task = None
    if is_shard_folder(path):
        if distill.labels:
            raise SettingsError("shards have no labels; set distill.labels = 0, or give a table")
        student = choose_student(settings, folder, shards=path, is_task=is_task)
        _check_pieces(settings, teacher, student)
        longest = student.config.max_position_embeddings
        inputs = shard_inputs(path, settings, teacher, student.tokenizer, longest)
    else:
        found = read_file(path, folder, labelled=distill.labels > 0, needs_task=is_task)
        task = found.task
        student = choose_student(settings, folder, shards=None, is_task=is_task)
        _check_pieces(settings, teacher, student)
        inputs = file_inputs(found, settings, teacher, student.tokenizer)
    if settings.exits.random_depth != "off":
        depth_probabilities(student.config.num_hidden_layers, "uniform", settings.exits.first_depth)
    limit = student.config.max_position_embeddings
    if data.max_length > min(limit, teacher.max_length):
        raise SettingsError(
            f"data.max_length is {data.max_length}; the student takes {limit} tokens, the teacher "
            f"{teacher.max_length}; lower it"
        )
    if inputs.count < settings.train.batch_size:
        raise DataError(
            f"there are {inputs.count:,} texts to learn from, fewer than train.batch_size = "
            f"{settings.train.batch_size}; give more text or lower it",
            path=path,
        )
    return DistillPlan(settings, folder, teacher, student, inputs, task)


def _check_pieces(settings: DistillRun, teacher: Answering, student: StudentChoice) -> None:
    """Refuse losses that compare tokens where the two cut texts into other pieces."""
    if student.tokenizer.fingerprint == teacher.vocabulary:
        return
    is_shards = is_shard_folder(Path(settings.data.path))
    if (
        is_shards
        and isinstance(teacher, Teacher)
        and is_narrower(student.tokenizer, teacher.tokenizer)
    ):
        return  # words that the student cuts otherwise are put side by side with the teacher's
    wrong = [name for name in NEEDS_SAME_PIECES if getattr(settings.distill, name) > 0]
    if wrong:
        raise SettingsError(
            f"teacher and student cut texts into other pieces, so their tokens cannot be compared: "
            f"set distill.{wrong[0]} = 0 and learn pooled, similarity or soft, or take a student with "
            "the teacher's vocabulary (litebert fold)"
        )
    if is_shards:
        raise SettingsError(
            "shards hold the pieces of one vocabulary, and teacher and student have two; give the "
            "texts themselves (a .txt file or a table)"
        )
