"""Distillation: a student with what it needs beside itself to be compared with its teacher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.encoder import Checkpointing
from litebert.model.layers import init_weights
from litebert.model.losses import LossTerm
from litebert.model.packing import Packing
from litebert.objectives.distill_losses import (
    hidden_loss,
    pooled_loss,
    relation_loss,
    similarity_loss,
    soft_label_loss,
)
from litebert.objectives.distill_targets import TeacherTargets, Teaching
from litebert.objectives.tensors import TensorBatch
from litebert.settings import Settings

__all__ = ["DistillLoss", "DistillModel", "DistillSettings", "relation_vectors"]

PER_TOKEN: Final = frozenset({"hidden", "relation"})
"""Terms whose targets are tokens; those of the others are sequences."""


class DistillSettings(Settings):
    """What is learnt from the teacher, each with its weight in the loss; 0 leaves it out."""

    hidden: float = Field(default=0.0, ge=0, le=1e6)
    """Last hidden states, through a learned projection where the widths differ."""
    pooled: float = Field(default=0.0, ge=0, le=1e6)
    """Vectors of whole texts: 1 - cosine; through the same projection."""
    similarity: float = Field(default=0.0, ge=0, le=1e6)
    """Likeness of the texts of a batch to each other; needs no equal width and no equal pieces."""
    similarity_temperature: float = Field(default=0.05, gt=0, le=100)
    """Cosines are divided by it before the softmax."""
    soft: float = Field(default=0.0, ge=0, le=1e6)
    """Probabilities of the classes of a fine-tuned teacher."""
    soft_temperature: float = Field(default=2.0, gt=0, le=1000)
    """Logits are divided by it before the softmax."""
    labels: float = Field(default=0.0, ge=0, le=1e6)
    """The true labels, where there are any: the student's ordinary loss."""
    relation: float = Field(default=0.0, ge=0, le=1e6)
    """Relations of queries, keys and values between the tokens of a text (MiniLMv2)."""
    relation_heads: int = Field(default=12, ge=1, le=1024)
    """Relation heads; must divide both widths, need not be anyone's attention heads."""
    relation_depth: int | None = Field(default=None, ge=1, le=256)
    """Depth of the teacher, from 1, whose relations the student's last depth learns; None: the last."""

    @model_validator(mode="after")
    def _check(self) -> DistillSettings:
        if not self.weights:
            raise ValueError(
                "nothing to learn: give one of hidden, pooled, similarity, soft, relation, labels a "
                "weight above 0"
            )
        return self

    @property
    def weights(self) -> dict[str, float]:
        """Term -> weight, of the terms that count."""
        names = ("soft", "labels", "hidden", "relation", "pooled", "similarity")
        return {name: getattr(self, name) for name in names if getattr(self, name) > 0}


