"""Questions of a dialogue that are answered by a part of the text, or not at all: QuAC."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

import numpy as np
from pydantic import Field

from litebert.data.dialogues import CANNOT_ANSWER, FOLLOW_UP, YES_NO, QuacQuestion, read_quac
from litebert.model.span_layout import answer_groups
from litebert.tasks.base import TASKS
from litebert.tasks.dialogue import DialogueTask, most_frequent
from litebert.tasks.quac_scores import QuacAnswer, agreed, left_out_f1, quac_scores
from litebert.tasks.records import RECORD_KINDS, Answer, RecordKind
from litebert.tasks.span_baselines import constant_baseline, sentence_baselines
from litebert.tasks.span_decode import class_logits
from litebert.tasks.span_faults import span_faults
from litebert.tasks.span_task import build_task, require_labels
from litebert.tasks.span_threshold import fit_threshold
from litebert.tasks.span_windows import Asked

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.tasks.baselines import Baseline
    from litebert.tasks.records import Feature, RecordTask
    from litebert.tasks.span_task import Found

__all__ = ["QuacTask"]

_IGNORED: Final = -100
_LABELS: Final = (
    "impossible",
    *(f"yesno:{word}" for word in YES_NO),
    *(f"followup:{word}" for word in FOLLOW_UP),
)


class QuacTask(DialogueTask):
    """Dialogues whose answers are parts of the text, or none (QuAC)."""

    task_name: ClassVar[str] = "quac"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "unfiltered_f1", "heq_q", "heq_d")

    max_answer_length: int = Field(default=50, ge=1, le=10_000)
    """Tokens of the longest answer; those of QuAC have up to 30 words."""
    null_threshold: float = Field(default=0.5, ge=0.0, le=1.0)
    """There is no answer if its probability is above this; chosen on labelled data by `fitted`."""

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`."""
        return dict(enumerate(_LABELS))

    def asked(self, record: QuacQuestion, *, labelled: bool) -> Asked | None:
        """Return question and passage, with `labelled` what was answered."""
        parts = self.parts(record.history, record.question)
        if not labelled:
            return Asked(parts, record.context)
        if record.reference is None:
            return None
        yesno = _IGNORED if record.yesno is None else YES_NO.index(record.yesno)
        followup = _IGNORED if record.followup is None else FOLLOW_UP.index(record.followup)
        if record.reference.text == CANNOT_ANSWER:
            return Asked(parts, record.context, None, (1, yesno, followup))
        span = (record.reference.start, record.reference.end)
        nothing = (1, _IGNORED, _IGNORED)
        return Asked(parts, record.context, span, (0, yesno, followup), nothing)

    def answers(
        self,
        records: Sequence[QuacQuestion],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> list[Answer]:
        """Return a part of the passage or CANNOTANSWER; `details` hold yesno and followup too.

        Raises:
            DataError: outputs that do not fit.
        """
        return [self._answer(found) for found in self.found(records, features, outputs)]

    def _answer(self, found: Found) -> Answer:
        windows, spans = found
        logits = [class_logits(output, len(_LABELS)) for _, output in windows]
        surest = min(logits, key=lambda row: row[0])
        null = float(1 / (1 + np.exp(-np.clip(surest[0], -700, 700))))
        _, yesno, followup = (surest[a:b] for a, b in answer_groups(_LABELS))
        details: dict[str, Any] = {
            "null_probability": null,
            "best_span": spans[0].text if spans else CANNOT_ANSWER,
            "yesno": YES_NO[int(yesno.argmax())],
            "followup": FOLLOW_UP[int(followup.argmax())],
        }
        if null > self.null_threshold or not spans:
            return Answer(CANNOT_ANSWER, null, details)
        place = {"start": spans[0].start, "end": spans[0].end}
        return Answer(spans[0].text, (1 - null) * spans[0].probability, place | details)

    def evaluate(
        self, records: Sequence[QuacQuestion], answers: Sequence[Answer]
    ) -> dict[str, float]:
        """Return the scores of QuAC, see `quac_scores`.

        Raises:
            DataError: no records, or some without a known answer.
        """
        require_labels(records, len(answers))
        return quac_scores(
            [
                QuacAnswer(
                    record.group,
                    _texts(record),
                    str(answer.value),
                    answer.details.get("yesno") == record.yesno,
                    answer.details.get("followup") == record.followup,
                )
                for record, answer in zip(records, answers, strict=True)
            ]
        )

    def fitted(
        self,
        records: Sequence[QuacQuestion],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> Self:
        """Return the task with the threshold that gives the best unfiltered F1.

        Raises:
            DataError: outputs that do not fit, or questions without a known answer.
        """
        answers = self.answers(records, features, outputs)
        require_labels(records, len(answers))
        golds = [agreed(_texts(record)) for record in records]
        spans = [str(answer.details["best_span"]) for answer in answers]
        threshold = fit_threshold(
            [left_out_f1(g, span) for g, span in zip(golds, spans, strict=True)],
            [float(answer.details["null_probability"]) for answer in answers],
            [left_out_f1(g, CANNOT_ANSWER) for g in golds],
        )
        return self.model_copy(update={"null_threshold": threshold})

    def faults(self, records: Sequence[QuacQuestion], answers: Sequence[Answer]) -> list[str]:
        """Return what looks like a collapse."""
        some = any(r.reference is None or r.reference.text != CANNOT_ANSWER for r in records)
        return span_faults(CANNOT_ANSWER, answers, can_be_nothing=True, some_have_answers=some)

    def baselines(
        self, train: Sequence[QuacQuestion], evaluation: Sequence[QuacQuestion]
    ) -> list[Baseline]:
        """Return no answer with the most frequent hints, the first sentence, the most similar one."""
        hints = {
            "yesno": most_frequent(record.yesno for record in train),
            "followup": most_frequent(record.followup for record in train),
        }
        nothing = Answer(CANNOT_ANSWER, 1.0, hints)
        constant = constant_baseline(
            "no_answer", "never an answer", nothing, evaluation, self.evaluate
        )
        return [constant, *sentence_baselines(evaluation, self.evaluate)]

    def show(self, record: QuacQuestion) -> dict[str, Any]:
        """Return what identifies and explains a question."""
        return self.shown(record, _texts(record) or None)

    def files(
        self,
        records: Sequence[QuacQuestion],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> dict[str, str]:
        """Return the official file of predictions, one line a dialogue: name -> content."""
        answers = self.answers(records, features, outputs)
        dialogues: dict[str, dict[str, list[str]]] = {}
        for record, answer in zip(records, answers, strict=True):
            empty: dict[str, list[str]] = {
                "best_span_str": [], "qid": [], "yesno": [], "followup": []
            }  # fmt: skip
            line = dialogues.setdefault(record.group, empty)
            line["best_span_str"].append(str(answer.value))
            line["qid"].append(record.id)
            line["yesno"].append(answer.details["yesno"])
            line["followup"].append(answer.details["followup"])
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in dialogues.values())
        return {"predictions.jsonl": "".join(lines)}


def _texts(record: QuacQuestion) -> list[str]:
    return [answer.text for answer in record.answers]


def _make_quac(records: Sequence[Any], options: Mapping[str, Any]) -> RecordTask:
    del records
    return cast("RecordTask", build_task(QuacTask, options))


# Not as a decorator: that would hide the class behind the protocol from type checkers.
TASKS.register("quac")(cast("Any", QuacTask))
RECORD_KINDS.register("quac")(
    RecordKind("quac", "dialogues of questions about a passage: QuAC JSON", read_quac, _make_quac)
)
