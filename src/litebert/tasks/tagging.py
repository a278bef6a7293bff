"""Token classification: entities (names, places, slots) in texts, scored as CoNLL does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np
from pydantic import model_validator

from litebert.data.batch import EncodedExample
from litebert.data.tagged.reader import read_tagged
from litebert.data.tagged.record import TaggedText, split_characters, text_record
from litebert.settings import build_settings
from litebert.tasks.base import TASKS
from litebert.tasks.records import RECORD_KINDS, Answer, Feature, RecordKind
from litebert.tasks.stored import StoredTask
from litebert.tasks.tag_baselines import word_majority
from litebert.tasks.tag_decoding import TagSet
from litebert.tasks.tag_evaluation import span_scores
from litebert.tasks.tag_faults import entity_faults
from litebert.tasks.tag_options import TagOptions
from litebert.tasks.tag_records import (
    choose_units,
    entity_types,
    read_outputs,
    spans_of,
    true_spans,
    units_note,
    window_labels,
    word_tags,
)
from litebert.tasks.tag_windows import cut_windows

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.data.records import Record
    from litebert.tasks.baselines import Baseline
    from litebert.text.tokenizer import Tokenizer

__all__ = ["METRICS", "SequenceTagging", "make_tagging", "tag_features"]

METRICS: Final = ("entity_f1", "entity_f1_macro", "entity_f1_weighted", "token_accuracy")


class SequenceTagging(TagOptions, StoredTask):
    """Labelled spans of a text, at most one for each word."""

    types: tuple[str, ...]
    """Entity types in the order of their tags."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_types(self.types)
        check_metric(self.metric, METRICS)
        return self

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        return "tagging"

    @property
    def head(self) -> str:
        """Word for the model head."""
        return "token"

    @property
    def loss(self) -> str:
        """Word for what is minimised."""
        return "labels"

    @property
    def problem_type(self) -> None:
        """The token head has one kind of loss."""
        return

    @cached_property
    def tags(self) -> TagSet:
        """The tags that the model answers with."""
        return TagSet(self.types, self.scheme)

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`: O, B-TYPE, I-TYPE, ..."""
        return dict(enumerate(self.tags.names))

    def features(
        self, records: Sequence[TaggedText], tokenizer: Tokenizer, *, labelled: bool
    ) -> list[Feature]:
        """Cut texts into windows; with `labelled`, windows without a labelled word are left out.

        Raises:
            DataError: a record without spans although `labelled`.
        """
        return tag_features(records, tokenizer, self, self.tags, labelled=labelled)

    def answers(
        self,
        records: Sequence[TaggedText],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows C"]],
    ) -> list[Answer]:
        """Return the entities of each text; see `RecordTask.answers`.

        An answer is a list of objects with start, end (characters of the text), label, text and
        score (mean probability of its words' tags). The score of the whole answer is that of its
        least certain word.

        Raises:
            DataError: outputs of another shape, or not finite.
        """
        found = read_outputs(records, features, outputs, self.tags, constrained=self.constrained)
        return [Answer(answer.entities, answer.certainty) for answer in found]

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
        """Return precision, recall and F1 of entities, in all averages and by type.

        Raises:
            DataError: a record without spans.
        """
        return span_scores(
            records, [spans_of(answer.value) for answer in answers], "entity", "token_accuracy"
        )

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
        return entity_faults(
            [true_spans(record) for record in records],
            [spans_of(answer.value) for answer in answers],
            self.types,
            [len(record.text) for record in records],
        )

    def baselines(
        self, train: Sequence[TaggedText], evaluation: Sequence[TaggedText]
    ) -> list[Baseline]:
        """Return the score of giving each word its most frequent tag."""

        def score(spans: list[list[Any]]) -> dict[str, float]:
            return span_scores(evaluation, spans, "entity", "token_accuracy")

        return [word_majority(train, evaluation, score)]

    def show(self, record: TaggedText) -> dict[str, Any]:
        """Return the text with its labelled spans."""
        return {"id": record.id, "text": record.text, "label": show_spans(record),
                "file": str(record.path), "line": record.line}  # fmt: skip


def make_tagging(records: Sequence[Record], options: Mapping[str, Any]) -> SequenceTagging:
    """Build the task from training records and the options of `[task]`.

    Raises:
        DataError: no entity in the records.
        SettingsError: an unknown or wrong option.
    """
    chosen = build_settings(TagOptions, options)
    texts = cast(Sequence[TaggedText], records)
    found = {"types": entity_types(texts), "units": choose_units(texts, chosen.units)}
    return build_settings(SequenceTagging, chosen.model_dump() | found)


def tag_features(
    records: Sequence[TaggedText],
    tokenizer: Tokenizer,
    options: TagOptions,
    tags: TagSet,
    *,
    labelled: bool,
    first_labels: Sequence[int] | None = None,
) -> list[Feature]:
    """Cut texts into windows of labelled tokens.

    Args:
        records: the texts.
        tokenizer: gives pieces with character positions.
        options: lengths and which pieces are labelled.
        tags: tags of the words.
        labelled: give labels, and leave out windows without any.
        first_labels: label of the first token of all windows of each text; None: it has none.

    Raises:
        DataError: a record without spans although `labelled`.
    """
    windows = cut_windows(
        [record.text for record in records],
        [
            split_characters(record.text, record.words)
            if options.units == "characters"
            else record.words
            for record in records
        ],
        tokenizer,
        max_length=options.max_length,
        stride=options.window_stride,
    )
    inside = tags.inside if options.label_pieces == "all" else None
    features: list[Feature] = []
    for index, (record, parts) in enumerate(zip(records, windows, strict=True)):
        word_labels = None
        if labelled:
            true_spans(record)
            word_labels = word_tags(record, parts[0].words, tags)
        for window in parts:
            label = None
            if word_labels is not None:
                label = window_labels(window, word_labels, inside)
                if first_labels is not None:
                    label[0] = first_labels[index]
                if (label < 0).all():
                    continue
            zeros = np.zeros(len(window.ids), np.int32)
            features.append(Feature(EncodedExample(window.ids, zeros, label, index), window))
    return features


def check_types(types: Sequence[str]) -> None:
    """Refuse an empty or repeated list of types.

    Raises:
        ValueError: for pydantic to report.
    """
    if not types or not all(types):
        raise ValueError("types: at least one is needed, and none may be empty")
    if len(set(types)) != len(types):
        raise ValueError("types: a name occurs twice")


def check_metric(metric: str, allowed: Sequence[str]) -> None:
    """Refuse a score that the task does not have.

    Raises:
        ValueError: for pydantic to report.
    """
    if metric not in allowed:
        raise ValueError(f"metric: {metric!r:.40} does not exist here; known: {', '.join(allowed)}")


def show_spans(record: TaggedText) -> list[dict[str, Any]] | None:
    """Return the labelled spans of a record as JSON values, None if it is not labelled."""
    if record.spans is None:
        return None
    return [
        {"start": s.start, "end": s.end, "label": s.label, "text": record.text[s.start : s.end]}
        for s in record.spans
    ]


# Not as a decorator: that would hide the class behind the protocol from type checkers.
TASKS.register("tagging")(cast(Any, SequenceTagging))
RECORD_KINDS.register("tagging")(
    RecordKind(
        name="tagging",
        help="entities in texts: CoNLL columns, JSON lines with spans, Label Studio, doccano, spaCy",
        read=read_tagged,
        make_task=cast(Any, make_tagging),
    )
)
