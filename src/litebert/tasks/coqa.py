"""Questions of a dialogue with free answers: parts of the story, yes, no, or unknown (CoQA)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

import numpy as np

from litebert.data.dialogues import CoqaQuestion, read_coqa
from litebert.tasks.base import TASKS
from litebert.tasks.coqa_labels import KINDS, answer_kind, learnt_span
from litebert.tasks.coqa_scores import coqa_scores
from litebert.tasks.dialogue import DialogueTask, most_frequent
from litebert.tasks.records import RECORD_KINDS, Answer, RecordKind
from litebert.tasks.span_baselines import constant_baseline, sentence_baselines
from litebert.tasks.span_decode import class_logits
from litebert.tasks.span_faults import span_faults
from litebert.tasks.span_files import to_file
from litebert.tasks.span_task import build_task, require_labels
from litebert.tasks.span_windows import Asked

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

    from litebert.tasks.baselines import Baseline
    from litebert.tasks.records import Feature, RecordTask
    from litebert.tasks.span_task import Found

__all__ = ["CoqaTask"]

UNKNOWN: Final = "unknown"
"""Answer where there is none."""


class CoqaTask(DialogueTask):
    """Dialogues with free answers (CoQA): parts of the story, yes, no, or unknown."""

    task_name: ClassVar[str] = "coqa"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact")

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`."""
        return {index: f"kind:{kind}" for index, kind in enumerate(KINDS)}

    def asked(self, record: CoqaQuestion, *, labelled: bool) -> Asked | None:
        """Return question and story, with `labelled` kind and place of the answer."""
        parts = self.parts(record.history, record.question)
        if not labelled:
            return Asked(parts, record.context)
        if not record.answers:
            return None
        kind, nothing = answer_kind(record.answers[0]), (KINDS.index(UNKNOWN),)
        if kind == UNKNOWN:
            return Asked(parts, record.context, None, nothing)
        span = learnt_span(record)
        if span is None and kind == KINDS[0]:
            return None
        return Asked(parts, record.context, span, (KINDS.index(kind),), nothing)

    def answers(
        self,
        records: Sequence[CoqaQuestion],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> list[Answer]:
        """Return a part of the story, or yes, no, unknown; `details` hold the kind.

        Raises:
            DataError: outputs that do not fit.
        """
        return [_coqa_answer(found) for found in self.found(records, features, outputs)]

    def evaluate(
        self, records: Sequence[CoqaQuestion], answers: Sequence[Answer]
    ) -> dict[str, float]:
        """Return the scores of CoQA, see `coqa_scores`.

        Raises:
            DataError: no records, or some without a known answer.
        """
        require_labels(records, len(answers))
        return coqa_scores(
            [record.answers for record in records],
            [str(answer.value) for answer in answers],
            [record.domain for record in records],
        )

    def fitted(
        self,
        records: Sequence[CoqaQuestion],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> Self:
        """Return the task itself; there is no threshold."""
        del records, features, outputs
        return self

    def faults(self, records: Sequence[CoqaQuestion], answers: Sequence[Answer]) -> list[str]:
        """Return what looks like a collapse."""
        some = any(not r.answers or answer_kind(r.answers[0]) != UNKNOWN for r in records)
        return span_faults(UNKNOWN, answers, can_be_nothing=True, some_have_answers=some)

    def baselines(
        self, train: Sequence[CoqaQuestion], evaluation: Sequence[CoqaQuestion]
    ) -> list[Baseline]:
        """Return the most frequent answer, the first sentence, and the most similar one."""
        word = most_frequent(record.answers[0] for record in train if record.answers) or "yes"
        constant = constant_baseline(
            "most_frequent", f"always {word!r:.40}", Answer(word, 1.0), evaluation, self.evaluate
        )
        return [constant, *sentence_baselines(evaluation, self.evaluate)]

    def show(self, record: CoqaQuestion) -> dict[str, Any]:
        """Return what identifies and explains a question."""
        return self.shown(record, list(dict.fromkeys(record.answers)) or None)

    def files(
        self,
        records: Sequence[CoqaQuestion],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> dict[str, str]:
        """Return the official file of predictions: name -> content."""
        answers = self.answers(records, features, outputs)
        rows = [
            {"id": record.group, "turn_id": record.turn, "answer": answer.value}
            for record, answer in zip(records, answers, strict=True)
        ]
        return {"predictions.json": to_file(rows)}


def _coqa_answer(found: Found) -> Answer:
    windows, spans = found
    rows = [_softmax(class_logits(output, len(KINDS))) for _, output in windows]
    # A window without the evidence says "unknown"; the one that says so least has seen most.
    surest = min(rows, key=lambda row: row[KINDS.index(UNKNOWN)])
    kind = KINDS[int(surest.argmax())]
    score = float(surest.max())
    if kind != KINDS[0]:
        return Answer(kind, score, {"kind": kind})
    if not spans:
        return Answer(UNKNOWN, score, {"kind": UNKNOWN})
    best = spans[0]
    details = {"kind": kind, "start": best.start, "end": best.end}
    return Answer(best.text, score * best.probability, details)


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def _make_coqa(records: Sequence[Any], options: Mapping[str, Any]) -> RecordTask:
    del records
    return cast("RecordTask", build_task(CoqaTask, options))


# Not as a decorator: that would hide the class behind the protocol from type checkers.
TASKS.register("coqa")(cast("Any", CoqaTask))
RECORD_KINDS.register("coqa")(
    RecordKind(
        "coqa", "dialogues with free answers about a story: CoQA JSON", read_coqa, _make_coqa
    )
)
