"""Masked language model: hide whole words and runs of words, predict their tokens."""

from __future__ import annotations

from functools import cache
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from litebert.data.batch import Batch
from litebert.objectives.base import IGNORED, OBJECTIVES, Draft, Objective
from litebert.settings import Settings

__all__ = ["MaskedLanguageModel", "MlmSettings"]


class MlmSettings(Settings):
    """How tokens are hidden.

    Source of the defaults: Lan et al. 2020, section 4.1; official `create_pretraining_data.py`.
    """

    weight: float = Field(default=1.0, ge=0.0)
    """Weight of the loss; 0: nothing is masked."""
    mask_fraction: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Part of the tokens of an example that is predicted (at the start, if the schedule is linear)."""
    schedule: Literal["constant", "linear"] = "constant"
    """How that part moves with the progress of training."""
    end_fraction: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The part at the end of training, for `linear`."""
    max_ngram: int = Field(default=3, ge=1, le=16)
    """Longest run of words hidden together; a run of n has a probability proportional to 1/n."""
    mask_prob: float = Field(default=0.8, ge=0.0, le=1.0)
    """Probability that a chosen token becomes [MASK]."""
    random_prob: float = Field(default=0.1, ge=0.0, le=1.0)
    """Probability that a chosen token becomes a random one; the rest stays as it is."""
    max_predictions: int | None = Field(default=None, ge=1)
    """Most predictions of an example; None: no limit."""
    google_compatible: bool = False
    """As the published models: at most 20 predictions whatever the length (so about 3.9 % at 512
    tokens), and special tokens counted when the fraction is taken."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mask_prob + self.random_prob > 1.0:
            raise ValueError(
                f"mask_prob {self.mask_prob} and random_prob {self.random_prob} exceed 1 together"
            )
        if (self.schedule == "linear") != (self.end_fraction is not None):
            raise ValueError('end_fraction belongs to schedule = "linear": give both or neither')
        return self

    @property
    def prediction_limit(self) -> int | None:
        """Most predictions of an example, the published 20 under `google_compatible`."""
        return self.max_predictions or (20 if self.google_compatible else None)

    def fraction(self, progress: float) -> float:
        """Return the part of tokens to predict at a progress in [0, 1]."""
        if self.end_fraction is None:
            return self.mask_fraction
        return self.mask_fraction + (self.end_fraction - self.mask_fraction) * progress

    def budget(self, draft: Draft, progress: float) -> int:
        """Return how many tokens of an example may be predicted, at least 1."""
        tokens = len(draft.ids) if self.google_compatible else draft.num_maskable
        wanted = max(1, round(self.fraction(progress) * tokens))
        limit = self.prediction_limit
        return wanted if limit is None else min(wanted, limit)


@OBJECTIVES.register("mlm")
class MaskedLanguageModel(Objective):
    """Whole words, in runs of up to `max_ngram`, until the budget is spent.

    Words come in random order; each one begins a run, whose length is drawn with p(n) ~ 1/n and
    shortened until it fits into the budget and meets no hidden word. Nothing exceeds the budget;
    it is spent exactly unless every word left is longer than what is left. Runs stay inside one
    segment.

    Source: official `create_pretraining_data.py`, `create_masked_lm_predictions`.
    Differs from it: a run that meets a hidden word is shortened instead of dropped; runs do not
    reach over [SEP]; words come from the text, not from the letters a to z.
    """

    name = "mlm"

    def __init__(self, settings: MlmSettings) -> None:
        self.settings = settings

    def corrupt(self, draft: Draft, rng: np.random.Generator, progress: float) -> None:
        """Choose tokens, note them as labels, and hide them."""
        positions = self.choose(draft, rng, progress)
        if not positions:
            return
        chosen = np.asarray(positions, np.int64)
        chosen.sort()
        kind, drawn = rng.random((2, len(chosen)))
        original = draft.ids[chosen]
        draft.labels[chosen] = original
        settings = self.settings
        is_random = kind < settings.mask_prob + settings.random_prob
        replaced = np.where(is_random, draft.tokens.draw(drawn), original)
        replaced[kind < settings.mask_prob] = draft.tokens.mask
        draft.ids[chosen] = replaced

    def choose(self, draft: Draft, rng: np.random.Generator, progress: float) -> list[int]:
        """Return the places to predict, in no order."""
        order, lengths = rng.random((2, len(draft.word_begins)))
        begins, ends = draft.word_begins.tolist(), draft.word_ends.tolist()
        last_words = draft.last_words.tolist()
        left = self.settings.budget(draft, progress)
        hidden = bytearray(len(begins))
        places: list[int] = []
        for word in np.argsort(order, kind="stable").tolist():
            if hidden[word]:
                continue
            begin = begins[word]
            if ends[word] - begin > left:
                continue
            most = min(self.settings.max_ngram, last_words[word] - word + 1)
            run = _draw_run(float(lengths[word]), most)
            while run > 1 and (
                ends[word + run - 1] - begin > left or any(hidden[word + 1 : word + run])
            ):
                run -= 1
            end = ends[word + run - 1]
            hidden[word : word + run] = b"\1" * run
            places.extend(range(begin, end))
            left -= end - begin
            if left <= 0:
                break
        return places

    def count(self, batch: Batch) -> int:
        """Return the number of tokens to predict."""
        return 0 if batch.labels is None else int((batch.labels != IGNORED).sum())


@cache
def _run_bounds(most: int) -> tuple[float, ...]:
    """Upper bounds of the cumulative distribution p(n) ~ 1/n over 1..most, the last left out."""
    weights = 1.0 / np.arange(1, most + 1)
    return tuple((np.cumsum(weights) / weights.sum())[:-1].tolist())


def _draw_run(uniform: float, most: int) -> int:
    run = 1
    for bound in _run_bounds(most):
        run += uniform >= bound
    return run
