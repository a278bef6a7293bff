"""What in a plan has made trainings fail without a word: said before time is spent.

Each rule stands for failures that people reported of ALBERT (texts cut to nothing, a few steps only,
another model's vocabulary, rates that large models do not bear); the limits are ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from litebert.recipes.finetune.defaults import NARROW, WIDE, begins_fitted
from litebert.recipes.finetune.known_head import head_notes
from litebert.recipes.finetune.model_choice import head_options
from litebert.recipes.finetune.record_plan import RecordPlan

if TYPE_CHECKING:
    from litebert.data.batch import EncodedExample
    from litebert.recipes.finetune.work import AnyPlan

__all__ = ["advice", "hazards", "with_warnings"]

P = TypeVar("P")

CUT_FRACTION: Final = 0.2
"""Share of cut training texts that is worth a warning."""
FEW_STEPS: Final = 30
"""Optimizer steps below which hardly anything is learnt."""
UNKNOWN_FRACTION: Final = 0.05
"""Share of pieces that a fitting vocabulary does not have; 0.1 % is usual."""
MIN_CHARACTERS: Final = 1.6
"""Characters a piece below which a vocabulary spells words letter by letter; 4 is usual in English."""
SAME_FRACTION: Final = 0.1
"""Share of different encodings below which texts cannot tell labels apart."""
MIN_EXAMPLES: Final = 20
SAMPLE: Final = 2_000
WINDOWED_HEADS: Final = frozenset({"span", "span_joint"})
"""Long passages are cut into windows on purpose."""
ADAM: Final = frozenset({"adamw", "adam"})


def hazards(plan: AnyPlan) -> tuple[str, ...]:
    """Return what is likely to spoil the training, each with what to do; usually nothing."""
    found = (_cut, _steps, _targets, _vocabulary, _spelling, _rate, _same)
    return tuple(sentence for rule in found for sentence in rule(plan))


def with_warnings(plan: P) -> P:
    """Return a plan that warns of what is likely to spoil it, and notes which weights are new.

    Raises:
        CheckpointError: weights or vocabulary of the folder to start from are not usable.
    """
    found: Any = plan
    fresh = _fresh(found)
    notes = found.notes
    if fresh:
        is_fitted = "sequence" in fresh and begins_fitted(found.model)
        start = "; the classifier begins as the linear head that fits the vectors" * is_fitted
        notes = (
            *notes,
            f"new, untrained weights for: {', '.join(fresh)}; {found.model.folder} has none that fit, so "
            f"they learn from these examples alone{start}",
        )
    notes = (*notes, *head_notes(found, fresh))
    return dataclasses.replace(found, notes=notes, warnings=hazards(found))


def _fresh(plan: Any) -> tuple[str, ...]:
    """Return the parts that the folder to start from does not have."""
    if plan.model.folder is None or getattr(plan, "is_few_shot", False):
        return ()
    # torch takes a second to import, and a plan is read by commands that do not train.
    from litebert.checkpoint.folder import untrained_parts
    from litebert.recipes.finetune.adapt import loading_changes

    config: dict[str, Any] = plan.settings.model.config
    options = config.get("litebert", {}) | head_options(plan.task)
    options |= {"pooler_reads": plan.model.config.litebert.pooler_reads}
    changes = {
        **config,
        "id2label": plan.task.config_labels(),
        "problem_type": plan.task.problem_type,
        "litebert": loading_changes(plan.model.folder, options),
    }
    return untrained_parts(plan.model.folder, plan.task.head, changes=changes)


def advice(warnings: Sequence[str]) -> str:
    """Return what to look at after a collapse: what was warned of, else the usual causes."""
    if warnings:
        return "likely because: " + "; ".join(warnings)
    return (
        "usual causes: a learning rate that is too high (large and xlarge models bear 1e-5 and less), too "
        "few steps, labels that the texts do not tell, or weights and vocabulary of different models"
    )


def _cut(plan: AnyPlan) -> Iterator[str]:
    """Source: google-research/albert#18 (a maximum length of 4 left over from a test)."""
    limit = plan.task.max_length
    if isinstance(plan, RecordPlan):
        if plan.task.head in WINDOWED_HEADS:
            return
        full = [_longest(example) >= limit for example in plan.train.encoded]
        share = sum(full) / len(full)
    else:
        share = plan.truncated_fraction
    if share > CUT_FRACTION:
        yield (
            f"{share:.0%} of the training texts are cut at {limit} tokens, and what decides may lie "
            f"behind the cut; allow more with --max-length, up to "
            f"{plan.model.config.max_position_embeddings}{_windows(plan)}"
        )


def _windows(plan: AnyPlan) -> str:
    if isinstance(plan, RecordPlan) or plan.task.stride is not None:
        return ""
    return ", or read whole texts in windows with --long-texts windows"


