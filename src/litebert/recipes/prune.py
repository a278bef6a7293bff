"""`prune`: a model folder into one with fewer heads, FFN units, depths or pieces, healed by training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from litebert.checkpoint import fs
from litebert.checkpoint.folder import load_encoder, load_model, saved_head
from litebert.checkpoint.saving import save_model
from litebert.compress.prune.importance import Importance, taylor_importance
from litebert.compress.prune.remove import choose, keep_rows, remove
from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.resharing import set_depth
from litebert.recipes.compress_heal import HealOptions, heal
from litebert.recipes.compress_measure import MeasureOptions
from litebert.recipes.compress_step import StepResult, carry_files, run_step
from litebert.recipes.prune_data import corpus_texts, labelled_texts, task_losses, vector_losses
from litebert.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from litebert.recipes.compress_report import StepReport
    from litebert.recipes.finetune.run import OnRunEvent

__all__ = ["PruneJob", "prune_folder", "prune_model"]

EXAMPLES: Final = 512
"""Examples that importance is measured on where none are told."""
_IDS: Final = ("pad_token_id", "bos_token_id", "eos_token_id")


@dataclass(frozen=True, slots=True)
class PruneJob:
    """What goes and what stays.

    Attributes:
        measure: how to measure before and after.
        heads: attention heads that stay in each stored attention; None: all.
        keep_heads: which ones instead.
        ffn: FFN units that stay in each stored feed-forward; None: all.
        depth: depths that stay; None: all.
        vocab: files whose texts the vocabulary is cut to; empty: it stays.
        vocab_size: most pieces that stay, the most frequent in `vocab`, or the first of the vocabulary where
            there are no such files; None: all that the texts of `vocab` have.
        train: labelled data for importance and healing; None: those that are measured on.
        texts: plain texts for importance in a model of vectors, instead of labelled data.
        heal: how to train on afterwards; None: no healing.
        is_taught: whether healing learns from the answers of the unpruned model too.
        examples: examples that importance is measured on, >= 1.
    """

    measure: MeasureOptions
    heads: int | None = None
    keep_heads: tuple[int, ...] = ()
    ffn: int | None = None
    depth: int | None = None
    vocab: tuple[Path, ...] = ()
    vocab_size: int | None = None
    train: Path | None = None
    texts: tuple[Path, ...] = ()
    heal: HealOptions | None = None
    is_taught: bool = False
    examples: int = EXAMPLES

    def check(self) -> None:
        """Refuse a job that changes nothing, or that cannot be scored.

        Raises:
            SettingsError: so it is.
        """
        if not (self.cuts_blocks or self.depth or self.cuts_vocabulary):
            raise SettingsError(
                "nothing to prune; tell --heads, --keep-heads, --ffn, --depth, --vocab or --vocab-size"
            )
        if self.texts and not self.needs_scores:
            raise SettingsError(
                "plain texts (--texts) say which heads and FFN units matter, and none are removed; tell --heads "
                "or --ffn, or leave them out"
            )
        if self.examples < 1:
            raise SettingsError(f"examples is {self.examples}; allowed are 1 and more")
        if self.needs_scores and self.labelled is None and not self.texts:
            raise SettingsError(
                "which heads and FFN units matter is measured on labelled data; give them with --train or "
                "--data, or plain texts (--texts) where the model gives vectors"
            )

    @property
    def cuts_blocks(self) -> bool:
        """Whether heads or units go."""
        return self.heads is not None or bool(self.keep_heads) or self.ffn is not None

    @property
    def cuts_vocabulary(self) -> bool:
        """Whether pieces go."""
        return bool(self.vocab) or self.vocab_size is not None

    @property
    def needs_scores(self) -> bool:
        """Whether examples decide what goes."""
        return self.heads is not None or self.ffn is not None

    @property
    def labelled(self) -> Path | None:
        """Labelled data for importance."""
        if self.train is not None:
            return self.train
        return None if self.measure.evaluation is None else self.measure.evaluation.data


def prune_folder(
    folder: Path, out: Path, job: PruneJob, *, on_event: OnRunEvent | None = None
) -> StepReport:
    """Prune a model folder; the result is another model folder, with a report.

    Raises:
        SettingsError: nothing to do, sizes that cannot be, no data to score on, or `out` is taken.
        DegradedError: the score falls more than allowed.
        CheckpointError, DataError: folders or data that cannot be used.
    """
    job.check()

    def make(source: Path, target: Path) -> StepResult:
        first = target if job.heal is None else target.with_name(target.name + "-first")
        try:
            facts = prune_model(source, first, job)
            if job.heal is not None:
                options = replace(job.heal, teacher=source) if job.is_taught else job.heal
                facts["healing"] = heal(first, target, options, on_event=on_event)
        finally:
            if job.heal is not None and first.exists():
                fs.remove_tree(first)
        return StepResult(facts, _notes(facts))

    return run_step("prune", folder, out, make, job.measure)


def prune_model(source: Path, target: Path, job: PruneJob) -> dict[str, Any]:
    """Write the pruned model, not healed, to a new folder; return what was done, JSON values only."""
    head = saved_head(source)
    model: AlbertModel | AlbertWithHead = (
        load_encoder(source) if head is None else load_model(source)
    )
    facts: dict[str, Any] = {"before": _shape(model)}
    if job.depth is not None:
        if job.depth > model.config.num_hidden_layers:
            raise SettingsError(
                f"depth is {job.depth}, the model has {model.config.num_hidden_layers}; pruning goes down"
            )
        model = set_depth(cast(AlbertWithHead, model), job.depth)
    if job.cuts_blocks:
        model = _cut_blocks(source, model, job, facts)
    tokenizer = None
    if job.cuts_vocabulary:
        tokenizer, model = _cut_vocabulary(source, model, job)
    save_model(model, target, tokenizer)
    carry_files(source, target)
    facts["after"] = _shape(model)
    return facts


def _cut_blocks(
    source: Path, model: AlbertModel | AlbertWithHead, job: PruneJob, facts: dict[str, Any]
) -> AlbertModel | AlbertWithHead:
    import torch

    config = model.config
    scores = Importance(
        tuple(
            torch.ones(config.num_key_value_heads)
            for _ in range(len({step.attention for step in config.plan}))
        ),
        tuple(
            torch.ones(config.intermediate_size)
            for _ in range(len({step.ffn for step in config.plan}))
        ),
        0,
    )
    labelled, evaluation = job.labelled, job.measure.evaluation
    if job.needs_scores and job.texts:
        if not isinstance(model, AlbertWithHead):
            raise SettingsError(f"{source} has no head that gives vectors; fold or distil it first")
        scores = taylor_importance(model, vector_losses(source, model, job.texts, job.examples))
    elif job.needs_scores and labelled is not None:
        if not isinstance(model, AlbertWithHead):
            raise SettingsError(
                f"{source} has no head with a loss, so nothing says which heads and units matter; train "
                "it for a task first (litebert train), or name the heads (--keep-heads)"
            )
        kind = None if evaluation is None else evaluation.task
        losses = task_losses(source, model, labelled, kind, job.examples)
        scores = taylor_importance(model, losses)
    kept = choose(
        config,
        scores,
        heads=job.heads,
        keep_heads=job.keep_heads or None,
        units=job.ffn,
    )
    facts["kept_heads"] = [list(part) for part in kept.heads]
    facts["importance_tokens"] = scores.tokens
    facts["head_importance"] = [part.tolist() for part in scores.heads]
    facts["unit_importance_kept"] = [
        float(part[list(units)].sum() / part.sum().clamp_min(1e-30))
        for part, units in zip(scores.units, kept.units, strict=True)
    ]
    return remove(cast(AlbertWithHead, model), kept)


def _cut_vocabulary(
    source: Path, model: AlbertModel | AlbertWithHead, job: PruneJob
) -> tuple[Tokenizer, AlbertModel | AlbertWithHead]:
    tokenizer = Tokenizer.from_pretrained(source)
    evaluation = job.measure.evaluation
    parts: list[Iterable[str]] = [corpus_texts(job.vocab)] if job.vocab else []
    files = {job.train, None if evaluation is None else evaluation.data} if job.vocab else set()
    kind = None if evaluation is None else evaluation.task
    parts += [labelled_texts(source, path, kind) for path in files if path is not None]
    texts = chain.from_iterable(parts)
    if job.vocab_size is None:
        small, old = tokenizer.narrowed(tokenizer.used_ids(texts))
    else:
        small, old = tokenizer.cut(job.vocab_size, tokenizer.piece_counts(texts))
    return small, keep_rows(cast(AlbertWithHead, model), old, _special_ids(model, old))


def _special_ids(model: AlbertModel | AlbertWithHead, old: Sequence[int]) -> dict[str, int | None]:
    places = {token: place for place, token in enumerate(old)}
    found: dict[str, int | None] = {}
    for name in _IDS:
        value = getattr(model.config, name)
        found[name] = places.get(value) if value is not None else None
    return {name: value for name, value in found.items() if name != "pad_token_id"} | {
        "pad_token_id": found["pad_token_id"] or 0
    }


def _shape(model: AlbertModel | AlbertWithHead) -> dict[str, int]:
    config = model.config
    return {
        "depths": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "head_size": config.head_size,
        "ffn": config.intermediate_size,
        "vocabulary": config.vocab_size,
    }


def _notes(facts: dict[str, Any]) -> tuple[str, ...]:
    before, after = facts["before"], facts["after"]
    names = {
        "depths": "depths",
        "heads": "attention heads",
        "ffn": "FFN units",
        "vocabulary": "pieces of the vocabulary",
    }
    changed = [
        f"{word} {before[key]:,} to {after[key]:,}"
        for key, word in names.items()
        if before[key] != after[key]
    ]
    notes = [f"Removed for good, from every depth: {', '.join(changed) or 'nothing'}."]
    if "healing" in facts:
        done = facts["healing"]
        notes.append(
            f"Healed: {done['epochs']:g} epochs of {done['data']}, {done['steps']:,} steps"
            + (
                ", on labels and the answers of the unpruned model."
                if done["teacher_share"]
                else "."
            )
        )
    else:
        notes.append("Not healed; give labelled data with --train and --epochs to train it on.")
    return tuple(notes)
