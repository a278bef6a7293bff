"""The model: embeddings, encoder, pooler. Padded batches are packed on the way in."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from litebert.errors import DataError
from litebert.model.config import AlbertConfig
from litebert.model.embeddings import Embeddings
from litebert.model.encoder import Backend, Checkpointing, Encoder, Trace
from litebert.model.inputs import require_config, require_integers, require_tensor
from litebert.model.layers import init_weights
from litebert.model.packing import Packing
from litebert.model.pooling import pooler_rows

__all__ = ["AlbertModel", "EncoderOutput"]

PackedAttentions = tuple[tuple[Tensor, ...], ...]
"""For each step, for each sequence: probabilities [A, n, n]."""


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """What the model returns; padded shapes from `forward`, packed ones from `forward_packed`.

    Attributes:
        last_hidden_state: [B, S, H] (0 on padding) or [T, H].
        pooler_output: tanh(dense(first token)), [B, H] or [N, H]; None without pooler.
        hidden_states: L + 1 entries like `last_hidden_state`; the first is the input of the first
            depth, after the E -> H projection. None if not asked for.
        attentions: one entry for each step (L of them if `inner_group_num` is 1), [B, A, S, S]
            (0 on padding), or a tuple of [A, n, n] for each sequence. None if not asked for.
    """

    last_hidden_state: Tensor
    pooler_output: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | PackedAttentions | None = None


class AlbertModel(nn.Module):
    """ALBERT encoder. Source: Lan et al. 2020; official `modeling.py`, `AlbertModel`."""

    def __init__(self, config: AlbertConfig, add_pooler: bool = True) -> None:
        require_config(config)
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = nn.Linear(config.pooler_width, config.hidden_size) if add_pooler else None
        init_weights(self, config.initializer_range)

    def set_checkpointing(self, value: Checkpointing) -> None:
        """Choose what is recomputed in the backward pass; see `Encoder.set_checkpointing`.

        Raises:
            SettingsError: no such choice.
        """
        self.encoder.set_checkpointing(value)

    def set_active_depth(self, depths: int | None, *, allow_idle: bool = False) -> None:
        """Run the first depths only; see `Encoder.set_active_depth`.

        Raises:
            SettingsError: no such number, or some stored weights would not run and so not train.
        """
        self.encoder.set_active_depth(depths, allow_idle=allow_idle)

    def compile_block(self, *, dynamic: bool = True, backend: str | Backend = "inductor") -> None:
        """Compile the one block that depths share; see `Encoder.compile_block`."""
        self.encoder.compile_block(dynamic=dynamic, backend=backend)

    def forward(
        self,
        input_ids: Int[Tensor, "B S"],
        attention_mask: Shaped[Tensor, "B S"] | None = None,
        token_type_ids: Int[Tensor, "B S"] | None = None,
        position_ids: Int[Tensor, "_ S"] | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> EncoderOutput:
        """Run a padded batch.

        Args:
            input_ids: token ids in [0, V).
            attention_mask: 1 where a real token stands, else 0; left padding, holes and empty rows are
                allowed. None: no padding.
            token_type_ids: segment ids; None: all 0.
            position_ids: positions, for the batch or for each row; None: the column, whatever the mask.
            output_hidden_states: whether to return the hidden state of every depth.
            output_attentions: whether to return the attention probabilities.

        Raises:
            DataError: shapes that do not fit, ids outside their table, or a sequence that is too long.

        Differs from transformers: hidden states of padding are 0 instead of leftovers, and an empty
        row gives 0 too.
        """
        packing, inputs = self.pack_inputs(input_ids, attention_mask, token_type_ids, position_ids)
        output = self.forward_packed(
            inputs[0],
            packing,
            *inputs[1:],
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )
        return unpack_output(output, packing)

    def forward_packed(
        self,
        input_ids: Int[Tensor, " T"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"] | None = None,
        position_ids: Int[Tensor, " T"] | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> EncoderOutput:
        """Run packed tokens: every projection sees real tokens only.

        Args:
            input_ids: token ids in [0, V), sequence after sequence.
            packing: bounds of the sequences.
            token_type_ids: segment ids; None: all 0.
            position_ids: positions; None: the place of each token in its sequence.
            output_hidden_states: whether to return the hidden state of every depth.
            output_attentions: whether to return the attention probabilities.

        Raises:
            DataError: shapes that do not fit, ids outside their table, or a sequence that is too long.
        """
        hidden = self.embed_packed(input_ids, packing, token_type_ids, position_ids)
        trace = None
        if output_hidden_states or output_attentions:
            trace = Trace([] if output_hidden_states else None, [] if output_attentions else None)
        hidden = self.encoder(hidden, packing, trace, position_ids)
        pooled = self.pool(hidden, packing, token_type_ids)
        states = trace.hidden_states if trace else None
        attentions = trace.attentions if trace else None
        return EncoderOutput(
            hidden,
            pooled,
            None if states is None else tuple(states),
            None if attentions is None else tuple(attentions),
        )

    def embed_packed(
        self,
        input_ids: Int[Tensor, " T"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"] | None = None,
        position_ids: Int[Tensor, " T"] | None = None,
    ) -> Float[Tensor, "T H"]:
        """Return what enters the first depth; arguments as `forward_packed`.

        Raises:
            DataError: shapes that do not fit, ids outside their table, or a sequence that is too long.
        """
        self._check_packed(input_ids, packing, token_type_ids, position_ids)
        places = packing.position_ids if position_ids is None else position_ids
        return self.embeddings(input_ids, token_type_ids, places)

    def pool(
        self,
        hidden: Float[Tensor, "T H"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"] | None = None,
    ) -> Float[Tensor, "N H"] | None:
        """Return tanh(dense(first token)) of each sequence; None without pooler.

        Differs from the official code where `litebert.pooler_reads` says so: see `pooler_rows`.
        """
        if self.pooler is None:
            return None
        word = self.config.litebert.pooler_reads
        return torch.tanh(self.pooler(pooler_rows(hidden, packing, token_type_ids, word)))

    def pack_inputs(
        self,
        input_ids: Int[Tensor, "B S"],
        attention_mask: Shaped[Tensor, "B S"] | None = None,
        token_type_ids: Int[Tensor, "B S"] | None = None,
        position_ids: Int[Tensor, "_ S"] | None = None,
    ) -> tuple[Packing, tuple[Tensor, Tensor | None, Tensor | None]]:
        """Return the packing of a padded batch, and its ids, segment ids and positions, packed.

        Raises:
            DataError: no tensors of whole numbers, shapes that do not fit, or a sequence that is
                too long.
        """
        require_integers("input_ids", input_ids)
        if input_ids.ndim != 2 or input_ids.numel() == 0:
            raise DataError(f"input_ids must be [B, S], got shape {tuple(input_ids.shape)}")
        batch, width = int(input_ids.shape[0]), int(input_ids.shape[1])
        for name, part in (("attention_mask", attention_mask), ("token_type_ids", token_type_ids)):
            if part is not None:
                require_tensor(name, part)
            if part is not None and part.shape != input_ids.shape:
                raise DataError(
                    f"{name} has shape {tuple(part.shape)}, input_ids {tuple(input_ids.shape)}; "
                    "they must be equal"
                )
        if attention_mask is None:
            packing = Packing.full(batch, width, device=input_ids.device)
        else:
            packing = Packing.from_mask(attention_mask)
        if token_type_ids is not None:
            require_integers("token_type_ids", token_type_ids)
        if position_ids is not None:
            require_integers("position_ids", position_ids)
            if position_ids.shape not in ((batch, width), (1, width)):
                raise DataError(
                    f"position_ids has shape {tuple(position_ids.shape)}, allowed are "
                    f"[{batch}, {width}] and [1, {width}]"
                )
            position_ids = packing.pack(position_ids.expand(batch, width))
        else:
            self._check_length(width)
        packed_types = None if token_type_ids is None else packing.pack(token_type_ids)
        return packing, (packing.pack(input_ids), packed_types, position_ids)

    def _check_packed(
        self,
        input_ids: Tensor,
        packing: Packing,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
    ) -> None:
        named = (
            ("input_ids", input_ids),
            ("token_type_ids", token_type_ids),
            ("position_ids", position_ids),
        )
        for name, part in named:
            if part is not None:
                require_integers(name, part)
            if part is not None and part.shape != (packing.num_tokens,):
                raise DataError(
                    f"{name} has shape {tuple(part.shape)}, the packing has {packing.num_tokens} tokens"
                )
        if position_ids is None and packing.padded_shape is None:
            self._check_length(packing.max_length)

    def _check_length(self, length: int) -> None:
        limit = self.config.max_position_embeddings
        if length > limit and self.config.litebert.has_position_table:
            raise DataError(
                f"a sequence has {length} tokens, the model has {limit} positions; "
                "truncate it, or cut it into windows"
            )


def unpack_output(output: EncoderOutput, packing: Packing) -> EncoderOutput:
    """Return a packed output in padded shapes; 0 on padding."""
    states, attentions = output.hidden_states, output.attentions
    return EncoderOutput(
        packing.unpack(output.last_hidden_state),
        output.pooler_output,
        None if states is None else tuple(packing.unpack(state) for state in states),
        None if attentions is None else _unpack_attentions(attentions, packing),
    )


def _unpack_attentions(
    attentions: tuple[Tensor, ...] | PackedAttentions, packing: Packing
) -> tuple[Float[Tensor, "B A S S"], ...]:
    mask = packing.mask()
    batch, width = mask.shape
    padded: list[Tensor] = []
    for step in attentions:
        sequences = tuple(step)
        full = sequences[0].new_zeros(batch, sequences[0].shape[0], width, width)
        for row, probabilities in enumerate(sequences):
            columns = mask[row].nonzero().view(-1)
            full[row][:, columns[:, None], columns] = probabilities
        padded.append(full)
    return tuple(padded)
