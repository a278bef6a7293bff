"""A distillation before it begins: teacher, student, texts, cache; nothing is computed yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from litebert.checkpoint.files import CONFIG_FILE
from litebert.compress.teacher import Teacher
from litebert.compress.teacher_cache import TeacherCache
from litebert.data.chunks import ChunkIndex
from litebert.data.shards import ShardSet
from litebert.errors import DataError, SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.counting import parameter_count
from litebert.model.presets import PRESETS, preset
from litebert.objectives.distill import DistillSettings
from litebert.recipes.distill.settings import DistillRun
from litebert.recipes.distill.texts import SPECIALS, ShardTexts
from litebert.recipes.pretrain.plan import token_ids
from litebert.recipes.run_folder import model_folder
from litebert.text.tokenizer import Tokenizer

__all__ = ["DistillPlan", "make_plan", "parts_of"]

EVAL_FOLDER: Final = "eval"
CACHE_FOLDER: Final = "teacher"


@dataclass(frozen=True, slots=True, eq=False)
class DistillPlan:
    """What a run will do.

    Attributes:
        settings: resolved settings.
        teacher: who is asked.
        tokenizer: of the student and the texts.
        config: the student's configuration.
        folder: model folder that the student starts from, None for new weights.
        texts: what is learnt from, held-out ones behind.
        count: texts of them that are learnt from.
        eval_texts: what is compared on; the same as `texts` where they are of the same shards.
        eval_numbers: which of them.
    """

    settings: DistillRun
    teacher: Teacher
    tokenizer: Tokenizer
    config: AlbertConfig
    folder: Path | None
    texts: ShardTexts
    count: int
    eval_texts: ShardTexts
    eval_numbers: range

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
        texts = self.eval_texts if held_out else self.texts
        folder = run / CACHE_FOLDER if place is None else Path(place)
        return TeacherCache(folder, self.teacher, texts, self.parts, on_made)

    def describe(self) -> list[str]:
        """Return the plan in lines for a person."""
        teacher, config = self.teacher.model.config, self.config
        own, theirs = parameter_count(config), parameter_count(teacher)
        weights = self.settings.distill.weights
        tokens = int(self.texts.lengths[: self.count].sum())
        return [
            f"teacher   {theirs / 1e6:.2f} M parameters, {teacher.num_hidden_layers} depths of width "
            f"{teacher.hidden_size}",
            f"student   {own / 1e6:.2f} M parameters, {config.num_hidden_layers} depths of width "
            f"{config.hidden_size}, from {self.folder or 'new weights'}",
            f"texts     {self.count:,} of {tokens:,} tokens to learn from, "
            f"{len(self.eval_numbers):,} to compare on",
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
        DataError: shards that cannot be used.
        CheckpointError: a model folder is not usable.
    """
    data = settings.data
    teacher = Teacher.load(
        model_folder(Path(settings.teacher)),
        "embedding",
        relation_depth=settings.distill.relation_depth,
    )
    shards = ShardSet.open(Path(data.path))
    tokenizer = Tokenizer.from_pretrained(shards.tokenizer_folder)
    if teacher.tokenizer.fingerprint != tokenizer.fingerprint:
        raise SettingsError(
            f"the shards {data.path} were made with another vocabulary than the teacher's; prepare "
            f"the text with --tokenizer {settings.teacher}"
        )
    config, folder = _student(settings, tokenizer)
    for name, limit in (
        ("teacher", teacher.model.config.max_position_embeddings),
        ("student", config.max_position_embeddings),
    ):
        if data.max_length > limit:
            raise SettingsError(
                f"data.max_length is {data.max_length}, the {name} has {limit} positions; lower it"
            )
    held_out = shards.folder / EVAL_FOLDER
    texts = _texts(shards, settings, tokenizer, data.max_examples)
    if held_out.is_dir():
        eval_texts = _texts(ShardSet.open(held_out), settings, tokenizer, data.eval_examples)
        numbers, count = range(len(eval_texts)), len(texts)
    else:
        eval_texts, count = texts, len(texts) - min(data.eval_examples, len(texts) // 10)
        numbers = range(count, len(texts))
    if count < settings.train.batch_size:
        raise DataError(
            f"there are {count:,} texts to learn from, fewer than train.batch_size = "
            f"{settings.train.batch_size}; give more text or lower it",
            path=shards.folder,
        )
    return DistillPlan(
        settings, teacher, tokenizer, config, folder, texts, count, eval_texts, numbers
    )


def _texts(
    shards: ShardSet, settings: DistillRun, tokenizer: Tokenizer, limit: int | None
) -> ShardTexts:
    data, seed = settings.data, settings.train.seed
    index = ChunkIndex.build(
        shards,
        max_tokens=data.max_length - SPECIALS,
        short_fraction=data.short_fraction,
        seed=seed,
    )
    return ShardTexts(index, tokenizer, seed=seed, limit=limit)


def _student(settings: DistillRun, tokenizer: Tokenizer) -> tuple[AlbertConfig, Path | None]:
    student = settings.student
    options = {"litebert": {"head": "embedding", "pooling": "mean"}}
    if student.source in PRESETS:
        ours = {"vocab_size": tokenizer.vocab_size, **token_ids(tokenizer)}
        return preset(student.source).replace(**(ours | student.config | options)), None
    folder = model_folder(Path(student.source))
    if student.config:
        raise SettingsError(
            "student.config changes a preset; the folder that student.source names has a shape of "
            "its own, so leave it out"
        )
    config = AlbertConfig.load(folder / CONFIG_FILE)
    known = Tokenizer.from_pretrained(folder).fingerprint
    if known != tokenizer.fingerprint:
        raise SettingsError(
            f"the student of {folder} has another vocabulary than the texts; prepare the text with "
            f"--tokenizer {folder}"
        )
    return config.replace(**options), folder
