"""One pass of the generator: what it puts in, and how well the discriminator finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from litebert.errors import SettingsError
from litebert.model.chunked_loss import ChunkedScores, chunked_cross_entropy, chunked_scores
from litebert.model.heads import MlmHead
from litebert.objectives.randomness import SAMPLING, example_rng
from litebert.objectives.rtd_model import RtdModel
from litebert.objectives.tensors import TensorBatch, predicted

__all__ = ["Replacement", "replaced_loss", "replaced_sums", "rtd_model", "run_generator"]


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """What the generator did.

    Attributes:
        loss: its summed cross-entropy at the hidden places, with gradient.
        places: [P] hidden places.
        targets: [P] original ids there.
        scores: loss, best and drawn id of each place, without gradient.
        ids: [T] the text with the drawn ids in it.
        is_replaced: [T] whether a token differs from the original.
    """

    loss: Tensor
    places: Tensor
    targets: Tensor
    scores: ChunkedScores
    ids: Tensor
    is_replaced: Tensor


def rtd_model(model: nn.Module) -> RtdModel:
    """Return the model as what it must be.

    Raises:
        SettingsError: it has no generator.
    """
    if not isinstance(model, RtdModel):
        raise SettingsError(
            f"rtd needs a model with a generator, got {type(model).__name__}; make it with "
            "make_pretraining_model, or leave rtd out"
        )
    return model


def run_generator(model: RtdModel, batch: TensorBatch, seed: int) -> Replacement:
    """Fill the hidden places with tokens drawn from the generator.

    The uniform numbers of each example come from (seed, sample number) alone, so that ranks,
    workers and micro-batches do not matter (beyond the rounding of the generator's own logits).
    """
    places, targets = predicted(batch)
    hidden = model.generator_hidden(
        batch.input_ids, batch.packing, batch.token_type_ids, batch.position_ids
    )
    head, table = cast(MlmHead, model.heads["mlm"]), model.generator_table
    inner = head.transform(hidden.index_select(0, places))
    loss = chunked_cross_entropy(inner, table, head.bias, targets)
    uniforms = torch.from_numpy(_uniforms(batch, places, seed)).to(places.device)
    scores = chunked_scores(inner, table, head.bias, targets, uniforms)
    drawn = cast(Tensor, scores.drawn)
    original = batch.input_ids.index_put((places,), targets)
    ids = batch.input_ids.index_put((places,), drawn)
    return Replacement(loss, places, targets, scores, ids, ids != original)


def replaced_loss(model: RtdModel, hidden: Tensor, made: Replacement) -> Tensor:
    """Return the binary cross-entropy summed over all tokens, in nats.

    Source: Clark et al. 2020, section 2.
    """
    logits: Tensor = model.heads["replaced"](hidden)
    return functional.binary_cross_entropy_with_logits(
        logits.float(), made.is_replaced.float(), reduction="sum"
    )


def replaced_sums(model: RtdModel, hidden: Tensor, made: Replacement) -> dict[str, float]:
    """Return the sums that `PretrainingLoss.measure` names `rtd_...`."""
    is_suspected = model.heads["replaced"](hidden) > 0
    return {
        "rtd_loss_sum": float(replaced_loss(model, hidden, made)),
        "rtd_correct": float((is_suspected == made.is_replaced).sum()),
        "rtd_count": float(len(made.ids)),
        "rtd_replaced": float(made.is_replaced.sum()),
        "rtd_found": float((is_suspected & made.is_replaced).sum()),
    }


def _uniforms(batch: TensorBatch, places: Tensor, seed: int) -> np.ndarray:
    """Return a number in [0, 1) for each place, [P]."""
    bounds = np.asarray([*batch.packing.starts, batch.packing.num_tokens])
    counts = np.diff(np.searchsorted(places.cpu().numpy(), bounds))
    drawn = [
        example_rng(seed, 0, int(sample), SAMPLING).random(int(count))
        for sample, count in zip(batch.example_index, counts, strict=True)
    ]
    return np.concatenate(drawn)
