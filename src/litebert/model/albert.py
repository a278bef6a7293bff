"""The model with a task head: logits, and the loss if labels are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from litebert.errors import DataError
from litebert.model.backbone import AlbertModel, EncoderOutput, PackedAttentions, unpack_output
from litebert.model.config import AlbertConfig
from litebert.model.encoder import Backend, Checkpointing
from litebert.model.exits import ExitHeads, has_exit_heads
from litebert.model.head_kinds import head_kind
from litebert.model.heads import make_heads
from litebert.model.inputs import (
    packed_positions,
    require_config,
    require_integers,
    require_tensor,
)
from litebert.model.layers import init_weights
from litebert.model.losses import (
    LossTerm,
    choice_loss,
    classification_loss,
    cross_entropy,
    span_loss,
)
from litebert.model.packing import Packing
from litebert.model.span_head import JointSpanHead, joint_parts

__all__ = ["AlbertModel", "AlbertWithHead", "EncoderOutput", "HeadOutput"]

Labels = Tensor | Mapping[str, Tensor]
Logits = Tensor | dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class HeadOutput:
    """What a model with a head returns.

    Attributes:
        loss: sum of the means of `terms`, a scalar; None without labels.
        logits: see `AlbertWithHead`; a dict by part for `pretraining`.
        last_hidden_state: as in `EncoderOutput`.
        pooler_output: as in `EncoderOutput`.
        hidden_states: as in `EncoderOutput`.
        attentions: as in `EncoderOutput`.
        terms: each loss as sum and count, to weigh micro-batches by.
    """

    loss: Tensor | None
    logits: Logits
    last_hidden_state: Tensor
    pooler_output: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | PackedAttentions | None = None
    terms: tuple[LossTerm, ...] = ()


class AlbertWithHead(nn.Module):
    """An encoder and one head.

    | head | logits (padded; packed) | labels |
    |---|---|---|
    | `mlm` | [B, S, V]; [T, V]; [P, V] with `masked_positions` | token ids, -100 for none |
    | `sentence_order` | [B, C] | 0 original order, 1 swapped |
    | `pretraining` | dict of the two above | dict of the two above |
    | `sequence` | [B, C] | class [B], 0/1 [B, C], or numbers |
    | `token` | [B, S, C]; [T, C] | class of each token, -100 for none |
    | `span` | [B, S, 2]; [T, 2] (start, end) | positions [B, 2] |
    | `span_joint` | [B, S, 7+C]; [T, 7+C], see `span_layout` | start, end, classes [B, 2+G] |
    | `choice` | [B, C], inputs are [B, C, S] | right choice [B] |
    | `embedding` | [B, H] | none |

    Logits of padding are 0, for `span` the lowest finite number so that no softmax picks it.
    Source: the published classes `AlbertFor...`; official `run_classifier.py`, `squad_utils.py`.
    """

    def __init__(self, config: AlbertConfig, head: str = "sequence") -> None:
        require_config(config)
        super().__init__()
        kind = head_kind(head)
        has_exits = has_exit_heads(config, head)
        self.config = config.replace(litebert={"head": head, "exit_heads": has_exits})
        self.head = head
        self.model = AlbertModel(self.config, add_pooler=kind.has_pooler)
        self.heads = make_heads(self.config, head)
        self.exits = ExitHeads(self.config) if has_exits else None
        init_weights(self.heads, config.initializer_range)

    def set_checkpointing(self, value: Checkpointing) -> None:
        """Choose what is recomputed in the backward pass; see `Encoder.set_checkpointing`.

        Raises:
            SettingsError: no such choice.
        """
        self.model.set_checkpointing(value)

    def set_active_depth(self, depths: int | None, *, allow_idle: bool = False) -> None:
        """Run the first depths only; see `Encoder.set_active_depth`.

        With exit heads the one of the last of them answers.

        Raises:
            SettingsError: no such number, or some stored weights would not run and so not train.
        """
        self.model.set_active_depth(depths, allow_idle=allow_idle)

    def logits_after(
        self, depth: int, features: Float[Tensor, "rows H"]
    ) -> Float[Tensor, "rows C"]:
        """Return the logits after so many depths (1..L) of pooled first tokens, or of tokens."""
        if self.exits is None or depth == self.config.num_hidden_layers:
            return self.heads[self.head](features)
        return self.exits(features, depth)

    def compile_block(self, *, dynamic: bool = True, backend: str | Backend = "inductor") -> None:
        """Compile the one block that depths share; see `Encoder.compile_block`."""
        self.model.compile_block(dynamic=dynamic, backend=backend)

    def forward(
        self,
        input_ids: Int[Tensor, "*batch S"],
        attention_mask: Shaped[Tensor, "*batch S"] | None = None,
        token_type_ids: Int[Tensor, "*batch S"] | None = None,
        position_ids: Int[Tensor, "*rows S"] | None = None,
        labels: Labels | None = None,
        *,
        masked_positions: Int[Tensor, " P"] | None = None,
        normalize: bool = False,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> HeadOutput:
        """Run a padded batch; arguments as `AlbertModel.forward`, and these.

        Args:
            input_ids: [B, S], for `choice` [B, C, S].
            attention_mask: as `input_ids`.
            token_type_ids: as `input_ids`.
            position_ids: as `input_ids`.
            labels: see the table of this class. Labels on padding do not count.
            masked_positions: for `mlm`: flat indices `row * S + column`, where alone logits are computed.
            normalize: for `embedding`: whether to scale to length 1.
            output_hidden_states: whether to return the hidden state of every depth.
            output_attentions: whether to return the attention probabilities.

        Raises:
            DataError: inputs or labels of a wrong shape or range.
        """
        choices = None
        if self.head == "choice":
            parts = (attention_mask, token_type_ids, position_ids)
            for part in (input_ids, *(part for part in parts if part is not None)):
                require_tensor("every input", part)
            if input_ids.ndim != 3:
                raise DataError(
                    f"a choice head needs input_ids [B, C, S], got shape {tuple(input_ids.shape)}"
                )
            choices = int(input_ids.shape[1])
            input_ids = input_ids.flatten(0, 1)
            attention_mask = None if attention_mask is None else attention_mask.flatten(0, 1)
            token_type_ids = None if token_type_ids is None else token_type_ids.flatten(0, 1)
            position_ids = None if position_ids is None else position_ids.flatten(0, -2)
        packing, inputs = self.model.pack_inputs(
            input_ids, attention_mask, token_type_ids, position_ids
        )
        if masked_positions is not None:
            masked_positions = packed_positions(masked_positions, packing)
        output = self.forward_packed(
            inputs[0],
            packing,
            *inputs[1:],
            labels=self._pack_labels(labels, packing, masked_positions),
            masked_positions=masked_positions,
            num_choices=choices,
            normalize=normalize,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        encoded = EncoderOutput(
            output.last_hidden_state,
            output.pooler_output,
            output.hidden_states,
            output.attentions,
        )
        encoded = unpack_output(encoded, packing)
        return HeadOutput(
            output.loss,
            self._unpack_logits(output.logits, packing, masked_positions),
            encoded.last_hidden_state,
            encoded.pooler_output,
            encoded.hidden_states,
            encoded.attentions,
            output.terms,
        )

    def forward_packed(
        self,
        input_ids: Int[Tensor, " T"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"] | None = None,
        position_ids: Int[Tensor, " T"] | None = None,
        labels: Labels | None = None,
        *,
        masked_positions: Int[Tensor, " P"] | None = None,
        num_choices: int | None = None,
        group_sizes: Int[Tensor, " G"] | None = None,
        normalize: bool = False,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> HeadOutput:
        """Run packed tokens; arguments as `AlbertModel.forward_packed`, and these.

        Args:
            input_ids: as `AlbertModel.forward_packed`.
            packing: as `AlbertModel.forward_packed`.
            token_type_ids: as `AlbertModel.forward_packed`.
            position_ids: as `AlbertModel.forward_packed`.
            labels: see the table of this class; token labels are [T], or [P] with `masked_positions`.
            masked_positions: for `mlm`: packed indices where alone logits are computed.
            num_choices: for `choice`: every so many sequences are one question.
            group_sizes: for `choice` instead of `num_choices`: the choices of each question, who may
                differ in number; the logits are then [N], one for each sequence.
            normalize: for `embedding`: whether to scale to length 1.
            output_hidden_states: whether to return the hidden state of every depth.
            output_attentions: whether to return the attention probabilities.

        Raises:
            DataError: inputs or labels of a wrong shape or range.
        """
        encoded = self.model.forward_packed(
            input_ids,
            packing,
            token_type_ids,
            position_ids,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        if self.head == "span_joint":
            joint = cast(JointSpanHead, self.heads["span_joint"])
            hidden = encoded.last_hidden_state
            parts, terms = joint_parts(joint, hidden, packing, token_type_ids, labels)
        else:
            parts = {
                name: self._logits(
                    name, encoded, masked_positions, num_choices, group_sizes, packing
                )
                for name in self.heads
            }
            terms = () if labels is None else self._loss_terms(parts, labels, packing, group_sizes)
        if self.head == "embedding":
            logits: Logits = self._embed(encoded, packing, normalize)
        else:
            logits = parts if self.head == "pretraining" else parts[self.head]
        loss = torch.stack([term.mean for term in terms]).sum() if terms else None
        return HeadOutput(
            loss,
            logits,
            encoded.last_hidden_state,
            encoded.pooler_output,
            encoded.hidden_states,
            encoded.attentions,
            terms,
        )

    def _logits(
        self,
        name: str,
        encoded: EncoderOutput,
        masked_positions: Tensor | None,
        num_choices: int | None,
        group_sizes: Tensor | None,
        packing: Packing,
    ) -> Tensor:
        hidden = encoded.last_hidden_state
        head = self.heads[name]
        if name == "mlm":
            if masked_positions is not None:
                hidden = hidden.index_select(0, masked_positions)
            return head(hidden, self.model.embeddings.token.weight)
        depth = self.model.encoder.num_depths
        if name in ("token", "span"):
            return self.logits_after(depth, hidden)
        if name == "sequence":
            return self.logits_after(depth, cast(Tensor, encoded.pooler_output))
        logits = head(encoded.pooler_output)
        if name != "choice":
            return logits
        if group_sizes is not None:
            if int(group_sizes.sum()) != packing.num_sequences:
                raise DataError(
                    f"group_sizes add up to {int(group_sizes.sum())}, there are "
                    f"{packing.num_sequences} sequences; give the choices of each question"
                )
            return logits[:, 0]
        if not num_choices or packing.num_sequences % num_choices:
            raise DataError(
                f"a choice head needs num_choices that divides the {packing.num_sequences} sequences, "
                f"got {num_choices}"
            )
        return logits.view(-1, num_choices)

    def _loss_terms(
        self,
        logits: dict[str, Tensor],
        labels: Labels,
        packing: Packing,
        group_sizes: Tensor | None,
    ) -> tuple[LossTerm, ...]:
        if self.head == "embedding":
            raise DataError("an embedding head has no loss of its own; leave the labels out")
        if not isinstance(labels, Mapping):
            require_tensor("labels", labels)
            if self.head == "pretraining":
                raise DataError("pretraining labels are a dict with 'mlm' and 'sentence_order'")
            labels = {self.head: labels}
        unknown = sorted(set(labels) - set(logits))
        if unknown or not labels:
            raise DataError(f"labels for {unknown or 'nothing'}; this model has {sorted(logits)}")
        return tuple(
            self._term(name, logits[name], labels[name], packing, group_sizes)
            for name in logits
            if name in labels
        )

    def _term(
        self,
        name: str,
        logits: Tensor,
        labels: Tensor,
        packing: Packing,
        group_sizes: Tensor | None,
    ) -> LossTerm:
        require_tensor(f"labels of {name}", labels)
        if name != "sequence":
            require_integers(f"labels of {name}", labels)
        if name == "span":
            return span_loss(logits, labels, packing)
        if name == "sequence":
            return classification_loss(name, logits, labels, self.config.problem_type)
        if name == "choice" and group_sizes is not None:
            return choice_loss(logits, labels, group_sizes)
        return cross_entropy(name, logits, labels)

    def _embed(self, encoded: EncoderOutput, packing: Packing, normalize: bool) -> Tensor:
        if self.config.litebert.pooling == "mean" or encoded.pooler_output is None:
            vectors = packing.mean_tokens(encoded.last_hidden_state)
        else:
            vectors = encoded.pooler_output
        return functional.normalize(vectors, dim=-1) if normalize else vectors

    def _pack_labels(
        self, labels: Labels | None, packing: Packing, masked_positions: Tensor | None
    ) -> Labels | None:
        if labels is None:
            return None
        if not isinstance(labels, Mapping):
            require_tensor("labels", labels)
            return self._pack_one(self.head, labels, packing, masked_positions)
        return {
            name: self._pack_one(name, value, packing, masked_positions)
            for name, value in labels.items()
        }

    def _pack_one(
        self, name: str, labels: Tensor, packing: Packing, masked_positions: Tensor | None
    ) -> Tensor:
        if name not in ("mlm", "token") or (masked_positions is not None and labels.ndim == 1):
            return labels
        packed = packing.pack(labels)
        return packed if masked_positions is None else packed.index_select(0, masked_positions)

    def _unpack_logits(
        self, logits: Logits, packing: Packing, masked_positions: Tensor | None
    ) -> Logits:
        if isinstance(logits, Tensor):
            return self._unpack_one(self.head, logits, packing, masked_positions)
        return {
            name: self._unpack_one(name, value, packing, masked_positions)
            for name, value in logits.items()
        }

    def _unpack_one(
        self, name: str, logits: Tensor, packing: Packing, masked_positions: Tensor | None
    ) -> Tensor:
        if name in ("span", "span_joint"):
            return packing.unpack(logits, fill=torch.finfo(logits.dtype).min)
        if name == "token" or (name == "mlm" and masked_positions is None):
            return packing.unpack(logits)
        return logits
