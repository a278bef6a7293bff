"""A pretraining run before it begins: shards, chunks, model shape, steps; nothing is trained yet."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.data.chunks import ChunkIndex
from litebert.data.shards import ShardSet
from litebert.errors import DataError, SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.counting import parameter_count, unshared_parameter_count
from litebert.model.options import LitebertOptions
from litebert.model.presets import PRESETS, preset
from litebert.objectives.base import SpecialIds
from litebert.objectives.examples import ExampleMaker
from litebert.recipes.model_source import source_folder
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.recipes.pretrain.source import ShardSource
from litebert.text.tokenizer import Tokenizer

__all__ = ["PretrainPlan", "make_plan"]

EVAL_FOLDER: Final = "eval"
SPECIALS: Final = 3
"""[CLS] and two [SEP]."""
CHUNK_FILES: Final = ("chunks-train.bin", "chunks-eval.bin")


@dataclass(frozen=True, slots=True, eq=False)
class PretrainPlan:
    """What a run will do.

    Attributes:
        settings: resolved settings.
        shards: training text.
        eval_shards: held-out text; the same as `shards` where chunks of it are held out.
        train_index: chunks of the training text.
        eval_index: chunks of the held-out text.
        train_chunks: [N] numbers of the chunks that are trained on.
        eval_chunks: numbers of the chunks that are scored.
        tokenizer: of the shards.
        config: model configuration.
        folder: model folder that training goes on from, None for new weights.
    """

    settings: PretrainSettings
    shards: ShardSet
    eval_shards: ShardSet
    train_index: ChunkIndex
    eval_index: ChunkIndex
    train_chunks: NDArray[np.int64]
    eval_chunks: list[int]
    tokenizer: Tokenizer
    config: AlbertConfig
    folder: Path | None

    @property
    def head(self) -> str:
        """Head word of the model."""
        return self.settings.objectives.head

    def maker(self, index: ChunkIndex) -> ExampleMaker:
        """Return what makes examples of the chunks of `index`."""
        return ExampleMaker(
            index,
            self.settings.objectives,
            special_ids(self.tokenizer),
            self.settings.train.seed,
        )

    def source(self) -> ShardSource:
        """Return the training batches."""
        objectives = self.settings.objectives.model_dump(mode="json")
        text = json.dumps([self.train_index.fingerprint, objectives], sort_keys=True)
        return ShardSource(
            self.maker(self.train_index),
            self.train_chunks,
            self.settings.train,
            data_sha256=hashlib.sha256(text.encode()).hexdigest(),
        )

    def describe(self) -> list[str]:
        """Return what a person reads before the run begins."""
        data, config = self.settings.data, self.config
        count = parameter_count(config, head=self.head)
        unshared = unshared_parameter_count(config, head=self.head)
        held = (
            f"{len(self.eval_chunks):,} examples of {self.eval_shards.folder}"
            if self.eval_shards is not self.shards
            else f"{len(self.eval_chunks):,} examples held out of the same documents"
        )
        weights = self.settings.objectives.weights
        return [
            f"text      {self.shards.folder}: {self.shards.num_documents:,} documents, "
            f"{self.shards.num_tokens:,} tokens, {len(self.train_chunks):,} examples of at most "
            f"{data.max_length} tokens",
            f"scored on {held}",
            f"model     {config.num_hidden_layers} depths of width {config.hidden_size}, embedding "
            f"{config.embedding_size}, {self.tokenizer.vocab_size:,} pieces, sharing "
            f"{config.litebert.sharing!r}: {count / 1e6:.2f} M parameters "
            f"({unshared / 1e6:.2f} M without sharing)",
            "learns    " + ", ".join(f"{name} x {weight:g}" for name, weight in weights.items()),
        ]


def make_plan(settings: PretrainSettings, folder: Path | None = None) -> PretrainPlan:
    """Open the shards, cut them into chunks and choose the model.

    Args:
        settings: the run.
        folder: run folder with the chunks of an earlier part of the run, if there is one.

    Raises:
        SettingsError: unknown preset, or settings that contradict the data or each other.
        DataError: shards that cannot be used, or too little text.
        CheckpointError: the model folder is not usable.
    """
    data = settings.data
    verify = "full" if data.verify else "sizes"
    shards = ShardSet.open(Path(data.shards), verify=verify)
    held_out = Path(data.eval_shards) if data.eval_shards else shards.folder / EVAL_FOLDER
    has_own = data.eval_shards is not None or held_out.is_dir()
    eval_shards = ShardSet.open(held_out, verify=verify) if has_own else shards
    if eval_shards.tokenizer_fingerprint != shards.tokenizer_fingerprint:
        raise DataError(
            f"was made with another tokenizer than {shards.folder}; prepare both with the same "
            "--tokenizer",
            path=eval_shards.folder,
        )
    train_index = _chunks(shards, settings, folder, CHUNK_FILES[0])
    eval_index = (
        train_index
        if eval_shards is shards
        else _chunks(eval_shards, settings, folder, CHUNK_FILES[1])
    )
    train_chunks, eval_chunks = _split(train_index, eval_index, settings)
    tokenizer = Tokenizer.from_pretrained(shards.tokenizer_folder)
    config, source = _model(settings, tokenizer)
    if settings.model.start != "official" and (source or settings.objectives.has_rtd):
        raise SettingsError(
            f"model.start is {settings.model.start!r}, which is for new weights without "
            "objectives.rtd; leave it out"
        )
    if config.litebert.has_position_table and data.max_length > config.max_position_embeddings:
        raise SettingsError(
            f"data.max_length is {data.max_length}, the model has "
            f"{config.max_position_embeddings} positions; lower the one, or raise "
            "model.config.max_position_embeddings (new weights only)"
        )
    if settings.objectives.has_order and config.type_vocab_size < 2:
        raise SettingsError(
            f"model.config.type_vocab_size is {config.type_vocab_size}, and objectives.order tells "
            'two segments apart; raise it to 2, or set objectives.order="none"'
        )
    return PretrainPlan(
        settings=settings,
        shards=shards,
        eval_shards=eval_shards,
        train_index=train_index,
        eval_index=eval_index,
        train_chunks=train_chunks,
        eval_chunks=eval_chunks,
        tokenizer=tokenizer,
        config=config,
        folder=source,
    )


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Return the ids that masking must know; ids up to the last special one are never drawn.

    Vocabularies begin with their special pieces (and BERT's with unused ones between them).
    """
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id)
    first = max(*special, tokenizer.mask_id) + 1
    return SpecialIds(
        cls=tokenizer.cls_id,
        sep=tokenizer.sep_id,
        mask=tokenizer.mask_id,
        pad=tokenizer.pad_id,
        vocab_size=tokenizer.vocab_size,
        num_special=first if 2 * first < tokenizer.vocab_size else 0,
    )