def _targets(plan: AnyPlan) -> Iterator[str]:
    if plan.task.problem_type != "regression":
        return
    targets = {example.label for example in plan.train.examples}
    if len(targets) == 1:
        yield (
            f"every training row has the target {targets.pop()}, and nothing can be learnt from one number; "
            "name another column with --label-column"
        )


def _steps(plan: AnyPlan) -> Iterator[str]:
    """Source: google-research/albert#25 (three steps, all answers empty)."""
    train, steps = plan.settings.train, plan.num_steps
    if steps < FEW_STEPS:
        more = (
            "more examples of each label"
            if getattr(plan, "is_few_shot", False)
            else "more --epochs, a smaller --batch-size, or more examples"
        )
        more += ", or start from a pretrained --model" if plan.model.folder is None else ""
        yield f"{steps} optimizer steps in all are too few to learn much; give {more}"
        return
    if getattr(plan, "is_few_shot", False):
        return
    seen = steps * train.batch_size / len(plan.train.encoded)
    if seen < 0.5 and train.max_steps is not None:
        yield (
            f"{steps:,} steps see only {seen:.0%} of the training examples; raise train.max_steps, or "
            "leave it out for whole epochs"
        )


def _vocabulary(plan: AnyPlan) -> Iterator[str]:
    """Source: google-research/albert#230 (vocabulary of another model)."""
    unknown = plan.model.tokenizer.unk_id
    pieces = [example.ids[1:-1] for example in plan.train.encoded[:SAMPLE]]
    total = sum(len(ids) for ids in pieces)
    if not total:
        return
    share = sum(int((ids == unknown).sum()) for ids in pieces) / total
    if share > UNKNOWN_FRACTION:
        yield (
            f"{share:.0%} of the pieces of the training texts are unknown to the vocabulary: it is of "
            "another language or script, or of another model; start from a model for these texts, or "
            "from scratch with --from scratch"
        )


def _spelling(plan: AnyPlan) -> Iterator[str]:
    """A vocabulary of another language may know every letter and no word."""
    if plan.model.folder is None:
        return
    texts = _sample_texts(plan)
    words = [word for text in texts for word in text.split() if word.isalpha()]
    letters = sum(map(len, words))
    # Scripts without blanks have few and long "words", Chinese has one letter a piece by design.
    if len(words) < 100 or not 3 <= letters / len(words) <= 12:
        return
    pieces = sum(len(plan.model.tokenizer.encode(word).ids) - 2 for word in words[:SAMPLE])
    share = sum(map(len, words[:SAMPLE])) / max(1, pieces)
    if share < MIN_CHARACTERS:
        yield (
            f"the vocabulary spells the training texts almost letter by letter ({share:.1f} letters a "
            "piece): it was made for another language; start from a model for this one, or from scratch "
            "with --from scratch"
        )


def _rate(plan: AnyPlan) -> Iterator[str]:
    """Source: google-research/google-research#151 (xlarge learns at 5e-6 only), paper Table 14."""
    train, width = plan.settings.train, plan.model.config.hidden_size
    if train.optimizer not in ADAM:
        return
    if plan.model.folder is None:
        limit = 2e-2
    elif width >= WIDE:
        limit = 3e-5
    else:
        limit = 1e-2 if width <= NARROW else 1.5e-4
    if train.learning_rate > limit:
        start = "new" if plan.model.folder is None else "pretrained"
        yield (
            f"a learning rate of {train.learning_rate:g} is above what {start} weights of width {width} "
            f"usually bear ({limit:g}); models collapse to one answer at such rates: lower --lr"
        )


def _same(plan: AnyPlan) -> Iterator[str]:
    """A wrong column, or a length that leaves the same few tokens of every text."""
    encoded = plan.train.encoded
    if len(encoded) < MIN_EXAMPLES:
        return
    different = len({example.ids.tobytes() for example in encoded})
    if different < SAME_FRACTION * len(encoded):
        yield (
            f"the {len(encoded):,} training texts are only {different:,} different ones after encoding; "
            "check that the text column is the right one (--text-column) and --max-length"
        )


def _sample_texts(plan: AnyPlan) -> list[str]:
    """Return training texts, of records all that they hold."""
    if isinstance(plan, RecordPlan):
        from litebert.recipes.finetune.record_plan import record_texts

        return [text for record in plan.train.examples[:SAMPLE] for text in record_texts(record)]
    examples: Sequence[Any] = plan.train.examples[:SAMPLE]
    return [text for e in examples for text in (e.text, e.pair or "")]


def _longest(example: EncodedExample) -> int:
    return int(np.max(example.sequence_lengths)) if example.sequence_lengths else len(example)
