"""A loss that compares the examples of a batch with each other, in bounded memory.

Such a loss cannot be a sum over micro-batches. So all vectors are computed first without a graph,
then the gradient of the loss by each vector, and last each micro-batch once more, with a graph, to
take that gradient on to the weights: the gradient of the whole batch at the price of one more
forward pass. Source: Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size (GradCache).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.model.losses import LossTerm

__all__ = ["ComparingLoss", "TwoPassLoss"]


@runtime_checkable
class ComparingLoss(Protocol):
    """A step loss whose terms depend on all vectors of the step together."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Term name -> weight."""
        ...

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return how many targets each term has in `batch`."""
        ...

    def vectors(self, model: nn.Module, batch: Any) -> Float[Tensor, "N H"]:
        """Return the vector of each sequence of a micro-batch."""
        ...

    def compare(self, vectors: Float[Tensor, "N H"], batches: Sequence[Any]) -> LossTerm:
        """Return the one term, summed over the targets of all micro-batches."""
        ...


@dataclass(slots=True)
class _Part:
    """What the second pass of one micro-batch needs."""

    random_state: tuple[Tensor, Tensor | None]
    slope: Tensor
    """[n, H] gradient of the term by the vectors."""
    share: Tensor
    """This part's share of the term, a scalar."""
    count: Tensor


class TwoPassLoss:
    """A `StepLoss` for the micro-batches of one step; they must be gone through in order, once."""

    def __init__(self, loss: ComparingLoss, model: nn.Module, batches: Sequence[Any]) -> None:
        """Do the first pass.

        Args:
            loss: what compares.
            model: as it is trained, with its dropout.
            batches: all micro-batches of the step, on the device.
        """
        self.weights = loss.weights
        self._loss = loss
        device = next(model.parameters()).device
        states: list[tuple[Tensor, Tensor | None]] = []
        pieces: list[Tensor] = []
        with torch.no_grad():
            for batch in batches:
                states.append(_random_state(device))
                pieces.append(loss.vectors(model, batch).float())
        vectors = torch.cat(pieces).requires_grad_()
        with torch.enable_grad():
            term = loss.compare(vectors, batches)
        (slope,) = torch.autograd.grad(term.total, vectors)
        slopes = torch.split(slope, [len(piece) for piece in pieces])
        share, count = term.total.detach() / len(batches), term.count / len(batches)
        self._parts = [
            _Part(state, part, share, count) for state, part in zip(states, slopes, strict=True)
        ]
        self._name, self._device, self._next = term.name, device, 0

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return how many targets each term has in `batch`."""
        return self._loss.counts(batch)

    def __call__(self, model: nn.Module, batch: Any) -> tuple[LossTerm, ...]:
        """Return a term with the value of this share and the gradient of the whole."""
        part = self._parts[self._next]
        self._next += 1
        # The same dropout as in the first pass: the slope belongs to those very vectors.
        _set_random_state(part.random_state, self._device)
        vectors = self._loss.vectors(model, batch)
        pull = (vectors.float() * part.slope).sum()
        return (LossTerm(self._name, part.share + pull - pull.detach(), part.count),)


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    is_cuda = device.type == "cuda"
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if is_cuda else None


def _set_random_state(state: tuple[Tensor, Tensor | None], device: torch.device) -> None:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1], device)
