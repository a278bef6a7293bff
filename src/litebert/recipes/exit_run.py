"""Prediction in which texts leave the batch as soon as a depth has answered them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from litebert.data.batch import EncodedExample, collate
from litebert.model.stepwise import Stepwise
from litebert.recipes.run_folder import model_folder
from litebert.tasks.exit_file import read_exit_rule
from litebert.tasks.exit_rules import ExitRule, ExitWatch, exit_task, parse_exit
from litebert.train.evaluate import batches_by_length
from litebert.train.micro import DeviceBatch, to_device

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

    from litebert.model.albert import AlbertWithHead
    from litebert.recipes.predictor import Predictor
    from litebert.tasks.classification import SequenceClassification

__all__ = ["ExitRun", "answers_of_all_depths", "set_exit"]


class ExitRun:
    """Answers with exits, and what they took.

    Attributes:
        rule: when a text leaves.
        depths: how many sequences left after each depth, [L].
        tokens: tokens that went through each depth, [L].
    """

    def __init__(self, model: AlbertWithHead, task: SequenceClassification, rule: ExitRule) -> None:
        """Set it up.

        Args:
            model: whose active depth is the last one that runs.
            task: what its logits mean.
            rule: when a text leaves.

        Raises:
            SettingsError: a criterion that the task does not have.
        """
        ExitWatch(rule, task)
        self._model, self._task, self.rule = model, task, rule
        self.forget()

    def forget(self) -> None:
        """Count from zero again."""
        depths = self._model.config.num_hidden_layers
        self.depths = np.zeros(depths, np.int64)
        self.tokens = np.zeros(depths, np.int64)

    @property
    def mean_depth(self) -> float:
        """Depths that a token went through on average; 0 before the first answer."""
        return float(self.tokens.sum() / max(1, self.tokens[0]))

    def outputs(
        self, examples: Sequence[EncodedExample], *, batch_tokens: int
    ) -> list[NDArray[np.float32]]:
        """Return the logits of each example, [1, C], in order.

        Args:
            examples: any number.
            batch_tokens: real tokens that enter the first depth together, >= 1.

        Raises:
            DataError: logits that are not finite.
        """
        found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(examples)
        with torch.inference_mode():
            for places in batches_by_length(examples, batch_tokens):
                self._answer([examples[i] for i in places], places, found)
        return found

    def _answer(
        self,
        chunk: list[EncodedExample],
        places: list[int],
        found: list[NDArray[np.float32]],
    ) -> None:
        run = _begin(self._model, chunk)
        watch, last = ExitWatch(self.rule, self._task), self._model.model.encoder.num_depths
        while run.depth < last:
            run.advance()
            if run.depth < last and not watch.needs(run.depth):
                continue
            logits = run.logits().float().cpu().numpy()
            is_last = run.depth == last
            leave = np.ones(len(logits), np.bool_) if is_last else watch.leaving(run.depth, logits)
            if not leave.any():
                continue
            for row in np.flatnonzero(leave).tolist():
                found[places[run.sequences[row]]] = logits[row : row + 1]
            self.depths[run.depth - 1] += int(leave.sum())
            stay = np.flatnonzero(~leave).tolist()
            if not stay:
                break
            run.keep(stay)
        self.tokens[: len(run.tokens)] += np.asarray(run.tokens)


def set_exit(
    predictor: Predictor, folder: Path, *, depth: int | None = None, exit_when: str | None = None
) -> ExitRun | None:
    """Let a predictor run fewer depths, for all texts or for those that are answered before.

    Args:
        predictor: is changed.
        folder: where it was loaded from.
        depth: depths at most; None: all, or what `auto` found.
        exit_when: `patience=2`, `confidence=0.9`, `entropy=0.2` (see `parse_exit`), or `auto` for what
            `litebert exits` chose; None: no text leaves before.

    Returns:
        What counts the depths; None where no text leaves before the last.

    Raises:
        SettingsError: no such depth, rule, or task with exits; or `auto` where nothing was chosen.
        CheckpointError: a damaged `exits.json`.
    """
    rule: ExitRule | None = None
    if exit_when is not None:
        task = exit_task(predictor.task)
        if exit_when.strip() == "auto":
            rule, found = read_exit_rule(model_folder(folder))
            limits = [value for value in (depth, found) if value is not None]
            depth = min(limits, default=None)
        else:
            rule = parse_exit(exit_when)
        predictor.model.set_active_depth(depth, allow_idle=True)
        predictor.exits = None if rule is None else ExitRun(predictor.model, task, rule)
        return predictor.exits
    predictor.model.set_active_depth(depth, allow_idle=True)
    predictor.exits = None
    return None


def answers_of_all_depths(
    model: AlbertWithHead, examples: Sequence[EncodedExample], *, batch_tokens: int = 8192
) -> Float[np.ndarray, "L N C"]:
    """Return what the head says about each example after every depth.

    Raises:
        SettingsError: a head that answers only after the last depth.
    """
    depths = model.config.num_hidden_layers
    table = np.zeros((depths, len(examples), model.config.num_labels), np.float32)
    with torch.inference_mode():
        for places in batches_by_length(examples, batch_tokens):
            run = _begin(model, [examples[i] for i in places])
            for depth in range(depths):
                run.advance()
                table[depth, places] = run.logits().float().cpu().numpy()
    return table


def _begin(model: AlbertWithHead, chunk: list[EncodedExample]) -> Stepwise:
    batch: DeviceBatch = to_device(
        collate([replace(example, label=None) for example in chunk]),
        next(model.parameters()).device,
    )
    return Stepwise(model, batch.input_ids, batch.packing, batch.token_type_ids, batch.position_ids)