def _chunks(
    shards: ShardSet, settings: PretrainSettings, folder: Path | None, name: str
) -> ChunkIndex:
    data = settings.data
    path = None if folder is None else folder / name
    if path is not None and path.exists():
        return ChunkIndex.load(path, shards)
    index = ChunkIndex.build(
        shards,
        max_tokens=data.max_length - SPECIALS,
        short_fraction=data.short_fraction,
        seed=settings.train.seed,
    )
    if path is not None and path.parent.is_dir():
        index.save(path)
    return index


def _split(
    train: ChunkIndex, held_out: ChunkIndex, settings: PretrainSettings
) -> tuple[NDArray[np.int64], list[int]]:
    """Choose what is scored, and leave it out of training where both are the same text."""
    data = settings.data
    rng = np.random.default_rng(np.random.SeedSequence([settings.train.seed, len(held_out)]))
    order = rng.permutation(len(held_out))
    if train is not held_out:
        return np.arange(len(train), dtype=np.int64), sorted(order[: data.eval_examples].tolist())
    wanted = min(data.eval_examples, max(1, round(data.eval_fraction * len(train))))
    chosen = sorted(order[:wanted].tolist())
    rest = np.setdiff1d(np.arange(len(train), dtype=np.int64), np.asarray(chosen, np.int64))
    if not len(rest):
        raise DataError(
            f"there are {len(train)} examples of at most {data.max_length} tokens, too few to train "
            "and to score on; give more text",
            path=Path(data.shards),
        )
    return rest, chosen


def _model(settings: PretrainSettings, tokenizer: Tokenizer) -> tuple[AlbertConfig, Path | None]:
    model, head = settings.model, settings.objectives.head
    options: Any = model.config.get("litebert", {})
    if not isinstance(options, dict):
        raise SettingsError(f"model.config.litebert must be a table, got {options!r:.80}")
    changes = model.config | {"litebert": options | {"head": head}}
    if model.source in PRESETS:
        if model.train == "head":
            raise SettingsError(
                f'model.train is "head", but model.source is the preset {model.source}, whose random '
                'encoder would stay random; name a model folder, or set model.train = "all"'
            )
        ours = {"vocab_size": tokenizer.vocab_size, **token_ids(tokenizer)}
        config = _changed(preset(model.source), ours | changes)
        folder = None
    else:
        folder = source_folder(model.source)
        if settings.objectives.has_rtd:
            raise SettingsError(
                "objectives.rtd trains a generator beside the model and begins with new weights; "
                "name a preset as model.source, or leave objectives.rtd out"
            )
        config = _changed(AlbertConfig.load(folder), changes)
        known = Tokenizer.from_pretrained(folder).fingerprint
        if known != tokenizer.fingerprint:
            raise SettingsError(
                f"the model of {folder} has another vocabulary than the shards "
                f"{settings.data.shards}; prepare the text with --tokenizer {folder}"
            )
    if config.vocab_size < tokenizer.vocab_size:
        raise SettingsError(
            f"model.config.vocab_size is {config.vocab_size}, the tokenizer of the shards has "
            f"{tokenizer.vocab_size} pieces; leave it out"
        )
    return config, folder


def _changed(config: AlbertConfig, changes: dict[str, Any]) -> AlbertConfig:
    """Apply `model.config`, and say in a fault that it is there."""
    tables = (("model.config", changes, AlbertConfig), ("model.config.litebert",
              changes["litebert"], LitebertOptions))  # fmt: skip
    for place, values, kind in tables:
        for name in sorted(values.keys() - kind.model_fields.keys()):
            near = get_close_matches(name, kind.model_fields, n=1)
            known = (
                f"did you mean {near[0]!r}?" if near else f"known: {', '.join(kind.model_fields)}"
            )
            raise SettingsError(f"no setting {f'{place}.{name}'!r}; {known}")
    try:
        return config.replace(**changes)
    except SettingsError as error:
        raise SettingsError(f"model.config: {error}") from error


def token_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the token ids that a configuration names."""
    return {
        "pad_token_id": tokenizer.pad_id,
        "bos_token_id": tokenizer.cls_id,
        "eos_token_id": tokenizer.sep_id,
    }
