"""Random numbers of one example: a function of its numbers, not of who asks when.

Philox is a counter-based generator with a published definition, and only uniform doubles are
taken from it, so that the numbers are the same on every machine and numpy version.
"""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["CORRUPTION", "SAMPLING", "example_rng"]

CORRUPTION: Final = 0
"""Stream of order and masking."""
SAMPLING: Final = 1
"""Stream of the tokens that a generator puts in."""


def example_rng(seed: int, epoch: int, index: int, stream: int = CORRUPTION) -> np.random.Generator:
    """Return the generator of one example in one epoch.

    Args:
        seed: of the run, in [0, 2**64).
        epoch: from 0.
        index: number of the example in its data set, from 0.
        stream: independent numbers for another purpose.

    Use nothing but `.random()`: its stream is fixed, that of other methods may change.
    Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
    """
    return np.random.Generator(np.random.Philox(key=[seed, epoch], counter=[0, 0, index, stream]))
