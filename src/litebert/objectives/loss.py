"""The loss of pretraining: one pass of the encoder, every objective's term from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import SettingsError
from litebert.model.chunked_loss import ChunkedScores, chunked_scores
from litebert.model.heads import MlmHead
from litebert.model.losses import LossTerm, cross_entropy
from litebert.objectives.base import NO_LABEL, Objective
from litebert.objectives.compose import ObjectiveSettings, make_objectives
from litebert.objectives.examples import ExampleMaker
from litebert.objectives.replaced import replaced_loss, replaced_sums, rtd_model, run_generator
from litebert.objectives.tensors import TensorBatch, predicted

__all__ = ["PretrainingLoss"]


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
        """Return the sum and count of each term; encoder (and generator) run once.

        Raises:
            SettingsError: the model lacks a head that an objective needs.
        """
        if self.settings.has_rtd:
            return self._discriminate(model, batch)
        hidden, pooled = _encode(model, batch, batch.input_ids)
        terms: list[LossTerm] = []
        if self.settings.has_mlm:
            places, targets = predicted(batch)
            head, table = _mlm_head(model)
            total = head.loss(hidden.index_select(0, places), table, targets)
            terms.append(LossTerm("mlm", total, _count(len(targets), total)))
        if self.settings.has_order:
            terms.append(self._order_term(model, pooled, batch)[0])
        return tuple(terms)

    def _discriminate(self, model: nn.Module, batch: TensorBatch) -> tuple[LossTerm, ...]:
        made = run_generator(rtd_model(model), batch, self.seed)
        hidden, pooled = _encode(model, batch, made.ids)
        found = replaced_loss(rtd_model(model), hidden, made)
        terms = [
            LossTerm("mlm", made.loss, _count(len(made.targets), made.loss)),
            LossTerm("rtd", found, _count(len(made.ids), found)),
        ]
        if self.settings.has_order:
            terms.append(self._order_term(model, pooled, batch)[0])
        return tuple(terms)

    @torch.no_grad()
    def measure(self, model: nn.Module, batch: TensorBatch) -> dict[str, float]:
        """Return sums for an evaluation, to be added up over batches and divided at the end.

        `mlm_loss_sum / mlm_count` is the loss in nats a token, `mlm_correct / mlm_count` the
        accuracy; `word_loss_sum / word_count` the loss a hidden word, whose exponential is the
        perplexity of masked words, and `word_correct` the words whose tokens are all right;
        `sop_...` (or `nsp_...`) and `rtd_...` likewise; `rtd_replaced` counts tokens that were
        replaced and `rtd_found` those of them that were found.

        Raises:
            SettingsError: the model lacks a head that an objective needs.
        """
        sums: dict[str, float] = {}
        if self.settings.has_rtd:
            made = run_generator(rtd_model(model), batch, self.seed)
            sums |= self._mlm_sums(batch, made.places, made.targets, made.scores)
            hidden, pooled = _encode(model, batch, made.ids)
            sums |= replaced_sums(rtd_model(model), hidden, made)
        else:
            hidden, pooled = _encode(model, batch, batch.input_ids)
            if self.settings.has_mlm:
                places, targets = predicted(batch)
                head, table = _mlm_head(model)
                inner = head.transform(hidden.index_select(0, places))
                scores = chunked_scores(inner, table, head.bias, targets)
                sums |= self._mlm_sums(batch, places, targets, scores)
        if self.settings.has_order:
            term, logits, labels = self._order_term(model, pooled, batch)
            sums[f"{term.name}_loss_sum"] = float(term.total)
            sums[f"{term.name}_correct"] = float((logits.argmax(1) == labels).sum())
            sums[f"{term.name}_count"] = float(term.count)
        return sums

    def _mlm_sums(
        self, batch: TensorBatch, places: Tensor, targets: Tensor, scores: ChunkedScores
    ) -> dict[str, float]:
        is_right = scores.best == targets
        sums = {
            "mlm_loss_sum": float(scores.loss.double().sum()),
            "mlm_correct": float(is_right.sum()),
            "mlm_count": float(len(targets)),
        }
        if self.maker is not None:
            words = _words_of(self.maker, batch, places)
            sums |= _word_sums(words, scores.loss, is_right)
        return sums

    def _order_term(
        self, model: nn.Module, pooled: Tensor | None, batch: TensorBatch
    ) -> tuple[LossTerm, Tensor, Tensor]:
        kind, head = self.settings.order.kind, _heads(model).get("sentence_order")
        if head is None or pooled is None:
            raise SettingsError(
                f'{kind} needs a model with the head "pretraining" or "sentence_order"; make one, '
                'or set order = "none"'
            )
        logits: Tensor = head(pooled)
        labels = batch.order_labels
        if labels is None:
            labels = torch.full((len(pooled),), NO_LABEL, device=pooled.device)
        return cross_entropy(kind, logits, labels), logits, labels


def _encode(model: nn.Module, batch: TensorBatch, ids: Tensor) -> tuple[Tensor, Tensor | None]:
    encoder: Any = model.model
    output = encoder.forward_packed(ids, batch.packing, batch.token_type_ids, batch.position_ids)
    return output.last_hidden_state, output.pooler_output


def _count(number: int, like: Tensor) -> Tensor:
    return torch.tensor(number, device=like.device)


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
