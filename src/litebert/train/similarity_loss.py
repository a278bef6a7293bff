"""Losses of texts to compare: cosine against a score, and positives against in-batch negatives.

Vectors may be learnt so that their first numbers alone are good vectors too (Matryoshka): the loss
is the mean over the lengths that are named, each prefix scaled to length 1 anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from litebert.data.batch import Batch
from litebert.errors import DataError, SettingsError
from litebert.model.losses import LossTerm
from litebert.train.micro import DeviceBatch, forward_packed

__all__ = ["ContrastiveLoss", "CosineLoss", "prefixes", "text_bytes", "text_vectors"]

SCALE: Final = 20.0
"""Factor of cosines before the softmax, an inverse temperature."""


class CosineLoss:
    """Squared error of the cosine of two texts against their label.

    Source: Reimers and Gurevych 2019, the regression objective. Differs from sentence-transformers
    with Matryoshka: the mean over lengths, not the sum, so that the learning rate need not follow.
    """

    def __init__(self, dims: Sequence[int] = ()) -> None:
        self.weights = {"cosine_mse": 1.0}
        self._dims = tuple(dims)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of pairs.

        Raises:
            DataError: the batch has no scores.
        """
        if batch.labels is None:
            raise DataError("the training pairs have no scores; give a file with a score column")
        return {"cosine_mse": batch.num_examples}

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the summed loss of the pairs."""
        vectors = text_vectors(model, batch)
        firsts = _starts(batch)
        if len(vectors) != 2 * len(firsts) or batch.labels is None:
            raise DataError(
                f"{len(vectors)} texts for {len(firsts)} records; scored records are pairs of texts"
            )
        target = batch.labels.float()
        totals = [
            ((a[firsts] * a[firsts + 1]).sum(-1) - target).square().sum()
            for a in prefixes(vectors, self._dims)
        ]
        return (LossTerm("cosine_mse", torch.stack(totals).mean(), torch.tensor(len(firsts))),)


class ContrastiveLoss:
    """Cross-entropy of the right text among all texts of the step.

    Every positive and negative of the step is a candidate for every anchor. A candidate does not
    count as wrong where it is a right one all the same: the anchor's own text, the same text as its
    positive, or a positive of the same anchor text. Candidates are those of one process.

    Source: Henderson et al. 2017, Efficient Natural Language Response Suggestion (in-batch
    negatives); the losses of sentence-transformers of that kind, which do count such duplicates.
    """

    def __init__(
        self, *, scale: float = SCALE, is_symmetric: bool = False, dims: Sequence[int] = ()
    ) -> None:
        """Set it up.

        Args:
            scale: factor of the cosines, above 0.
            is_symmetric: whether the anchor of each positive must be found too; the mean of both.
            dims: lengths of vectors to learn besides the whole.
        """
        self.weights = {"contrastive": 1.0}
        self._scale, self._is_symmetric, self._dims = scale, is_symmetric, tuple(dims)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of anchors."""
        return {"contrastive": batch.num_examples}

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the summed loss of the anchors of a step that is not split."""
        return (self.compare(self.vectors(model, batch), [batch]),)

    def vectors(self, model: nn.Module, batch: DeviceBatch) -> Float[Tensor, "N H"]:
        """Return the vector of each text, of any length."""
        return text_vectors(model, batch)

    def compare(self, vectors: Float[Tensor, "N H"], batches: Sequence[DeviceBatch]) -> LossTerm:
        """Return the loss summed over the anchors of all micro-batches."""
        starts, offset = list[Tensor](), 0
        for batch in batches:
            starts.append(_starts(batch) + offset)
            offset += batch.packing.num_sequences
        anchors = torch.cat(starts)
        ids = np.concatenate([text_bytes(batch) for batch in batches])
        numbers = torch.from_numpy(_distinct(ids)).to(vectors.device)
        order = torch.cat([anchors + 1, _others(anchors, len(vectors))])
        wrong = _may_be_wrong(numbers, anchors, order)
        total = torch.stack(
            [self._total(a[anchors], a[order], wrong) for a in prefixes(vectors, self._dims)]
        ).mean()
        return LossTerm("contrastive", total, torch.tensor(len(anchors)))

    def _total(
        self,
        anchors: Float[Tensor, "G D"],
        candidates: Float[Tensor, "M D"],
        wrong: Bool[Tensor, "G M"],
    ) -> Tensor:
        with torch.autocast(anchors.device.type, enabled=False):
            scores = self._scale * anchors @ candidates.T  # 8 bits of a cosine are too few
        own = torch.arange(len(anchors), device=scores.device)
        forward = _cross_entropy(scores, wrong, own)
        if not self._is_symmetric:
            return forward
        back = slice(0, len(anchors))
        return (forward + _cross_entropy(scores[:, back].T, wrong[:, back].T, own)) / 2


def text_bytes(batch: DeviceBatch) -> np.ndarray:
    """Return the token ids of each sequence as an object array of bytes, [N]."""
    ids: np.ndarray = batch.input_ids.cpu().numpy()
    found = np.empty(batch.packing.num_sequences, object)
    for i, (start, length) in enumerate(
        zip(batch.packing.starts, batch.packing.lengths, strict=True)
    ):
        found[i] = ids[start : start + length].tobytes()
    return found


def _distinct(texts: np.ndarray) -> Int[np.ndarray, " N"]:
    places: dict[bytes, int] = {}
    return np.array([places.setdefault(text, len(places)) for text in texts], np.int64)


def text_vectors(model: nn.Module, batch: DeviceBatch) -> Float[Tensor, "N H"]:
    """Return the vector of each text of a batch, of any length.

    Raises:
        DataError: a model without the head `embedding`.
    """
    output: Any = forward_packed(model, batch, labels=None).logits
    if not isinstance(output, Tensor) or len(output) != batch.packing.num_sequences:
        raise DataError("texts are compared by their vectors; the model needs the head 'embedding'")
    return output


def _starts(batch: DeviceBatch) -> Int[Tensor, " G"]:
    """First sequence of each record."""
    sizes = batch.group_sizes
    if sizes is None or int(sizes.min()) < 2:
        raise DataError("every record to compare needs two texts and more")
    return sizes.cumsum(0) - sizes


def _others(anchors: Int[Tensor, " G"], count: int) -> Int[Tensor, " K"]:
    """Sequences that are neither an anchor nor a positive."""
    is_other = torch.ones(count, dtype=torch.bool, device=anchors.device)
    is_other[anchors] = False
    is_other[anchors + 1] = False
    return is_other.nonzero()[:, 0]


def _may_be_wrong(
    numbers: Int[Tensor, " N"], anchors: Int[Tensor, " G"], order: Int[Tensor, " M"]
) -> Bool[Tensor, "G M"]:
    """Whether candidate j is a negative of anchor i: no text that is right for it."""
    own, positive, candidate = numbers[anchors], numbers[anchors + 1], numbers[order]
    right = (candidate == own[:, None]) | (candidate == positive[:, None])
    same_anchor = own[:, None] == own[None, :]  # [G, G]
    # A positive of an equal anchor is right, wherever its text stands among the candidates.
    shared = (positive[:, None] == candidate[None, :]).float()  # [G, M]
    return ~(right | ((same_anchor.float() @ shared) > 0))


def _cross_entropy(
    scores: Float[Tensor, "G M"], wrong: Bool[Tensor, "G M"], own: Int[Tensor, " G"]
) -> Tensor:
    keep = wrong.clone()
    keep[own, own] = True
    masked = scores.float().masked_fill(~keep, torch.finfo(torch.float32).min)
    return functional.cross_entropy(masked, own, reduction="sum")


def prefixes(vectors: Float[Tensor, "N H"], dims: Sequence[int]) -> list[Float[Tensor, "N D"]]:
    """Return the vectors and their prefixes, each scaled to length 1.

    Raises:
        SettingsError: a prefix that is longer than the vectors.
    """
    width = int(vectors.shape[1])
    if any(not 1 <= dim <= width for dim in dims):
        raise SettingsError(f"dims are {list(dims)}, but vectors have {width} numbers")
    lengths = sorted({*dims, width}, reverse=True)
    return [functional.normalize(vectors[:, :dim].float(), dim=-1) for dim in lengths]
