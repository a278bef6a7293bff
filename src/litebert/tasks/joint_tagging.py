"""Intent and slots of an utterance at once: one token head whose first token answers the intent.

Source: the joint models after Chen et al. 2019 (BERT for joint intent classification and slot
filling): intent from [CLS], slots from the first piece of each word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np
from pydantic import Field, model_validator

from litebert.data.tagged.reader import read_intents_and_slots
from litebert.data.tagged.record import TaggedText, text_record
from litebert.errors import DataError
from litebert.settings import build_settings
from litebert.tasks.base import TASKS
from litebert.tasks.baselines import Baseline
from litebert.tasks.entity_scores import share_equal
from litebert.tasks.records import RECORD_KINDS, Answer, Feature, RecordKind
from litebert.tasks.stored import StoredTask
from litebert.tasks.tag_baselines import WORD_MAJORITY, WORD_METHOD, majority_intent, word_majority
from litebert.tasks.tag_decoding import TagSet, softmax_rows
from litebert.tasks.tag_evaluation import span_scores
from litebert.tasks.tag_faults import entity_faults
from litebert.tasks.tag_options import TagOptions
from litebert.tasks.tag_records import (
    IGNORED,
    choose_units,
    entity_types,
    read_outputs,
    record_windows,
    spans_of,
    true_spans,
    units_note,
)
from litebert.tasks.tagging import (
    check_metric,
    check_types,
    show_spans,
    tag_features,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.data.records import Record
    from litebert.text.tokenizer import Tokenizer

__all__ = ["IntentSlots", "JointOptions", "make_intent_slots"]

METRICS: Final = ("sentence_accuracy", "slot_f1", "intent_accuracy", "slot_f1_macro")
INTENT_PREFIX: Final = "intent:"
"""Parts intents from tags in the one label list; no tag begins so."""
_MIN_TEXTS: Final = 20
"""Fewer answers than this say little about a collapse."""


class JointOptions(TagOptions):
    """Choices of the task."""

    metric: str = "sentence_accuracy"
    """Main score: intent and all slots right."""
    max_length: int = Field(default=64, ge=3)
    """Tokens of a window, special tokens included."""
    slot_weight: float = Field(default=1.0, gt=0, le=1000)
    """Weight of the mean loss over words."""
    intent_weight: float = Field(default=1.0, gt=0, le=1000)
    """Weight of the mean loss over intents."""


class IntentSlots(JointOptions, StoredTask):
    """What an utterance asks for, and the slots it fills."""

    types: tuple[str, ...]
    """Slot types in the order of their tags."""
    intents: tuple[str, ...]
    """Intents in the order of their ids, which follow those of the tags."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_types(self.types)
        if not self.intents or len(set(self.intents)) != len(self.intents):
            raise ValueError("intents: at least one is needed, and none may occur twice")
        check_metric(self.metric, METRICS)
        return self

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        return "intent_slots"

    @property
    def head(self) -> str:
        """Word for the model head."""
        return "token"

    @property
    def loss(self) -> str:
        """Word for what is minimised."""
        return "joint_tagging"

    @property
    def problem_type(self) -> None:
        """The token head has one kind of loss."""
        return

    @cached_property
    def tags(self) -> TagSet:
        """The slot tags; they are the first columns of the logits."""
        return TagSet(self.types, self.scheme)

    @property
    def num_tags(self) -> int:
        """Columns of the slot tags; those of the intents follow."""
        return len(self.tags)

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`: slot tags, then intents as `intent:NAME`."""
        intents = (INTENT_PREFIX + name for name in self.intents)
        return dict(enumerate((*self.tags.names, *intents)))

    def features(
        self, records: Sequence[TaggedText], tokenizer: Tokenizer, *, labelled: bool
    ) -> list[Feature]:
        """Cut texts into windows; the first token of each is labelled with the intent.

        An intent that was not trained is no label.

        Raises:
            DataError: a record without spans although `labelled`.
        """
        ids = {name: self.num_tags + i for i, name in enumerate(self.intents)}
        first = [ids.get(record.intent or "", IGNORED) for record in records]
        return tag_features(
            records, tokenizer, self, self.tags, labelled=labelled, first_labels=first
        )

    def answers(
        self,
        records: Sequence[TaggedText],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows C"]],
    ) -> list[Answer]:
        """Return `{"intent": name, "slots": [...]}` for each text.

        The intent of a text of several windows is that of the mean of their logits. The score is the
        lower one of the intent's probability and that of the least certain word.

        Raises:
            DataError: outputs of another shape, or not finite.
        """
        width = len(self.config_labels())
        for rows in outputs:
            if rows.ndim != 2 or rows.shape[1] != width or not np.isfinite(rows).all():
                raise DataError(
                    f"outputs of shape {rows.shape} must be finite and [tokens, {width}]; either the "
                    "model and its task.json do not belong together, or training has diverged"
                )
        slots = read_outputs(records, features, outputs, self.tags, constrained=self.constrained)
        result: list[Answer] = []
        groups = record_windows(features, len(records))
        for (_, places), answer in zip(groups, slots, strict=True):
            logits = np.mean([outputs[place][0, self.num_tags :] for place in places], axis=0)
            probabilities = softmax_rows(logits[None])[0]
            best = int(probabilities.argmax())
            sure = float(probabilities[best])
            value = {"intent": self.intents[best], "slots": answer.entities}
            result.append(Answer(value, min(sure, answer.certainty), {"intent_score": sure}))
        return result

    def from_text(self, text: str, pair: str | None = None) -> TaggedText:
        """Return a text as a record without labels, for `predict`.

        Raises:
            DataError: a second text, or no word.
        """
        return text_record(text, pair)

    def explain(self, records: Sequence[TaggedText]) -> list[str]:
        """Return what training records made the task decide, in words."""
        return units_note(records, self.units)

    def evaluate(
        self, records: Sequence[TaggedText], answers: Sequence[Answer]
    ) -> dict[str, float]:
        """Return the accuracy of intents, the scores of slots, and how often all is right.

        Raises:
            DataError: a record without spans or intent.
        """
        spans = [spans_of(answer.value["slots"]) for answer in answers]
        return self._score(records, [answer.value["intent"] for answer in answers], spans)

    def fitted(
        self,
        records: Sequence[TaggedText],  # noqa: ARG002 - the protocol's arguments
        features: Sequence[Feature],  # noqa: ARG002
        outputs: Sequence[Float[np.ndarray, "rows C"]],  # noqa: ARG002
    ) -> Self:
        """Return the task itself: it has no thresholds."""
        return self

    def faults(self, records: Sequence[TaggedText], answers: Sequence[Answer]) -> list[str]:
        """Return what looks like a collapse, with cause and remedy."""
        given = {answer.value["intent"] for answer in answers}
        true = {_intent(record) for record in records}
        found: list[str] = []
        if len(answers) >= _MIN_TEXTS and len(given) == 1 and len(true) > 1:
            found.append(
                f"every text was given the intent {next(iter(given))!r:.40}, though there are "
                f"{len(true)}: the model has not learnt to tell them apart; train for more epochs, "
                "change the learning rate, or raise intent_weight"
            )
        unseen = sorted(true - set(self.intents))
        if unseen:
            found.append(
                f"intents that the training texts do not have always count as wrong: "
                f"{', '.join(unseen[:5])}; correct them or add examples"
            )
        return found + entity_faults(
            [true_spans(record) for record in records],
            [spans_of(answer.value["slots"]) for answer in answers],
            self.types,
            [len(record.text) for record in records],
        )

    def baselines(
        self, train: Sequence[TaggedText], evaluation: Sequence[TaggedText]
    ) -> list[Baseline]:
        """Return the score of the most frequent intent with each word's most frequent tag."""
        intents = [majority_intent(train)] * len(evaluation)
        found = word_majority(train, evaluation, lambda s: self._score(evaluation, intents, s))
        method = f"the most frequent intent; {WORD_METHOD}"
        return [Baseline(WORD_MAJORITY, method, found.scores, found.seconds)]

    def show(self, record: TaggedText) -> dict[str, Any]:
        """Return the text with its intent and slots."""
        spans = show_spans(record)
        label = None if spans is None else {"intent": record.intent, "slots": spans}
        return {"id": record.id, "text": record.text, "label": label,
                "file": str(record.path), "line": record.line}  # fmt: skip

    def _score(
        self, records: Sequence[TaggedText], intents: Sequence[str], spans: Sequence[Sequence[Any]]
    ) -> dict[str, float]:
        true = [_intent(record) for record in records]
        whole = [(i, set(true_spans(r))) for i, r in zip(true, records, strict=True)]
        given = [(i, set(s)) for i, s in zip(intents, spans, strict=True)]
        right = sum(a == b for a, b in zip(whole, given, strict=True))
        return {
            "sentence_accuracy": right / len(records) if records else 0.0,
            "intent_accuracy": share_equal(true, intents),
        } | span_scores(records, spans, "slot", "slot_token_accuracy")


def make_intent_slots(records: Sequence[Record], options: Mapping[str, Any]) -> IntentSlots:
    """Build the task from training records and the options of `[task]`.

    Raises:
        DataError: no slot, or no intent.
        SettingsError: an unknown or wrong option.
    """
    chosen = build_settings(JointOptions, options)
    texts = cast(Sequence[TaggedText], records)
    found = {
        "types": entity_types(texts),
        "intents": tuple(sorted({_intent(r) for r in texts})),
        "units": choose_units(texts, chosen.units),
    }
    return build_settings(IntentSlots, chosen.model_dump() | found)


def _intent(record: TaggedText) -> str:
    """Return the intent of a labelled record.

    Raises:
        DataError: it has none.
    """
    if record.intent is None:
        raise DataError(
            "this text has no intent; give one, or use --task tagging for spans alone",
            path=record.path,
            line=record.line,
        )
    return record.intent


TASKS.register("intent_slots")(cast(Any, IntentSlots))
RECORD_KINDS.register("intent_slots")(
    RecordKind(
        name="intent_slots",
        help="intent and slots of utterances: ATIS and SNIPS folders, JSON lines with an intent",
        read=read_intents_and_slots,
        make_task=cast(Any, make_intent_slots),
    )
)
