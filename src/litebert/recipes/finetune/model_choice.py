"""Which model a run starts from: a folder, the encoder of the package, or new weights of some shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebert.errors import SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.counting import parameter_count
from litebert.model.presets import PRESETS, preset
from litebert.models import is_name
from litebert.recipes.finetune.adapt_options import with_added
from litebert.recipes.finetune.own_vocabulary import train_own_vocabulary
from litebert.recipes.finetune.pooler_choice import pooler_options
from litebert.recipes.finetune.start_choice import AUTO, SCRATCH, choose_start
from litebert.recipes.model_source import source_folder
from litebert.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.tasks.base import Task
    from litebert.tasks.records import RecordTask

    AnyTask = Task | RecordTask

__all__ = ["ModelChoice", "choose_model", "head_options"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model to train.

    Attributes:
        config: sizes, with the labels of the task.
        tokenizer: the folder's own, or one trained on the training texts.
        folder: model folder with the weights to start from; None: from scratch.
        reason: why this one, in words.
        source: what `model.source` means here: never `auto`.
    """

    config: AlbertConfig
    tokenizer: Tokenizer
    folder: Path | None
    reason: str
    source: str

    def describe(self) -> str:
        """Return one line: shape, size and reason."""
        config = self.config
        count = parameter_count(config, head="sequence")
        return (
            f"{config.num_hidden_layers} depths of width {config.hidden_size}, {count / 1e6:.2f} M parameters, "
            f"{self.tokenizer.vocab_size:,} pieces; {self.reason}"
        )


def choose_model(
    settings: FinetuneSettings, task: AnyTask, texts: Sequence[str], num_examples: int
) -> ModelChoice:
    """Choose configuration and tokenizer.

    Args:
        settings: what was told.
        task: gives head and labels.
        texts: all training texts, for a vocabulary of their own.
        num_examples: examples to train on.

    Raises:
        SettingsError: a configuration change that does not fit.
        CheckpointError: no such model, or the folder is not usable.
    """
    model = settings.model
    options = model.config.get("litebert", {})
    if not isinstance(options, dict):
        raise SettingsError(f"model.config.litebert must be a table, got {options!r:.80}")
    changes: dict[str, Any] = {
        **model.config,
        "id2label": task.config_labels(),
        "problem_type": task.problem_type,
        "litebert": options | head_options(task),
    }
    source, why = choose_start(settings, texts) if model.source == AUTO else (model.source, "")
    if source not in (SCRATCH, *PRESETS):
        folder = source_folder(source, words=(AUTO, SCRATCH))
        saved = AlbertConfig.load(folder)
        if "pooler_reads" not in options:
            changes["litebert"] |= pooler_options(
                folder, task.head, saved, is_pair=getattr(task, "is_pair", False)
            )
        config = with_added(saved.replace(**changes), settings.adapt)
        why = why or f"weights of {source if is_name(source) else folder}"
        return ModelChoice(config, Tokenizer.from_pretrained(folder), folder, why, source)
    tokenizer = train_own_vocabulary(model, texts)
    name, reason = _shape_for(num_examples) if source == SCRATCH else (source, f"preset {source}")
    config = preset(name, vocab_size=tokenizer.vocab_size).replace(**changes)
    config = with_added(config, settings.adapt)
    reason = f"{reason}, new weights (a preset is a shape only)" + (f"; {why}" if why else "")
    return ModelChoice(config, tokenizer, None, reason, source)


def head_options(task: AnyTask) -> dict[str, str]:
    """Return what a task sets under `litebert` in the configuration."""
    pooling: str | None = getattr(task, "pooling", None)
    return {"head": task.head} | ({} if pooling is None else {"pooling": pooling})


def _shape_for(num_examples: int) -> tuple[str, str]:
    """Return a preset and the reason: a small table is seen often enough only by a small shape."""
    name = "tiny" if num_examples < 20_000 else "small"
    return name, f"preset {name} for {num_examples:,} examples"
