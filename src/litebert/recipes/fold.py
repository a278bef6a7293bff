"""A BERT folder, or any unshared litebert folder, into a folder that shares its blocks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch

from litebert.checkpoint.files import TASK_FILE
from litebert.checkpoint.folder import saved_head
from litebert.checkpoint.saving import save_model
from litebert.compress.fold import FoldOptions, FoldReport, fold
from litebert.compress.sensitivity import vector_sensitivity
from litebert.compress.teacher import load_encoder_folder
from litebert.data.shards import ShardSet
from litebert.errors import DataError
from litebert.model.config import AlbertConfig
from litebert.recipes.compress_measure import MeasureOptions
from litebert.recipes.compress_report import StepReport
from litebert.recipes.compress_step import StepResult, carry_files, run_step
from litebert.recipes.plain_folder import plain_folder, vector_task
from litebert.recipes.run_folder import model_folder, require_free
from litebert.text.tokenizer import Tokenizer

__all__ = ["FOLD_FILE", "FoldResult", "count_pieces", "fold_folder"]

FOLD_FILE: Final = "fold.json"
SAMPLED_TEXTS: Final = 192
"""Texts that directions are measured by."""
SAMPLED_TOKENS: Final = 30
_COUNT_TOKENS: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class FoldResult:
    """What was written.

    Attributes:
        out: the folder.
        config: its configuration.
        report: what was kept.
        step: what it cost and gained.
    """

    out: Path
    config: AlbertConfig
    report: FoldReport
    step: StepReport

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {
            "format_version": 1,
            "out": str(self.out),
            **self.report.to_dict(),
            "report": self.step.to_dict(),
        }

    def lines(self) -> list[str]:
        """Return the report for a person."""
        report, config = self.report, self.config
        before, after = report.parameters_before, report.parameters_after
        rows = [
            f"parameters  {before / 1e6:.2f} M -> {after / 1e6:.2f} M ({after / before:.2f})",
            "table       energy held by E: "
            + ", ".join(f"{size}: {share:.1%}" for size, share in report.explained.items()),
            f"embeddings  E = {config.embedding_size}: {report.embedding_fit:.1%} of the variance of "
            "what entered the first block",
        ]
        names = dict.fromkeys(name for _, name in report.residual)
        depths = dict.fromkeys(depth for depth, _ in report.residual)
        if report.residual:
            rows.append("missing     share of the norm of each weight that is not met, by depth:")
            rows.append("            " + " ".join(f"{name:>7}" for name in names))
            for depth in depths:
                shown = " ".join(f"{report.residual[(depth, name)]:>7.2f}" for name in names)
                rows.append(f"  depth {depth:>2}  {shown}")
        return [
            *rows,
            "",
            *self.step.lines(),
            "",
            f"wrote       {self.out}",
            f"next        litebert distill TEACHER student.toml TEXTS, with student.source = "
            f'"{self.out}"',
        ]


def fold_folder(
    source: Path,
    out: Path,
    options: FoldOptions,
    *,
    counts: Path | None = None,
    measure: MeasureOptions | None = None,
) -> FoldResult:
    """Fold a model folder, measure it before and after, and save the result.

    Args:
        source: a folder of the BERT layout, or of litebert.
        out: where to; new or empty.
        options: how to fold.
        counts: shards made with the same vocabulary, whose texts decide what the cut of the table
            keeps: pieces by the root of how often they occur, directions by how much the vectors of
            the texts feel them; None: all count the same.
        measure: data to score on, and how much worse the result may be.

    Raises:
        CheckpointError: the folder cannot be used, or `out` not be written.
        SettingsError: options that the model does not allow, or `out` is not empty.
        DataError: shards of another vocabulary.
        DegradedError: the result is worse than allowed; nothing is written then.
    """
    require_free(out)
    made: list[tuple[AlbertConfig, FoldReport]] = []

    def make(folder: Path, target: Path) -> StepResult:
        head = saved_head(folder) or "embedding"
        model = load_encoder_folder(folder, head)
        tokenizer = Tokenizer.from_pretrained(folder)
        size = model.config.vocab_size
        weights = None if counts is None else count_pieces(counts, tokenizer, size).sqrt()
        is_cut = options.embedding_size not in (None, model.config.embedding_size)
        sensitivity = (
            vector_sensitivity(model, sample_texts(counts, tokenizer, size))
            if counts is not None and is_cut and not model.config.has_projection
            else None
        )
        folded, report = fold(model, options, weights=weights, sensitivity=sensitivity)
        made.append((folded.config, report))
        files = {FOLD_FILE: json.dumps(report.to_dict(), indent=2) + "\n"}
        has_task = (folder / TASK_FILE).exists()
        task = None if has_task else vector_task(folded.config.max_position_embeddings)
        save_model(folded, target, tokenizer, task=task, files=files)
        carry_files(folder, target)
        return StepResult(facts=report.to_dict())

    with TemporaryDirectory(prefix="litebert-fold-") as scratch:
        folder = plain_folder(model_folder(source), Path(scratch))
        step = run_step("fold", folder, out, make, measure or MeasureOptions())
    return FoldResult(out, *made[0], step)


def sample_texts(shards: Path, tokenizer: Tokenizer, vocab_size: int) -> list[torch.Tensor]:
    """Return some sentences of shards as ids, in every second one half of the pieces random ones.

    Books do not have all words that a vocabulary has; random pieces let their directions count.

    Args:
        shards: made with the vocabulary of the tokenizer.
        tokenizer: gives the special pieces.
        vocab_size: V.
    """
    rng = np.random.default_rng(0)
    texts: list[torch.Tensor] = []
    found = ShardSet.open(shards)
    sizes = np.array([shard.num_sentences for shard in found.shards], np.float64)
    if not sizes.sum():
        raise DataError("holds no sentences to measure by; prepare text", path=shards)
    for number in rng.choice(len(sizes), SAMPLED_TEXTS, p=sizes / sizes.sum()).tolist():
        shard = found.shards[number]
        place = int(rng.integers(shard.num_sentences))
        first, last = (int(x) for x in shard.sentences[place : place + 2])
        ids = np.array(shard.ids[first : min(last, first + SAMPLED_TOKENS)], np.int64)
        if len(texts) % 2:
            is_random = rng.random(len(ids)) < 0.5
            ids = np.where(is_random, rng.integers(0, vocab_size, len(ids)), ids)
        texts.append(torch.from_numpy(np.array([tokenizer.cls_id, *ids, tokenizer.sep_id])))
    return texts


def count_pieces(shards: Path, tokenizer: Tokenizer, vocab_size: int) -> torch.Tensor:
    """Return how often each piece occurs in shards, [V].

    Raises:
        DataError: no shards, or of another vocabulary.
    """
    found = ShardSet.open(shards)
    found.check_tokenizer(tokenizer.fingerprint, "the model's")
    counts = np.zeros(vocab_size)
    for shard in found.shards:
        for first in range(0, shard.num_tokens, _COUNT_TOKENS):
            ids = np.asarray(shard.ids[first : first + _COUNT_TOKENS])
            if int(ids.max(initial=0)) >= vocab_size:
                raise DataError(
                    f"holds the id {int(ids.max())}, the model has {vocab_size} pieces",
                    path=shards,
                )
            counts += np.bincount(ids, minlength=vocab_size)
    return torch.from_numpy(counts)
