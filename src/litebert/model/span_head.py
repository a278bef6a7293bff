"""The joint span head of SQuAD 2.0: an end that knows its start, and what kind of answer it is.

Start and end are chosen among the first token and the passage: tokens of segment 1 but the last.
"""

from __future__ import annotations

from typing import Final, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from litebert.errors import DataError, SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.inputs import require_integers
from litebert.model.layers import LayerNorm
from litebert.model.losses import IGNORE_INDEX, LossTerm, cross_entropy
from litebert.model.packing import Packing
from litebert.model.span_layout import START_BEAM, answer_groups

__all__ = ["MASKED", "JointSpanHead", "answer_tokens", "joint_parts"]

MASKED: Final = -1e30
"""Logit of a token where no answer can start or end. Source: official `squad_utils.py`."""


class JointSpanHead(nn.Module):
    """Start, end given the start, and classes of the answer, from packed hidden states.

    Source: official `squad_utils.py`, `create_v2_model`; facts of the paper's SQuAD 2.0 set-up.
    Differs from the official code: several classes in groups (`answer_groups`) instead of the one
    "impossible"; dropout before them is `classifier_dropout_prob`, 0.1 there and in every published
    configuration.

    Raises:
        SettingsError: a model without two segments, which cannot tell the passage.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        if config.type_vocab_size < 2:
            raise SettingsError(
                f"a span_joint head tells question and passage by their segments, but type_vocab_size "
                f"is {config.type_vocab_size}; allowed: 2 and above"
            )
        hidden = config.hidden_size
        self.start = nn.Linear(hidden, 1)
        self.end_dense = nn.Linear(2 * hidden, hidden)
        self.end_norm = LayerNorm(hidden, eps=config.layer_norm_eps)
        self.end = nn.Linear(hidden, 1)
        self.answer_dense = nn.Linear(2 * hidden, hidden)
        self.answer = nn.Linear(hidden, config.num_labels, bias=False)
        self.groups = answer_groups(list(config.id2label.values()))
        self.dropout_prob = config.classifier_dropout_prob

    def forward(
        self,
        hidden: Float[Tensor, "T H"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"],
    ) -> Float[Tensor, "T C"]:
        """Return one row for each token; `litebert.model.span_layout` names the columns."""
        allowed = answer_tokens(packing, token_type_ids)
        starts = self._log_probs(self.start(hidden), allowed, packing)  # [B, S]
        width = min(START_BEAM, starts.shape[1])
        # A stable order, so that equal starts keep theirs on every device.
        best = starts.sort(dim=1, descending=True, stable=True).indices[:, :width]
        rows = _packed_rows(packing).gather(1, best)  # [B, k]
        ranks = torch.full_like(hidden[:, 0], -1.0, dtype=torch.float32)
        chosen = packing.unpack(allowed).gather(1, best)
        order = torch.arange(width, device=hidden.device, dtype=torch.float32).expand_as(best)
        ranks[rows[chosen]] = order[chosen]
        around, given = self._end_parts(hidden, rows)
        ends = [
            self._log_probs(self._end_logits(around, given[:, k], packing), allowed, packing)
            for k in range(width)
        ]
        ends += [torch.full_like(starts, MASKED)] * (START_BEAM - width)
        columns = packing.pack(torch.stack([starts, *ends], dim=2))  # [T, 1 + k]
        classes = self._classes(hidden, packing.pack(starts), packing)
        spread = classes.index_select(0, packing.sequence_ids)
        return torch.cat([columns[:, :1], ranks[:, None], columns[:, 1:], spread], dim=1)

    def loss(
        self,
        hidden: Float[Tensor, "T H"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"],
        labels: Int[Tensor, "N K"],
    ) -> LossTerm:
        """Return half the loss of start and end, and half that of the answer's classes.

        The end is learnt given the true start.

        Args:
            hidden: packed hidden states.
            packing: bounds of the sequences.
            token_type_ids: 1 for the passage.
            labels: for each sequence start, end (columns of the padded batch, or places in the
                sequence if there was none; 0 for no answer), and one number for each group of
                classes. What is -100, or stands where no answer can, does not count.

        Raises:
            DataError: labels of another shape, or a class that does not exist.
        """
        columns = 2 + len(self.groups)
        if labels.shape != (packing.num_sequences, columns):
            raise DataError(
                f"labels of a span_joint head must be [{packing.num_sequences}, {columns}]: start, end "
                f"and {len(self.groups)} groups of classes; got {tuple(labels.shape)}"
            )
        allowed = answer_tokens(packing, token_type_ids)
        starts = self._log_probs(self.start(hidden), allowed, packing)  # [B, S]
        positions = labels[:, :2].to(device=hidden.device, dtype=torch.int64)
        inside = positions.clamp(0, starts.shape[1] - 1)
        counts = (positions == inside) & packing.unpack(allowed).gather(1, inside)
        rows = _packed_rows(packing).gather(1, inside[:, :1])
        around, given = self._end_parts(hidden, rows)
        ends = self._log_probs(self._end_logits(around, given[:, 0], packing), allowed, packing)
        found = torch.stack([starts, ends], dim=2).gather(1, inside[:, None])[:, 0]  # [N, 2]
        total = torch.where(counts, -found, torch.zeros_like(found)).sum()
        classes = self._classes(hidden, packing.pack(starts), packing)
        for number, (first, last) in enumerate(self.groups):
            total = total + _class_loss(classes[:, first:last], labels[:, 2 + number])
        count = torch.tensor(packing.num_sequences, device=hidden.device)
        return LossTerm("span_joint", 0.5 * total, count)

    def _log_probs(
        self, logits: Float[Tensor, "T 1"], allowed: Bool[Tensor, " T"], packing: Packing
    ) -> Float[Tensor, "B S"]:
        """Log-softmax over the tokens of each sequence that may be chosen."""
        masked = torch.where(allowed, logits[:, 0].float(), MASKED)
        return packing.unpack(masked, fill=MASKED).log_softmax(dim=1)

    def _end_parts(
        self, hidden: Float[Tensor, "T H"], rows: Int[Tensor, "N k"]
    ) -> tuple[Float[Tensor, "T H"], Float[Tensor, "N k H"]]:
        """`end_dense` of (token, start) as a sum, so that each token is multiplied only once."""
        weight = self.end_dense.weight
        width = hidden.shape[1]
        around = functional.linear(hidden, weight[:, :width], self.end_dense.bias)
        states = hidden.index_select(0, rows.reshape(-1)).view(*rows.shape, width)
        return around, functional.linear(states, weight[:, width:])

    def _end_logits(
        self, around: Float[Tensor, "T H"], given: Float[Tensor, "N H"], packing: Packing
    ) -> Float[Tensor, "T 1"]:
        both = around + given.index_select(0, packing.sequence_ids)
        return self.end(self.end_norm(torch.tanh(both)))

    def _classes(
        self, hidden: Float[Tensor, "T H"], starts: Float[Tensor, " T"], packing: Packing
    ) -> Float[Tensor, "N C"]:
        """Logits of the classes from the expected start and the first token."""
        weighted = hidden.float() * starts.exp()[:, None]
        expected = weighted.new_zeros(packing.num_sequences, hidden.shape[1])
        expected = expected.index_add(0, packing.sequence_ids, weighted)
        both = torch.cat([expected, packing.first_tokens(hidden).float()], dim=1)
        features = torch.tanh(self.answer_dense(both))
        if self.training and self.dropout_prob:
            features = functional.dropout(features, self.dropout_prob)
        return self.answer(features).float()


def joint_parts(
    head: JointSpanHead,
    hidden: Float[Tensor, "T H"],
    packing: Packing,
    token_type_ids: Int[Tensor, " T"] | None,
    labels: object,
) -> tuple[dict[str, Tensor], tuple[LossTerm, ...]]:
    """Return rows and loss of a joint span head, each by its name.

    Args:
        head: the head.
        hidden: packed hidden states.
        packing: bounds of the sequences.
        token_type_ids: 0 for the question, 1 for the passage.
        labels: see `JointSpanHead.loss`; None for none. With labels in training the rows have no
            columns: the ends of all best starts are not needed to learn.

    Raises:
        DataError: no segments, or labels that do not fit.
    """
    if token_type_ids is None:
        raise DataError(
            "a span_joint head needs token_type_ids: 0 for the question, 1 for the passage; give what "
            "the tokenizer returns as type_ids"
        )
    if labels is None:
        return {"span_joint": head(hidden, packing, token_type_ids)}, ()
    require_integers("labels of span_joint", labels)
    terms = (head.loss(hidden, packing, token_type_ids, cast(Tensor, labels)),)
    rows = (
        hidden.new_empty(len(hidden), 0) if head.training else head(hidden, packing, token_type_ids)
    )
    return {"span_joint": rows}, terms


def answer_tokens(packing: Packing, token_type_ids: Int[Tensor, " T"]) -> Bool[Tensor, " T"]:
    """Where an answer can start or end: the passage, and the first token, which means none."""
    allowed = token_type_ids == 1
    bounds = packing.cu_seqlens.to(torch.int64)
    firsts, ends = bounds[:-1], bounds[1:]
    if packing.has_empty:
        filled = ends > firsts
        firsts, ends = firsts[filled], ends[filled]
    allowed[ends - 1] = False  # the [SEP] behind the passage
    allowed[firsts] = True
    return allowed


def _packed_rows(packing: Packing) -> Int[Tensor, "B S"]:
    """Packed index of each column of the padded batch; 0 on padding."""
    return packing.unpack(torch.arange(packing.num_tokens, device=packing.cu_seqlens.device))


def _class_loss(logits: Float[Tensor, "N C"], labels: Int[Tensor, " N"]) -> Tensor:
    """Summed loss of one group: softmax over its classes, or yes and no where there is only one."""
    if logits.shape[1] > 1:
        return cross_entropy("span_joint", logits, labels).total
    labels = labels.to(logits.device)
    counts = labels != IGNORE_INDEX
    if bool(((labels != 0) & (labels != 1) & counts).any()):
        raise DataError(
            f"span_joint: a class of yes or no has the labels {sorted(set(labels.tolist()))[:5]}; "
            f"allowed are 0, 1, or {IGNORE_INDEX} for none"
        )
    loss = functional.binary_cross_entropy_with_logits(
        logits[:, 0], labels.clamp(min=0).float(), reduction="none"
    )
    return (loss * counts).sum()