class DistillModel(nn.Module):
    """A student and, where its width is not the teacher's, a projection that is thrown away."""

    def __init__(self, student: AlbertWithHead, teacher_width: int | None) -> None:
        """Put them together.

        Args:
            student: what is kept.
            teacher_width: numbers of a hidden state of the teacher; None: none is compared.
        """
        super().__init__()
        self.student = student
        width = student.config.hidden_size
        self.project: nn.Linear | None = None
        if teacher_width is not None and teacher_width != width:
            self.project = nn.Linear(width, teacher_width)
            init_weights(self.project, width**-0.5)

    @property
    def config(self) -> AlbertConfig:
        """Configuration of the student."""
        return self.student.config

    def set_checkpointing(self, value: Checkpointing) -> None:
        """Choose what is recomputed in the backward pass; see `Encoder.set_checkpointing`."""
        self.student.set_checkpointing(value)

    def set_active_depth(self, depths: int | None) -> None:
        """Run the first depths only; see `Encoder.set_active_depth`."""
        self.student.set_active_depth(depths)

    def compile_block(self) -> None:
        """Compile the shared block of the student."""
        self.student.compile_block()

    def forward_packed(
        self,
        input_ids: Tensor,
        packing: Packing,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run the student; see `AlbertWithHead.forward_packed`."""
        return self.student.forward_packed(
            input_ids, packing, token_type_ids, position_ids, **kwargs
        )

    def in_teacher_space(self, vectors: Tensor) -> Tensor:
        """Return vectors of the student as the teacher's width has them."""
        return vectors if self.project is None else self.project(vectors)


class DistillLoss:
    """A `StepLoss`: what the settings ask for, from one pass of the student."""

    def __init__(self, settings: DistillSettings, teaching: Teaching) -> None:
        """Make it.

        Args:
            settings: terms and weights.
            teaching: the teacher's outputs by example number.
        """
        self.settings, self._teaching = settings, teaching
        self.weights: Mapping[str, float] = settings.weights

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of targets of each term."""
        return {
            name: batch.num_tokens if name in PER_TOKEN else batch.num_examples
            for name in self.weights
        }

    def __call__(self, model: nn.Module, batch: TensorBatch) -> tuple[LossTerm, ...]:
        """Return the sum and count of each term.

        Raises:
            SettingsError: the teacher did not give what a term needs.
        """
        if not isinstance(model, DistillModel):
            raise SettingsError("distillation trains a DistillModel; wrap the student in one")
        settings = self.settings
        targets = self._teaching.targets(batch.example_index)
        output = model.forward_packed(
            batch.input_ids,
            batch.packing,
            batch.token_type_ids,
            batch.position_ids,
            labels=batch.labels if settings.labels else None,
            output_hidden_states=bool(settings.relation),
        )
        totals: dict[str, Tensor] = {}
        vectors = None
        if settings.pooled or settings.similarity:
            vectors = batch.packing.mean_tokens(output.last_hidden_state)
        if settings.soft:
            wanted = _needed(targets, "logits")
            kind = model.config.problem_type
            totals["soft"] = soft_label_loss(output.logits, wanted, settings.soft_temperature, kind)
        if settings.labels:
            totals["labels"] = output.loss * batch.packing.num_sequences
        if settings.hidden:
            own = model.in_teacher_space(output.last_hidden_state)
            totals["hidden"] = hidden_loss(own, _needed(targets, "hidden"))
        if settings.relation:
            own = relation_vectors(model.student, output.hidden_states)
            totals["relation"] = relation_loss(
                own, _needed(targets, "relations"), batch.packing.lengths, settings.relation_heads
            )
        if settings.pooled and vectors is not None:
            own = model.in_teacher_space(vectors)
            totals["pooled"] = pooled_loss(own, _needed(targets, "pooled"))
        if settings.similarity and vectors is not None:
            totals["similarity"] = similarity_loss(
                vectors, _needed(targets, "pooled"), settings.similarity_temperature
            )
        packing = batch.packing
        return tuple(
            LossTerm(
                name,
                totals[name],
                torch.tensor(packing.num_tokens if name in PER_TOKEN else packing.num_sequences),
            )
            for name in self.weights
        )


def relation_vectors(
    model: AlbertWithHead, hidden_states: tuple[Tensor, ...], depth: int | None = None
) -> Tensor:
    """Return query, key and value of a depth side by side, [T, 3 H].

    Args:
        model: not pre-norm, and with a key and value for each query head.
        hidden_states: input of the first depth, then the output of each.
        depth: from 1; None: the last that ran.

    Raises:
        SettingsError: a model whose queries, keys and values have different widths.
    """
    encoder, options = model.model.encoder, model.config.litebert
    if options.norm_position == "pre" or model.config.inner_group_num != 1 or (
        model.config.num_key_value_heads != model.config.num_attention_heads
    ):  # fmt: skip
        raise SettingsError(
            "relations are taken of models with post-norm, one block a depth, and as many keys as "
            "queries; set distill.relation = 0"
        )
    number = len(hidden_states) - 2 if depth is None else depth - 1
    adapter: Any = encoder.adapters[number] if options.has_step_parts else None
    attention: Any = encoder.attentions[encoder.plan[number].attention]
    return attention.project(hidden_states[number], adapter=adapter)


def _needed(targets: TeacherTargets, name: str) -> Tensor:
    found: Tensor | None = getattr(targets, name)
    if found is None:
        raise SettingsError(f"the teacher's outputs have no {name}, which the loss needs")
    return found
