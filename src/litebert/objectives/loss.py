"""The loss of pretraining: one pass of the encoder, every objective's term from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import SettingsError
from litebert.model.chunked_loss import chunked_scores
from litebert.model.heads import MlmHead
from litebert.model.losses import LossTerm, cross_entropy
from litebert.model.packing import Packing
from litebert.objectives.base import IGNORED, NO_LABEL, Objective
from litebert.objectives.compose import ObjectiveSettings, make_objectives
from litebert.objectives.examples import ExampleMaker

__all__ = ["PretrainingLoss", "TensorBatch"]


class TensorBatch(Protocol):
    """What is used of a batch on the device."""

    @property
    def input_ids(self) -> Tensor:
        """[T] corrupted ids."""
        ...

    @property
    def packing(self) -> Packing:
        """Bounds of the sequences."""
        ...

    @property
    def token_type_ids(self) -> Tensor:
        """[T] segment of each token."""
        ...

    @property
    def position_ids(self) -> Tensor:
        """[T] place of each token in its sequence."""
        ...

    @property
    def labels(self) -> Tensor | None:
        """[T] original ids at predicted places, -100 elsewhere."""
        ...

    @property
    def order_labels(self) -> Tensor | None:
        """[N] 0, 1, or -100; None: none."""
        ...

    @property
    def example_index(self) -> Any:
        """[N] sample numbers, on the host."""
        ...


class PretrainingLoss:
    """Sums and counts of the loss terms of a model with the heads that the objectives need.

    Attributes:
        settings: the objectives.
        weights: term -> weight in the loss.
    """

    def __init__(
        self, settings: ObjectiveSettings, *, seed: int = 0, maker: ExampleMaker | None = None
    ) -> None:
        """Make the loss.

        Args:
            settings: the objectives.
            seed: of the run; decides which tokens a generator puts in.
            maker: made the examples; with it, `measure` scores whole words too.
        """
        self.settings = settings
        self.seed = seed
        self.maker = maker
        self.weights: dict[str, float] = settings.weights
        self._objectives: dict[str, Objective] = {
            objective.name: objective for objective in make_objectives(settings)
        }

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of targets of each term."""
        return {name: self._objectives[name].count(batch) for name in self.weights}

    def __call__(self, model: nn.Module, batch: TensorBatch) -> tuple[LossTerm, ...]:
        """Return the sum and count of each term; the encoder runs once.

        Raises:
            SettingsError: the model lacks a head that an objective needs.
        """
        hidden, pooled = self._encode(model, batch)
        terms: list[LossTerm] = []
        if self.settings.has_mlm:
            places, targets = _predicted(batch)
            head, table = _mlm_head(model)
            total = head.loss(hidden.index_select(0, places), table, targets)
            count = torch.tensor(len(targets), device=hidden.device)
            terms.append(LossTerm("mlm", total, count))
        if self.settings.has_order:
            logits, labels = self._order(model, pooled, batch)
            terms.append(cross_entropy(self.settings.order.kind, logits, labels))
        return tuple(terms)

    @torch.no_grad()
    def measure(self, model: nn.Module, batch: TensorBatch) -> dict[str, float]:
        """Return sums for an evaluation, to be added up over batches and divided at the end.

        `mlm_loss_sum / mlm_count` is the loss in nats a token, `mlm_correct / mlm_count` the
        accuracy; `word_loss_sum / word_count` the loss a hidden word, whose exponential is the
        perplexity of masked words, and `word_correct` the words whose tokens are all right;
        `sop_...` (or `nsp_...`) the same for the order.

        Raises:
            SettingsError: the model lacks a head that an objective needs.
        """
        hidden, pooled = self._encode(model, batch)
        sums: dict[str, float] = {}
        if self.settings.has_mlm:
            places, targets = _predicted(batch)
            head, table = _mlm_head(model)
            inner = head.transform(hidden.index_select(0, places))
            scores = chunked_scores(inner, table, head.bias, targets)
            is_right = scores.best == targets
            sums["mlm_loss_sum"] = float(scores.loss.double().sum())
            sums["mlm_correct"] = float(is_right.sum())
            sums["mlm_count"] = float(len(targets))
            if self.maker is not None:
                words = _words_of(self.maker, batch, places)
                sums |= _word_sums(words, scores.loss, is_right)
        if self.settings.has_order:
            logits, labels = self._order(model, pooled, batch)
            kind = self.settings.order.kind
            term = cross_entropy(kind, logits, labels)
            sums[f"{kind}_loss_sum"] = float(term.total)
            sums[f"{kind}_correct"] = float((logits.argmax(1) == labels).sum())
            sums[f"{kind}_count"] = float(term.count)
        return sums

    def _encode(self, model: nn.Module, batch: TensorBatch) -> tuple[Tensor, Tensor | None]:
        encoder: Any = model.model
        output = encoder.forward_packed(
            batch.input_ids, batch.packing, batch.token_type_ids, batch.position_ids
        )
        return output.last_hidden_state, output.pooler_output

    def _order(
        self, model: nn.Module, pooled: Tensor | None, batch: TensorBatch
    ) -> tuple[Tensor, Tensor]:
        head = _heads(model).get("sentence_order")
        if head is None or pooled is None:
            raise SettingsError(
                f'{self.settings.order.kind} needs a model with the head "pretraining" or '
                '"sentence_order"; make one, or set order = "none"'
            )
        logits: Tensor = head(pooled)
        labels = batch.order_labels
        if labels is None:
            labels = torch.full((len(pooled),), NO_LABEL, device=pooled.device)
        return logits, labels


def _heads(model: nn.Module) -> Mapping[str, nn.Module]:
    return cast(Mapping[str, nn.Module], dict(cast(nn.ModuleDict, model.heads).items()))


def _mlm_head(model: nn.Module) -> tuple[MlmHead, Tensor]:
    head = _heads(model).get("mlm")
    if not isinstance(head, MlmHead):
        raise SettingsError(
            'mlm needs a model with the head "pretraining" or "mlm"; make one, or set '
            "mlm.weight = 0"
        )
    encoder: Any = model.model
    return head, encoder.embeddings.token.weight


def _predicted(batch: TensorBatch) -> tuple[Tensor, Tensor]:
    """Places [P] where something is predicted, and the ids [P] there."""
    if batch.labels is None:
        empty = batch.input_ids.new_zeros(0)
        return empty, empty
    places = (batch.labels != IGNORED).nonzero().view(-1)
    return places, batch.labels.index_select(0, places)


def _words_of(maker: ExampleMaker, batch: TensorBatch, places: Tensor) -> Tensor:
    """Number of the word that each place belongs to, [P], rising."""
    begins = [maker.word_begins(*divmod(int(n), len(maker.index))) for n in batch.example_index]
    parts = zip(batch.packing.starts, begins, strict=True)
    starts = np.concatenate([part + start for start, part in parts])
    words = np.searchsorted(starts, places.cpu().numpy(), "right")
    return torch.from_numpy(words).to(places.device)


def _word_sums(words: Tensor, loss: Tensor, is_right: Tensor) -> dict[str, float]:
    unique, place = words.unique_consecutive(return_inverse=True)
    wrong = torch.zeros(len(unique), device=loss.device).index_add_(0, place, (~is_right).float())
    return {
        "word_loss_sum": float(loss.double().sum()),
        "word_correct": float((wrong == 0).sum()),
        "word_count": float(len(unique)),
    }
