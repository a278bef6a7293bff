"""Questions answered by a part of a passage: SQuAD 1.1, and SQuAD 2.0 with questions without answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, cast

from pydantic import Field

from litebert.data.squad import Question, read_squad
from litebert.errors import DataError
from litebert.tasks.base import TASKS
from litebert.tasks.records import RECORD_KINDS, Answer, RecordKind
from litebert.tasks.span_baselines import constant_baseline, has_few_blanks, sentence_baselines
from litebert.tasks.span_decode import class_logits
from litebert.tasks.span_faults import span_faults
from litebert.tasks.span_files import nbest_rows, to_file
from litebert.tasks.span_task import MAX_SHOWN, Found, PassageTask, build_task, require_labels
from litebert.tasks.span_threshold import fit_threshold
from litebert.tasks.span_windows import Asked
from litebert.tasks.squad_scores import (
    best_over,
    character_f1,
    f1_or_empty,
    squad_scores,
    squad_v2_scores,
)

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from litebert.tasks.baselines import Baseline
    from litebert.tasks.records import Feature, RecordTask
    from litebert.tasks.span_decode import SpanAnswer

__all__ = ["SquadTask", "SquadV2Task"]

ALTERNATIVES: Final = 2
"""Further answers that `predict` shows."""
NOTHING: Final = ""
"""Answer to a question that has none."""
_EXAMPLES: Final = 200
"""Passages that are looked at to tell the script."""


class _Squad(PassageTask):
    """What both versions share."""

    unit: Literal["words", "characters"] = "words"
    """What F1 counts in languages; characters add `f1_characters`, for scripts without blanks."""

    def asked(self, record: Question, *, labelled: bool) -> Asked | None:
        """Return question and passage, and with `labelled` the place of the first answer."""
        parts = (record.question,)
        if not labelled:
            return Asked(parts, record.context)
        nothing, something = ((1,), (0,)) if self.is_joint else ((), ())
        if record.is_impossible:
            return Asked(parts, record.context, None, nothing)
        answer = next((answer for answer in record.answers if answer.is_located), None)
        if answer is None:
            return None
        return Asked(parts, record.context, (answer.start, answer.end), something, nothing)

    def from_text(self, text: str, pair: str | None = None) -> Question:
        """Return a question with its passage (the second text) as a record, for `predict`.

        Raises:
            DataError: no passage.
        """
        if pair is None:
            raise DataError("a question needs a passage that it is answered from: --pair PASSAGE")
        return Question("1", text, pair, (), False, "1", Path("<text>"), 1)

    def show(self, record: Question) -> dict[str, Any]:
        """Return what identifies and explains a question."""
        return {
            "id": record.id,
            "question": record.question,
            "context": record.context[:MAX_SHOWN],
            "label": _label(record),
            "file": str(record.path),
            "line": record.line,
        }

    def baselines(
        self, train: Sequence[Question], evaluation: Sequence[Question]
    ) -> list[Baseline]:
        """Return the first sentence, the most similar one, and no answer where that can be right."""
        del train
        found: list[Baseline] = []
        if any(record.is_impossible for record in evaluation):
            answer = Answer(NOTHING, 1.0)
            found.append(
                constant_baseline("no_answer", "never an answer", answer, evaluation, self.evaluate)
            )
        return found + sentence_baselines(evaluation, self.evaluate)

    def faults(self, records: Sequence[Question], answers: Sequence[Answer]) -> list[str]:
        """Return what looks like a collapse."""
        return span_faults(
            NOTHING,
            answers,
            can_be_nothing=self.is_joint,
            some_have_answers=any(record.answers for record in records)
            or not any(record.is_labelled for record in records),
        )

    @abstractmethod
    def evaluate(self, records: Sequence[Question], answers: Sequence[Answer]) -> dict[str, float]:
        """Score answers by the official rules."""

    def _characters(self, golds: Sequence[Sequence[str]], texts: Sequence[str]) -> dict[str, float]:
        if self.unit == "words":
            return {}
        values = [best_over(character_f1, g or [""], t) for g, t in zip(golds, texts, strict=True)]
        return {"f1_characters": sum(values) / len(values)}


class SquadTask(_Squad):
    """Every question has an answer (SQuAD 1.1, XQuAD, JSQuAD); start and end are independent."""

    task_name: ClassVar[str] = "squad"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact", "f1_characters")
    is_joint: ClassVar[bool] = False

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`."""
        return {0: "start", 1: "end"}

    def answers(
        self,
        records: Sequence[Question],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> list[Answer]:
        """Return the best part of the passage for each question; "" if the passage is empty.

        Raises:
            DataError: outputs that do not fit.
        """
        return [
            _span_answer(spans, 1.0) if spans else Answer(NOTHING, 0.0)
            for _, spans in self.found(records, features, outputs)
        ]

    def evaluate(self, records: Sequence[Question], answers: Sequence[Answer]) -> dict[str, float]:
        """Return `exact` and `f1` of SQuAD 1.1.

        Raises:
            DataError: no records, or some without a known answer.
        """
        require_labels(records, len(answers))
        golds = [[answer.text for answer in record.answers] for record in records]
        texts = [str(answer.value) for answer in answers]
        return squad_scores(golds, texts) | self._characters(golds, texts)

    def fitted(
        self,
        records: Sequence[Question],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> Self:
        """Return the task itself; there is no threshold."""
        del records, features, outputs
        return self

    def files(
        self,
        records: Sequence[Question],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> dict[str, str]:
        """Return the official files of predictions: name -> content."""
        found = self.found(records, features, outputs)
        best = {r.id: s[0].text if s else NOTHING for r, (_, s) in zip(records, found, strict=True)}
        nbest = {r.id: nbest_rows(s) for r, (_, s) in zip(records, found, strict=True)}
        return {"predictions.json": to_file(best), "nbest_predictions.json": to_file(nbest)}


class SquadV2Task(_Squad):
    """Some questions have no answer (SQuAD 2.0); the official joint head."""

    task_name: ClassVar[str] = "squad_v2"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact", "f1_characters")

    null_threshold: float = Field(default=0.5, ge=0.0, le=1.0)
    """There is no answer if its probability is above this; chosen on labelled data by `fitted`."""

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`."""
        return {0: "impossible"}

    def answers(
        self,
        records: Sequence[Question],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> list[Answer]:
        """Return the best part of the passage, or "" where there is probably no answer.

        `details` hold `null_probability` and `best_span`, the answer if there has to be one.

        Raises:
            DataError: outputs that do not fit.
        """
        return [self._answer(found) for found in self.found(records, features, outputs)]

    def _answer(self, found: Found) -> Answer:
        spans = found[1]
        null = _sigmoid(null_logit(found))
        best = spans[0].text if spans else NOTHING
        known = {"null_probability": null, "best_span": best}
        if null > self.null_threshold or not spans:
            return Answer(NOTHING, null, known)
        answer = _span_answer(spans, 1.0 - null)
        return Answer(answer.value, answer.score, answer.details | known)

    def evaluate(self, records: Sequence[Question], answers: Sequence[Answer]) -> dict[str, float]:
        """Return the scores of SQuAD 2.0, see `squad_v2_scores`; thresholds are probabilities.

        Raises:
            DataError: no records, or some without a known answer.
        """
        require_labels(records, len(answers))
        golds = [[answer.text for answer in record.answers] for record in records]
        texts = [str(answer.value) for answer in answers]
        best, nulls = [best_span(a) for a in answers], [null_probability(a) for a in answers]
        scores = squad_v2_scores(golds, best, nulls, self.null_threshold)
        return scores | self._characters(golds, texts)

    def fitted(
        self,
        records: Sequence[Question],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> Self:
        """Return the task with the threshold that gives the best F1 on these questions.

        Raises:
            DataError: outputs that do not fit, or questions without a known answer.
        """
        answers = self.answers(records, features, outputs)
        require_labels(records, len(answers))
        golds = [[answer.text for answer in record.answers] for record in records]
        values = [
            best_over(f1_or_empty, g or [""], best_span(a))
            for g, a in zip(golds, answers, strict=True)
        ]
        threshold = fit_threshold(
            values, [null_probability(a) for a in answers], [float(not g) for g in golds]
        )
        return self.model_copy(update={"null_threshold": threshold})

    def files(
        self,
        records: Sequence[Question],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> dict[str, str]:
        """Return the official files of predictions: name -> content.

        `null_odds.json` has the logit of "no answer", as officially.
        """
        found = self.found(records, features, outputs)
        pairs = list(zip(records, found, strict=True))
        return {
            "predictions.json": to_file({r.id: self._answer(f).value for r, f in pairs}),
            "nbest_predictions.json": to_file({r.id: nbest_rows(f[1]) for r, f in pairs}),
            "null_odds.json": to_file({r.id: null_logit(f) for r, f in pairs}),
        }


def null_logit(found: Found) -> float:
    """Return the logit of "no answer" in the window that is surest of an answer."""
    return min(float(class_logits(output, 1)[0]) for _, output in found[0])


def null_probability(answer: Answer) -> float:
    """Return the probability that there is no answer; 1 or 0 where only the answer is known."""
    return float(answer.details.get("null_probability", float(answer.value == NOTHING)))


def best_span(answer: Answer) -> str:
    """Return the answer if there has to be one."""
    return str(answer.details.get("best_span", answer.value))


def _span_answer(spans: Sequence[SpanAnswer], weight: float) -> Answer:
    best = spans[0]
    others = [
        {
            "text": span.text,
            "score": weight * span.probability,
            "start": span.start,
            "end": span.end,
        }
        for span in spans[1 : 1 + ALTERNATIVES]
    ]
    details = {"start": best.start, "end": best.end, "alternatives": others}
    return Answer(best.text, weight * best.probability, details)


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


def _label(record: Question) -> list[str] | str | None:
    if record.answers:
        return list(dict.fromkeys(answer.text for answer in record.answers))
    return NOTHING if record.is_impossible else None


def _options(records: Sequence[Question], options: Mapping[str, Any]) -> dict[str, Any]:
    """Add what the records say about the script to what was told."""
    texts = list(dict.fromkeys(record.context for record in records[: _EXAMPLES * 8]))[:_EXAMPLES]
    if "unit" in options or not has_few_blanks("".join(texts)):
        return dict(options)
    return {"metric": "f1_characters"} | dict(options) | {"unit": "characters"}


def _make_squad(records: Sequence[Any], options: Mapping[str, Any]) -> RecordTask:
    impossible = sum(record.is_impossible for record in records)
    if impossible:
        raise DataError(
            f"{impossible} of {len(records)} questions have no answer, which this task cannot say; use "
            "the task squad_v2",
            path=records[0].path,
        )
    return cast("RecordTask", build_task(SquadTask, _options(records, options)))


def _make_squad_v2(records: Sequence[Any], options: Mapping[str, Any]) -> RecordTask:
    return cast("RecordTask", build_task(SquadV2Task, _options(records, options)))


# Not as decorators: those would hide the classes behind the protocol from type checkers.
TASKS.register("squad")(cast("Any", SquadTask))
TASKS.register("squad_v2")(cast("Any", SquadV2Task))
RECORD_KINDS.register("squad")(
    RecordKind(
        "squad",
        "questions answered by a part of a passage: SQuAD 1.1, XQuAD, JSQuAD JSON, or rows",
        read_squad,
        _make_squad,
    )
)
RECORD_KINDS.register("squad_v2")(
    RecordKind(
        "squad_v2",
        "the same with questions that have no answer: SQuAD 2.0 JSON, or rows",
        read_squad,
        _make_squad_v2,
    )
)
