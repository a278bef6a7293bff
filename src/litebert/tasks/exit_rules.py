"""When an answer that a shallow depth gives is taken: patience, confidence, entropy. No torch.

Training, prediction and the runtime share this one definition; see `ExitRule` for what each
criterion means for classes, sets of labels and numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from litebert.errors import SettingsError
from litebert.tasks.classification import SequenceClassification

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from litebert.tasks.base import Task

__all__ = ["CRITERIA", "TOLERANCE", "Criterion", "ExitRule", "ExitWatch", "exit_task", "parse_exit"]

Criterion = Literal["patience", "confidence", "entropy"]
CRITERIA: Final[tuple[Criterion, ...]] = ("patience", "confidence", "entropy")
TOLERANCE: Final = 0.1
"""Usual tolerance of patience with numbers, in standard deviations of the training targets."""
_RANGES: Final = {
    "patience": "a whole number, 1 and more",
    "confidence": "more than 0, at most 1",
    "entropy": "0 and more, below 1",
}
_EXAMPLES: Final = "patience=2, confidence=0.9, entropy=0.2"


@dataclass(frozen=True, slots=True)
class ExitRule:
    """When a sequence has its answer and leaves.

    - patience t: the answer was the same at t + 1 depths in a row. Source: Zhou et al. 2020, BERT Loses
      Patience, section 3.2. Of classes the likeliest one; of sets of labels the whole set; numbers are
      the same where they differ by at most `tolerance` (there: section 3.3).
    - confidence p: the probability of the answer is at least p, with the task's temperature. Of sets of
      labels every yes and every no must be that certain. Numbers have none.
    - entropy e: the entropy of the distribution, divided by its largest value (log C), is at most e. Of
      sets of labels it is that of the least certain label. Numbers have none. Source: Xin et al. 2020,
      DeeBERT, section 3.2. Differs from it: divided by log C, so that a value means the same for any C.

    Attributes:
        criterion: one of these.
        threshold: t, p or e.
        tolerance: of patience with numbers, in standard deviations of the training targets.
        first_depth: no exit before this depth, >= 1.
    """

    criterion: Criterion
    threshold: float
    tolerance: float = TOLERANCE
    first_depth: int = 1

    def __post_init__(self) -> None:
        """Refuse values out of range.

        Raises:
            SettingsError: so they are.
        """
        if self.criterion not in CRITERIA:
            near = get_close_matches(str(self.criterion), CRITERIA, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SettingsError(
                f"exit criterion {str(self.criterion)!r:.60}; {hint}known: {', '.join(CRITERIA)}"
            )
        value = self.threshold
        is_right = {
            "patience": value >= 1 and value == int(value) if np.isfinite(value) else False,
            "confidence": 0 < value <= 1,
            "entropy": 0 <= value < 1,
        }[self.criterion]
        if not is_right:
            raise SettingsError(
                f"exit {self.criterion}={value:g}; allowed: {_RANGES[self.criterion]}"
            )
        if not 0 <= self.tolerance < np.inf:
            raise SettingsError(f"exit tolerance={self.tolerance:g}; allowed: 0 and more")
        if self.first_depth < 1:
            raise SettingsError(f"exit first={self.first_depth}; allowed: 1 and more")

    def __str__(self) -> str:
        """Return the rule as `parse_exit` reads it."""
        words = [f"{self.criterion}={self.threshold:g}"]
        if self.tolerance != TOLERANCE:
            words.append(f"tolerance={self.tolerance:g}")
        if self.first_depth != 1:
            words.append(f"first={self.first_depth}")
        return ",".join(words)


def parse_exit(text: str) -> ExitRule:
    """Read `patience=2`, `confidence=0.9` or `entropy=0.2`, with `,tolerance=0.05` and `,first=3`.

    Raises:
        SettingsError: something else.
    """
    values: dict[str, float] = {}
    for word in text.split(","):
        name, sign, value = (part.strip() for part in word.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = None
        if not sign or number is None or name in values:
            raise SettingsError(f"exit {text!r:.80}; give one of {_EXAMPLES}, or auto")
        values[name] = number
    extras = {name: values.pop(name) for name in ("tolerance", "first") if name in values}
    if len(values) != 1:
        raise SettingsError(
            f"exit {text!r:.80} names {len(values)} criteria; give one of {_EXAMPLES}"
        )
    ((criterion, threshold),) = values.items()
    first = extras.get("first", 1.0)
    if first != first or abs(first) >= 2**31 or first != int(first):
        raise SettingsError(f"exit first={first:g}; allowed: a whole number, 1 and more")
    return ExitRule(
        cast("Criterion", criterion),
        threshold,
        tolerance=extras.get("tolerance", TOLERANCE),
        first_depth=int(first),
    )


def exit_task(task: Task | None) -> SequenceClassification:
    """Return a task whose sequences can leave early.

    Raises:
        SettingsError: answers of this task are put together from tokens or from several sequences.
    """
    if not isinstance(task, SequenceClassification):
        name = "an encoder without a task" if task is None else f"task {task.name!r}"
        raise SettingsError(
            f"exits are for answers to one text or pair, not for {name}; for a fixed number of depths "
            "give --depth"
        )
    return task


class ExitWatch:
    """Follows the answers to some sequences from depth to depth, and says which of them leave.

    Its arrays are those of the sequences that are still there.
    """

    def __init__(self, rule: ExitRule, task: SequenceClassification) -> None:
        """Begin before the first depth.

        Args:
            rule: when a sequence leaves.
            task: what the logits mean.

        Raises:
            SettingsError: a criterion that numbers do not have.
        """
        if task.kind == "regression" and rule.criterion != "patience":
            raise SettingsError(
                f"exit {rule}: numbers have no {rule.criterion}; give patience, for example "
                "patience=2,tolerance=0.05"
            )
        self._rule, self._task = rule, task
        self._last: np.ndarray | None = None
        self._same = np.zeros(0, np.int64)

    def needs(self, depth: int) -> bool:
        """Whether the answers after this depth matter to the rule; if not, the head need not run."""
        return self._rule.criterion == "patience" or depth >= self._rule.first_depth

    def leaving(self, depth: int, logits: Float[np.ndarray, "n C"]) -> Bool[np.ndarray, " n"]:
        """Return which sequences leave after a depth.

        Args:
            depth: from 1 on; each depth that `needs` its answers, once, in order.
            logits: what the head says after it, a row for each sequence that is still there.

        Raises:
            DataError: logits that are not finite, or of another task.
        """
        rule = self._rule
        if rule.criterion == "patience":
            leave = self._patient(logits)
        else:
            p = self._task.probabilities(logits)
            if rule.criterion == "confidence":
                leave = self._certainty(p) >= rule.threshold
            else:
                leave = self._entropy(p) <= rule.threshold
        if depth < rule.first_depth:
            leave = np.zeros_like(leave)
        if self._last is not None:
            self._last, self._same = self._last[~leave], self._same[~leave]
        return leave

    def _patient(self, logits: Float[np.ndarray, "n C"]) -> Bool[np.ndarray, " n"]:
        answers = self._answers(logits)
        if self._last is None:
            self._same = np.zeros(len(answers), np.int64)
        else:
            gap = self._rule.tolerance if self._task.kind == "regression" else 0.0
            is_same = (np.abs(answers - self._last) <= gap).all(axis=1)
            self._same = np.where(is_same, self._same + 1, 0)
        self._last = answers
        return self._same >= self._rule.threshold

    def _answers(self, logits: Float[np.ndarray, "n C"]) -> Float[np.ndarray, "n K"]:
        """Class, 0/1 of each label, or the number in standard deviations."""
        task = self._task
        if task.kind == "regression":
            return (task.values(logits)[:, None] - task.target_mean) / task.target_scale
        p = task.probabilities(logits)
        if task.kind == "multilabel":
            return (p >= task.threshold).astype(np.float64)
        return p.argmax(axis=1)[:, None].astype(np.float64)

    def _certainty(self, p: Float[np.ndarray, "n C"]) -> Float[np.ndarray, " n"]:
        if self._task.kind != "multilabel":
            return p.max(axis=1)
        return np.where(p >= self._task.threshold, p, 1.0 - p).min(axis=1)

    def _entropy(self, p: Float[np.ndarray, "n C"]) -> Float[np.ndarray, " n"]:
        if self._task.kind != "multilabel":
            return _plogp(p).sum(axis=1) / np.log(p.shape[1])
        return (_plogp(p) + _plogp(1.0 - p)).max(axis=1) / np.log(2.0)


def _plogp(p: Any) -> Any:
    return -p * np.log(np.maximum(p, np.finfo(np.float64).tiny))
