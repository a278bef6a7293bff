"""Multiple choice: one score for each choice of a question, the highest is the answer.

Every choice is its own sequence, `[CLS] context [SEP] question and choice [SEP]`; the sequences of a
question are packed together, so questions may differ in their number of choices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np
from pydantic import Field, model_validator

from litebert.data.batch import EncodedExample
from litebert.data.choices.reader import CHOICE_READERS
from litebert.data.choices.record import LETTERS, ChoiceRecord
from litebert.errors import DataError
from litebert.settings import build_settings
from litebert.tasks import calibration
from litebert.tasks.base import TASKS
from litebert.tasks.choice_baselines import choice_baselines
from litebert.tasks.choice_faults import choice_faults
from litebert.tasks.records import RECORD_KINDS, Answer, Feature, RecordKind
from litebert.tasks.stored import StoredTask

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.tasks.baselines import Baseline
    from litebert.text.pairs import Keep
    from litebert.text.tokenizer import Tokenizer

__all__ = ["MultipleChoice"]

ANSWER_LENGTH: Final = 128
"""Official limit of question and choice together, in tokens."""
SPECIAL_TOKENS: Final = 3
"""[CLS], and a [SEP] after each of the two texts."""
FAR: Final = 1e4
"""How far below the best a choice that is not there lies: its probability is exactly 0."""
_BLANK: Final = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
"""Underscores that do not stand inside a word."""
_CHUNK: Final = 1024
"""Questions that are tokenized together."""


class MultipleChoice(StoredTask):
    """Choose one of 2 to 26 answers to a question, with or without a passage.

    Sequences are cut as in the official RACE code: of question and choice the last
    `max_answer_length` tokens stay, and the passage is cut at its end to what is left. Without a
    passage the question takes its place, `[CLS] question [SEP] choice [SEP]`, unless it has a blank
    that the choice fills: `[CLS] [SEP] statement [SEP]`.

    The passage is tokenized once for all questions on it, which is exact. It cannot be *encoded*
    once: each token of the passage attends to the question and the choice, from the first depth on,
    so its vectors differ from choice to choice. Encoding the texts apart would be another model (one
    that was trained that way), so no option pretends to it.

    Source: google-research/albert `race_utils.py`; paper Table 14 (max length 512).
    Differs from it: a run of underscores is one blank, and underscores inside words are none.
    """

    max_length: int = Field(default=512, ge=8, le=100_000)
    """Tokens of one choice's sequence, special tokens included."""
    max_answer_length: int | None = Field(default=None, ge=2, le=100_000)
    """Tokens kept of question and choice together, from their end (`max_qa_length` of the official
    code); None: 128, or less where `max_length` leaves no room for so many."""
    fill_blanks: bool = True
    """Put the choice in the place of a blank `_` of the question, else after the question."""
    temperature: float = Field(default=1.0, ge=1e-3, le=1e3)
    """Divides the logits before the softmax over the choices; fitted by `fitted`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.max_answer_length or 0) > self.max_length - SPECIAL_TOKENS:
            raise ValueError(
                f"max_answer_length is {self.max_answer_length}, but max_length {self.max_length} "
                f"leaves room for {self.max_length - SPECIAL_TOKENS} tokens beside the special ones"
            )
        return self

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        return "choice"

    @property
    def head(self) -> str:
        """Word for the model head."""
        return "choice"

    @property
    def loss(self) -> str:
        """Word for what is minimised: cross-entropy of the right choice among its question's."""
        return "labels"

    @property
    def problem_type(self) -> None:
        """A choice head has one loss only."""
        return None

    @property
    def metric(self) -> str:
        """Name of the main score."""
        return "accuracy"

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`: one output, the score of a choice."""
        return {0: "choice"}

    def features(
        self, records: Sequence[ChoiceRecord], tokenizer: Tokenizer, *, labelled: bool
    ) -> list[Feature]:
        """Return one feature a question, all its choices end to end.

        With `labelled`, questions without a label are left out.
        """
        chosen = [i for i, record in enumerate(records) if not labelled or record.label is not None]
        found: list[Feature] = []
        for start in range(0, len(chosen), _CHUNK):
            places = chosen[start : start + _CHUNK]
            found += self._encode([records[i] for i in places], places, tokenizer)
        return found

    def answers(
        self,
        records: Sequence[ChoiceRecord],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows ..."]],
    ) -> list[Answer]:
        """Return the most probable choice of each question.

        The value is the text of the choice; the details hold its position `index` (from 0), its
        `letter` and the `probabilities` of all choices in their order.

        Raises:
            DataError: not one finite number for each choice of each question.
        """
        answers: list[Answer] = []
        for record, row in zip(records, _rows(records, features, outputs), strict=True):
            p = calibration.softmax(row[None] / self.temperature)[0]
            best = int(p.argmax())
            answers.append(
                Answer(
                    value=record.choices[best],
                    score=float(p[best]),
                    details={
                        "index": best,
                        "letter": LETTERS[best],
                        "probabilities": [round(float(value), 6) for value in p],
                    },
                )
            )
        return answers

    def evaluate(
        self, records: Sequence[ChoiceRecord], answers: Sequence[Answer]
    ) -> dict[str, float]:
        """Return the share of questions answered right: of all, and of each subset.

        Questions without a label do not count; `accuracy` of none is 0. Where all answers have
        probabilities there is `ece` too, the calibration error of the confidence.

        Source: Lai et al. 2017 (RACE): accuracy over questions; RACE-M and RACE-H are subsets.
        """
        known = [(r, a) for r, a in zip(records, answers, strict=True) if r.label is not None]
        right = np.array([a.details["index"] == r.label for r, a in known], dtype=bool)
        scores = {"accuracy": float(right.mean()) if known else 0.0}
        subsets = np.array([record.subset for record, _ in known], dtype=object)
        names = sorted({record.subset for record, _ in known} - {""})
        for name in names if len(names) > 1 else ():
            scores[f"accuracy_{name}"] = float(right[subsets == name].mean())
        if known and all("probabilities" in answer.details for _, answer in known):
            confidence = np.array([answer.score for _, answer in known])
            scores["ece"] = calibration.expected_calibration_error(confidence, right)
        return scores

    def fitted(
        self,
        records: Sequence[ChoiceRecord],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows ..."]],
    ) -> Self:
        """Return the task with the temperature that fits labelled questions best.

        Raises:
            DataError: outputs that do not fit.
        """
        rows = _rows(records, features, outputs)
        known = [
            (row, record.label)
            for row, record in zip(rows, records, strict=True)
            if record.label is not None
        ]
        if not known:
            return self
        width = max(len(row) for row, _ in known)
        table = np.stack(
            [
                np.pad(row, (0, width - len(row)), constant_values=row.max() - FAR)
                for row, _ in known
            ]
        )
        labels = np.array([label for _, label in known], dtype=np.int64)
        return self.model_copy(update={"temperature": calibration.fit_temperature(table, labels)})

    def faults(self, records: Sequence[ChoiceRecord], answers: Sequence[Answer]) -> list[str]:
        """Return what looks like a collapse, in sentences."""
        return choice_faults(records, answers)

    def baselines(
        self, train: Sequence[ChoiceRecord], evaluation: Sequence[ChoiceRecord]
    ) -> list[Baseline]:
        """Score the most frequent position, the longest choice, and word overlap."""
        return choice_baselines(self, train, evaluation)

    def show(self, record: ChoiceRecord) -> dict[str, Any]:
        """Return what identifies a question; `label` is the text of the right choice.

        The passage is left out: it is long, and `group` names it.
        """
        label = record.label
        return {
            "id": record.id,
            "group": record.group,
            "question": record.question,
            "choices": list(record.choices),
            "label": None if label is None else record.choices[label],
            "label_index": label,
            "file": str(record.path),
            "line": record.line,
        }

    def _encode(
        self, records: list[ChoiceRecord], places: list[int], tokenizer: Tokenizer
    ) -> list[Feature]:
        """Encode questions; `places` are their positions in the data."""
        room = self.max_length - SPECIAL_TOKENS
        kept = self.max_answer_length or min(ANSWER_LENGTH, room)
        parts = [self._texts(record) for record in records]
        known: dict[tuple[str, Keep], list[int]] = {}
        for keep in ("head", "tail"):
            firsts = list(dict.fromkeys(first for first, end, _ in parts if end == keep))
            coded = tokenizer.encode_batch(firsts, room + 2, keep=keep)
            known |= {
                (text, keep): item.ids[1:-1] for text, item in zip(firsts, coded, strict=True)
            }
        seconds = [text for _, _, texts in parts for text in texts]
        answers = iter(tokenizer.encode_batch(seconds, kept + 2, keep="tail"))
        features: list[Feature] = []
        for record, place, (first, keep, texts) in zip(records, places, parts, strict=True):
            before = known[first, keep]
            ids: list[int] = []
            types: list[int] = []
            lengths: list[int] = []
            for _ in texts:
                after = next(answers).ids[1:-1]
                cut = min(len(before), room - len(after))
                part = before[:cut] if keep == "head" else before[len(before) - cut :]
                ids += [tokenizer.cls_id, *part, tokenizer.sep_id, *after, tokenizer.sep_id]
                types += [0] * (cut + 2) + [1] * (len(after) + 1)
                lengths.append(cut + len(after) + SPECIAL_TOKENS)
            encoded = EncodedExample(
                ids=np.asarray(ids, np.int32),
                type_ids=np.asarray(types, np.int32),
                label=record.label,
                index=place,
                sequence_lengths=tuple(lengths),
            )
            features.append(Feature(encoded))
        return features

    def _texts(self, record: ChoiceRecord) -> tuple[str, Keep, list[str]]:
        """Return the first text, the end of it that stays, and the second text of each choice."""
        question = " ".join(record.question.split())
        choices = [" ".join(choice.split()) for choice in record.choices]
        has_passage = bool(record.context.strip())
        if self.fill_blanks and _BLANK.search(question):
            choices = [_BLANK.sub(lambda _, c=choice: c, question) for choice in choices]
        elif has_passage:
            choices = [f"{question} {choice}" for choice in choices]
        else:
            return question, "tail", choices
        return record.context if has_passage else "", "head", choices


def _rows(
    records: Sequence[ChoiceRecord],
    features: Sequence[Feature],
    outputs: Sequence[Float[np.ndarray, "rows ..."]],
) -> list[Float[np.ndarray, " C"]]:
    """Return the logits of the choices of each record, in float64.

    Raises:
        DataError: not one finite number for each choice.
    """
    rows: list[np.ndarray | None] = [None] * len(records)
    for feature, output in zip(features, outputs, strict=True):
        rows[feature.encoded.index] = np.asarray(output, np.float64).reshape(-1)
    for number, (record, row) in enumerate(zip(records, rows, strict=True)):
        if row is None or len(row) != len(record.choices) or not np.isfinite(row).all():
            got = (
                "nothing" if row is None else f"{len(row)} numbers, {np.isfinite(row).sum()} finite"
            )
            raise DataError(
                f"question {number} ({record.id!r:.60}) has {len(record.choices)} choices, but the "
                f"model gave {got}; give one finite logit for each choice",
                path=record.path,
                line=record.line,
            )
    return cast("list[np.ndarray]", rows)


def _make_task(records: Sequence[Any], options: Mapping[str, Any]) -> MultipleChoice:
    """Build the task from the `[task]` section of the settings.

    Raises:
        SettingsError: an unknown or wrong option.
        DataError: no question has an answer.
    """
    if not any(record.label is not None for record in records):
        raise DataError(
            f"none of the {len(records):,} questions has an answer, so there is nothing to learn",
            path=records[0].path if records else None,
        )
    return build_settings(MultipleChoice, options)


TASKS.register("choice")(cast("Any", MultipleChoice))
for _name, (_help, _read) in CHOICE_READERS.items():
    RECORD_KINDS.register(_name)(
        RecordKind(_name, _help, _read, _make_task, takes_columns=_name == "choice")
    )
