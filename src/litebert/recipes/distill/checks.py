"""How near a student is to its teacher: losses on held-out texts, correlations on scored pairs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from litebert.data.batch import Batch, collate, split_batch
from litebert.data.readers import ReadOptions
from litebert.errors import SettingsError
from litebert.objectives.distill import DistillLoss
from litebert.recipes.distill.settings import DistillCheck
from litebert.tasks.records import RECORD_KINDS, Feature, RecordTask
from litebert.train.evaluate import Evaluation, predict_outputs
from litebert.train.micro import to_device
from litebert.train.precision import Precision
from litebert.train.stop import StopRequest

if TYPE_CHECKING:
    from litebert.compress.teacher_cache import TextSet
    from litebert.text.tokenizer import Tokenizer

__all__ = ["DistillEvaluator", "PairCheck", "make_check"]


@dataclass(frozen=True, slots=True, eq=False)
class PairCheck:
    """Pairs with scores, encoded.

    Attributes:
        name: what its score is called.
        task: scores answers.
        records: the pairs.
        features: the same as token ids.
    """

    name: str
    task: RecordTask
    records: Sequence[Any]
    features: list[Feature]

    def score(self, model: nn.Module, stop: StopRequest | None = None) -> float | None:
        """Return the Spearman correlation of cosines and scores; None when stopped."""
        encoded = [feature.encoded for feature in self.features]
        outputs = predict_outputs(model, encoded, stop=stop)
        if outputs is None:
            return None
        answers = self.task.answers(self.records, self.features, outputs)
        return self.task.evaluate(self.records, answers)["spearman"]


def make_check(check: DistillCheck, tokenizer: Tokenizer) -> PairCheck:
    """Read and encode the pairs of a check.

    Raises:
        DataError: the file cannot be used.
        SettingsError: no such part.
    """
    kind = RECORD_KINDS.get(check.kind)
    source: Any = kind.read(Path(check.path), ReadOptions(), True)
    part = {"train": source.train, "eval": source.eval, "test": source.test}[check.split]
    if part is None:
        raise SettingsError(f"checks: {check.path} has no part {check.split!r}")
    every = -(-len(part.records) // check.max_records)
    records = part.records[::every]  # files are often sorted by where the pairs are from
    task = kind.make_task(records, {"max_length": 128})
    features = task.features(records, tokenizer, labelled=False)
    return PairCheck(f"{check.kind}_{check.split}_spearman", task, records, features)


class DistillEvaluator:
    """Scores a student: an `Evaluate`. The score is minus the weighted loss on held-out texts."""

    def __init__(
        self,
        texts: TextSet,
        numbers: Sequence[int],
        loss: DistillLoss,
        checks: Sequence[PairCheck],
        *,
        batch_tokens: int,
        precision: Precision,
    ) -> None:
        self._batch: Batch = collate([texts.example(n) for n in numbers])
        self._loss, self.checks = loss, tuple(checks)
        self._batch_tokens, self._precision = batch_tokens, precision

    def __call__(self, model: nn.Module, stop: StopRequest) -> Evaluation | None:
        """Return the mean of each term, and each check; None when a stop was requested."""
        start = time.monotonic()
        device = next(model.parameters()).device
        sums: dict[str, float] = {}
        counts: dict[str, float] = {}
        was_training = model.training
        model.eval()
        try:
            for micro in split_batch(self._batch, self._batch_tokens):
                if stop.is_requested:
                    return None
                with torch.inference_mode(), self._precision.autocast():
                    for term in self._loss(model, to_device(micro, device)):
                        sums[term.name] = sums.get(term.name, 0.0) + float(term.total)
                        counts[term.name] = counts.get(term.name, 0.0) + float(term.count)
            metrics = {f"{name}_loss": sums[name] / counts[name] for name in sums}
            score = -sum(w * metrics[f"{name}_loss"] for name, w in self._loss.weights.items())
            for check in self.checks:
                found = check.score(model, stop)
                if found is None:
                    return None
                metrics[check.name] = found
        finally:
            model.train(was_training)
        return Evaluation(score, {"score": score, **metrics}, seconds=time.monotonic() - start)
