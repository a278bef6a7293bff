"""The parts of a model that a host runs one after another: embeddings, each distinct step, the head.

A block that twelve depths share is one part, so it is lowered, stored and packed once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from litebert.errors import ExportError
from litebert.model.activation import activate
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.attend import repeat_heads
from litebert.model.heads import MlmHead
from litebert.model.layers import Attention, FeedForward
from litebert.model.step_adapter import StepAdapter

__all__ = ["EMBED", "HEAD", "MAX_TOKENS", "Parts", "make_parts", "outputs_of"]

MAX_TOKENS: Final = 512
"""Longest text of a model whose positions have no end; memory is planned for it."""
EMBED: Final = "embed"
HEAD: Final = "head"
_MASKED: Final = -1e9
_ROOT: Final = (2 / math.pi) ** 0.5
_CUBIC: Final = 0.044715
_OUTPUTS: Final[dict[str | None, tuple[str, ...]]] = {
    "sequence": ("logits",),
    "sentence_order": ("logits",),
    "choice": ("logits",),
    "token": ("logits",),
    "mlm": ("logits",),
    "span": ("start_logits", "end_logits"),
    "embedding": ("last_hidden_state", "sentence_embedding"),
    "pretraining": ("prediction_logits", "sop_logits"),
}
"""Head word -> names of what the last part returns, in order."""

TorchModel = AlbertModel | AlbertWithHead


def outputs_of(model: TorchModel) -> tuple[str, ...]:
    """Return the names of what the last part returns, in order.

    Raises:
        ExportError: a head that has no such part.
    """
    if not isinstance(model, AlbertWithHead):
        return ("last_hidden_state",) + (("pooler_output",) if model.pooler is not None else ())
    if model.head not in _OUTPUTS:
        raise ExportError(
            f"head {model.head!r} cannot be exported for ExecuTorch; known: "
            f"{', '.join(str(name) for name in _OUTPUTS)}. litebert export onnx has all heads"
        )
    return _OUTPUTS[model.head]


@dataclass(frozen=True, slots=True)
class Parts:
    """A model cut for ExecuTorch; a text is one row, and no dimension is a batch.

    Attributes:
        embed: ids, mask, segments [1, S] -> hidden states [S, H], mask to add [1, 1, S].
        steps: name -> hidden states, mask to add -> hidden states; each distinct step once.
        order: names of steps, one for each step of the plan, in the order they run.
        head: hidden states, mask [1, S] -> outputs.
        outputs: names of what the head returns.
        limit: longest text.
    """

    embed: nn.Module
    steps: dict[str, nn.Module]
    order: tuple[str, ...]
    head: nn.Module
    outputs: tuple[str, ...]
    limit: int

    def modules(self) -> nn.ModuleList:
        """Return all parts as one module."""
        return nn.ModuleList([self.embed, *self.steps.values(), self.head])


def make_parts(model: TorchModel) -> Parts:
    """Cut a model into parts; they share its weights.

    Raises:
        ExportError: options or a head that cannot be exported.
    """
    outputs = outputs_of(model)
    encoder = model.model if isinstance(model, AlbertWithHead) else model
    config, options = encoder.config, encoder.config.litebert
    unknown = [
        name
        for name, is_used in (
            ("rotary positions", options.has_rotary),
            ("disentangled positions", options.has_relative),
            ("local windows", options.local_window is not None),
            ("a pooler that compares two texts", options.pooler_reads == "segments"),
        )
        if is_used
    ]
    if unknown:
        raise ExportError(
            f"{' and '.join(unknown)} cannot be exported for ExecuTorch; litebert export onnx can"
        )
    stack = encoder.encoder
    steps: dict[str, nn.Module] = {}
    order: list[str] = []
    known: dict[tuple[object, ...], str] = {}
    for number, step in enumerate(stack.plan):
        depth = number // stack.inner
        has_own = options.has_step_parts or (options.depth_embeddings and not number % stack.inner)
        key = (step.attention, step.ffn, number if has_own else None)
        if key not in known:
            known[key] = name = f"step_{len(known)}"
            adapter = cast(StepAdapter, stack.adapters[number]) if options.has_step_parts else None
            is_first = options.depth_embeddings and not number % stack.inner
            steps[name] = MobileStep(
                cast(Attention, stack.attentions[step.attention]),
                cast(FeedForward, stack.ffns[step.ffn]),
                adapter,
                stack.depths.weight.detach()[depth] if is_first else None,
            )
        order.append(known[key])
    limit = config.max_position_embeddings if options.has_position_table else MAX_TOKENS
    return Parts(
        MobileEmbed(encoder, limit),
        steps,
        tuple(order),
        MobileHead(model, encoder),
        outputs,
        min(limit, MAX_TOKENS),
    )


class MobileEmbed(nn.Module):
    """Embeddings of one text, and its mask as something to add."""

    def __init__(self, encoder: AlbertModel, limit: int) -> None:
        super().__init__()
        self.tables = encoder.embeddings
        self.register_buffer("places", torch.arange(limit), persistent=False)

    def forward(
        self,
        input_ids: Int[Tensor, "1 S"],
        attention_mask: Int[Tensor, "1 S"],
        token_type_ids: Int[Tensor, "1 S"],
    ) -> tuple[Float[Tensor, "S H"], Float[Tensor, "1 1 S"]]:
        """Return hidden states, and 0 where a token is, else a large negative number."""
        places = cast(Tensor, self.places)[: input_ids.shape[1]]
        tables = self.tables
        summed = tables.token(input_ids[0]) + tables.token_type(token_type_ids[0])
        if tables.position is not None:
            summed = summed + tables.position(places)
        hidden = tables.norm(summed)
        if tables.project is not None:
            hidden = tables.project(hidden)
        return hidden, ((1 - attention_mask) * _MASKED).to(torch.float32)[None]


class MobileStep(nn.Module):
    """One step of the plan on one text, in operators that XNNPACK has."""

    def __init__(
        self,
        attention: Attention,
        ffn: FeedForward,
        adapter: StepAdapter | None,
        depth: Tensor | None,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.ffn = ffn
        self.adapter = adapter
        self.has_depth = depth is not None
        self.register_buffer("depth", depth)
        scale = torch.tensor([attention.heads.size**-0.5])
        self.register_buffer("scale", scale, persistent=False)

    def forward(
        self, hidden: Float[Tensor, "S H"], bias: Float[Tensor, "1 1 S"]
    ) -> Float[Tensor, "S H"]:
        """Return the hidden states after this step."""
        if self.has_depth:
            hidden = hidden + cast(Tensor, self.depth)
        attention, adapter = self.attention, self.adapter
        entering = self._norm(hidden) if attention.is_pre_norm else hidden
        query, key, value = (self._project(name, entering) for name in ("query", "key", "value"))
        context = self._attend(query, key, value, bias)
        update = attention.output(context)
        if adapter is not None:
            update = adapter.squeeze("attention", adapter.add("output", context, update))
        hidden = hidden + update
        if not attention.is_pre_norm:
            hidden = self._norm(hidden)
        return self._feed(hidden)

    def _feed(self, hidden: Tensor) -> Tensor:
        ffn, adapter = self.ffn, self.adapter
        entering = self._norm_of("ffn", hidden) if ffn.is_pre_norm else hidden
        inner = self._linear("up", ffn.up, entering)
        if ffn.is_gated:
            inner = activated(self._linear("gate", ffn.gate, entering), ffn.activation) * inner
        else:
            inner = activated(inner, ffn.activation)
        update = self._linear("down", ffn.down, inner)
        if adapter is not None:
            update = adapter.squeeze("ffn", update)
        return hidden + update if ffn.is_pre_norm else self._norm_of("ffn", hidden + update)

    def _linear(self, name: str, layer: nn.Linear, inputs: Tensor) -> Tensor:
        result = layer(inputs)
        return result if self.adapter is None else self.adapter.add(name, inputs, result)

    def _norm(self, hidden: Tensor) -> Tensor:
        return self._norm_of("attention", hidden)

    def _norm_of(self, place: Literal["attention", "ffn"], hidden: Tensor) -> Tensor:
        norm = self.attention.norm if place == "attention" else self.ffn.norm
        return norm(hidden) if self.adapter is None else self.adapter.normalise(place, norm, hidden)

    def _project(self, name: str, entering: Tensor) -> Float[Tensor, "A S D"]:
        """Return query, key or value by heads. One projection each: cutting a joint one fixes the length."""
        layout = self.attention.heads
        result = self._linear(name, cast(nn.Linear, getattr(self.attention, name)), entering)
        parts = result.unflatten(-1, (-1, layout.size))  # [S, K, D]
        return repeat_heads(parts, layout.heads).transpose(0, 1)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        scores = torch.bmm(query * cast(Tensor, self.scale), key.transpose(1, 2)) + bias
        context = torch.bmm(torch.softmax(scores, dim=-1), value)
        return context.transpose(0, 1).flatten(1)  # [S, H]


class MobileHead(nn.Module):
    """The last norm, the pooler and the head, on one text."""

    def __init__(self, model: TorchModel, encoder: AlbertModel) -> None:
        super().__init__()
        has_head = isinstance(model, AlbertWithHead)
        self.word = model.head if has_head else None
        self.heads = model.heads if has_head else nn.ModuleDict()
        is_pre_norm = encoder.config.litebert.norm_position == "pre"
        self.final_norm = encoder.encoder.final_norm if is_pre_norm else None
        self.pooler = encoder.pooler
        self.is_mean = encoder.config.litebert.pooling == "mean" or encoder.pooler is None
        self.pooler_reads_mean = encoder.config.litebert.pooler_reads == "mean"
        self.table = encoder.embeddings.token.weight if "mlm" in self.heads else None

    def forward(
        self, hidden: Float[Tensor, "S H"], attention_mask: Int[Tensor, "1 S"]
    ) -> tuple[Tensor, ...]:
        """Return the outputs, named by `outputs_of`, each with a first dimension of 1."""
        if self.final_norm is not None:
            hidden = self.final_norm(hidden)
        if self.word is None:
            pooled = () if self.pooler is None else (self._pooled(hidden, attention_mask),)
            return (hidden[None], *pooled)
        if self.word == "embedding":
            vector = (
                self._mean(hidden, attention_mask)
                if self.is_mean
                else self._pooled(hidden, attention_mask)
            )
            return hidden[None], vector
        if self.word == "token":
            return (self.heads["token"](hidden)[None],)
        if self.word == "span":
            both = self.heads["span"](hidden).transpose(0, 1)  # [2, S]
            return both[:1], both[1:]
        words = () if self.table is None else (self._words(hidden, self.table)[None],)
        if self.word == "mlm":
            return words
        part = "sentence_order" if self.word == "pretraining" else self.word
        return (*words, self.heads[part](self._pooled(hidden, attention_mask)))

    def _words(self, hidden: Tensor, table: Tensor) -> Tensor:
        head = cast(MlmHead, self.heads["mlm"])
        inner = head.norm(activated(head.dense(hidden), head.activation))
        return functional.linear(inner, table, head.bias)

    def _pooled(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """tanh(dense(first real token or mean)), [1, H]; a product, for an index would be an operator more."""
        if self.pooler_reads_mean:
            row = self._mean(hidden, mask)
        else:
            row = ((mask.cumsum(1) == 1) & (mask == 1)).to(hidden.dtype) @ hidden
        return torch.tanh(cast(nn.Linear, self.pooler)(row))

    @staticmethod
    def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
        real = mask.to(hidden.dtype)
        return (real @ hidden) / real.sum(1, keepdim=True).clamp_min(1.0)


def activated(inner: Float[Tensor, "*any"], name: str) -> Float[Tensor, "*any"]:
    """Apply an activation by its published name.

    `gelu_new` is written out: XNNPACK computes the form with erf for both, 5e-4 beside it.
    """
    if name != "gelu_new":
        return activate(inner, name)
    cubic = inner + _CUBIC * inner * inner * inner
    return 0.5 * inner * (1.0 + torch.tanh(_ROOT * cubic))


class IntegerTable(nn.Module):
    """An embedding table as int8 with one scale for each row; only rows that are asked for are spread."""

    def __init__(self, table: Float[Tensor, "V E"]) -> None:
        super().__init__()
        scales = (table.abs().amax(1, keepdim=True) / 127).clamp_min(1e-12)
        self.register_buffer("values", (table / scales).round().to(torch.int8))
        self.register_buffer("scales", scales)

    def forward(self, ids: Int[Tensor, "*tokens"]) -> Float[Tensor, "*tokens E"]:
        """Return the rows of ids."""
        rows = functional.embedding(ids, cast(Tensor, self.values)).to(torch.float32)
        return rows * functional.embedding(ids, cast(Tensor, self.scales))
