"""Sizes in closed form, from the configuration alone: parameters, bytes, operations, activations.

No torch, no weights: counting albert-xxlarge is instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from litebert.errors import SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.head_kinds import EXIT_WORDS, head_kind
from litebert.model.sharing import num_attentions, num_ffns

__all__ = [
    "ParameterCount",
    "activation_bytes",
    "count_parameters",
    "flops_per_token",
    "parameter_count",
    "unique_bytes",
    "unshared_parameter_count",
]

FLOAT32_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters of each part; shared weights count once.

    Attributes:
        embeddings: token, position and segment tables, LayerNorm, projection.
        attentions: all stored attentions with their LayerNorm.
        ffns: all stored feed-forwards with their LayerNorm.
        pooler: dense layer on the first token; 0 without.
        heads: task head, and those of the depths; the tied decoder counts nothing, its bias does.
        options: what options add beside the blocks: relative positions, depth embeddings, low-rank
            updates, bottlenecks, norms of depths, the last norm of pre-norm; 0 for an ALBERT.
    """

    embeddings: int
    attentions: int
    ffns: int
    pooler: int
    heads: int
    options: int = 0

    @property
    def total(self) -> int:
        """All parameters."""
        parts = (self.embeddings, self.attentions, self.ffns, self.pooler, self.heads, self.options)
        return sum(parts)


def parameter_count(
    config: AlbertConfig, *, head: str | None = None, pooler: bool | None = None
) -> int:
    """Return the number of stored parameters.

    Args:
        config: sizes and plan.
        head: head word, None for the bare encoder.
        pooler: whether there is a pooler; None: as the published model of this head, and yes
            without a head.

    Raises:
        SettingsError: no such head.
    """
    return count_parameters(config, head=head, pooler=pooler).total


def count_parameters(
    config: AlbertConfig, *, head: str | None = None, pooler: bool | None = None
) -> ParameterCount:
    """Return the number of stored parameters of each part; arguments as `parameter_count`.

    Raises:
        SettingsError: no such head.
    """
    e, h = config.embedding_size, config.hidden_size
    if pooler is None:
        pooler = head is None or head_kind(head).has_pooler
    rows = config.vocab_size + config.type_vocab_size
    if config.litebert.has_position_table:
        rows += config.max_position_embeddings
    plan = config.plan
    return ParameterCount(
        embeddings=rows * e + 2 * e + (_dense(e, h) if config.has_projection else 0),
        attentions=num_attentions(plan) * (_attention_weights(config) + 2 * h),
        ffns=num_ffns(plan) * (_ffn_weights(config) + 2 * h),
        pooler=_dense(config.pooler_width, h) if pooler else 0,
        heads=0 if head is None else _head_parameters(config, head),
        options=_option_parameters(config),
    )


def unshared_parameter_count(
    config: AlbertConfig, *, head: str | None = None, pooler: bool | None = None
) -> int:
    """Return the parameters that a model of the same depth and width has without any sharing.

    Raises:
        SettingsError: no such head.
    """
    unshared = config.replace(
        num_hidden_groups=config.num_hidden_layers, litebert={"sharing": "none"}
    )
    return parameter_count(unshared, head=head, pooler=pooler)


def unique_bytes(
    config: AlbertConfig,
    *,
    head: str | None = None,
    pooler: bool | None = None,
    bytes_per_parameter: int = FLOAT32_BYTES,
) -> int:
    """Return the bytes of the stored weights, each shared one once.

    Raises:
        SettingsError: no such head.
    """
    return parameter_count(config, head=head, pooler=pooler) * bytes_per_parameter


def flops_per_token(config: AlbertConfig, length: int) -> int:
    """Return the matrix-product operations of one forward pass per token of a sequence.

    A multiplication and an addition count two. A training step takes three times as many. Sharing
    saves none. Softmax, LayerNorm, activations (together about 1 %) and heads are left out, and of
    disentangled attention the projection of the table, which does not depend on the tokens. Local
    depths count the keys that their blocks look at, three times half the window.

    Args:
        config: sizes and plan.
        length: tokens of the sequence, >= 1.

    Raises:
        SettingsError: length below 1.
    """
    _check_positive("length", length)
    h, e = config.hidden_size, config.embedding_size
    width, narrow = config.attention_size, config.key_value_size
    options, inner = config.litebert, config.inner_group_num
    projections = 2 * h * width + 2 * h * narrow
    ffn = (3 if options.ffn == "geglu" else 2) * h * config.intermediate_size
    relative = options.num_relative_terms * options.relative_rows * width
    steps = len(config.plan)
    keys = sum(_keys_seen(config, depth, length) for depth in range(config.num_hidden_layers))
    attention = 2 * inner * keys * width
    return 2 * (
        steps * (projections + ffn + relative + _lora_weights(config) + _bottleneck_weights(config))
        + attention
        + (e * h if config.has_projection else 0)
    )


def activation_bytes(
    config: AlbertConfig,
    tokens: int,
    *,
    mode: Literal["train", "infer"],
    checkpointing: bool | int | Literal["ffn"] = False,
    bytes_per_value: int = FLOAT32_BYTES,
) -> int:
    """Estimate the activations of the encoder that are held at once, in bytes.

    Counts the tensors of a packed batch without dropout: what the backward pass needs in `train`,
    the widest moment in `infer`. Attention probabilities are not counted: plain attention never
    stores them, disentangled attention does (n values for each token and attention head). Heads,
    weights, gradients and the optimizer come on top.

    Args:
        config: sizes and plan.
        tokens: real tokens T of a batch, >= 1.
        mode: with or without a backward pass.
        checkpointing: as `Encoder.set_checkpointing`.
        bytes_per_value: 4 for float32.

    Raises:
        SettingsError: tokens below 1.
    """
    _check_positive("tokens", tokens)
    h, i = config.hidden_size, config.intermediate_size
    width = config.attention_size
    qkv = width + 2 * config.key_value_size
    is_gated = config.litebert.ffn == "geglu"
    if mode == "infer":
        wide = 3 * i if is_gated else 2 * i
        return tokens * bytes_per_value * (2 * h + max(qkv + width + h, wide))
    # query, key, value; context and its log-sum; both sums before LayerNorm; both results
    attention = qkv + width + config.num_attention_heads + 2 * h
    # GELU is computed again in the backward pass; relu and gated activations are held.
    ffn = (4 if is_gated else 2 if config.hidden_act == "relu" else 1) * i + 2 * h
    steps, inner = len(config.plan), config.inner_group_num
    if checkpointing == "ffn":
        held = steps * (attention + h) + ffn
    elif checkpointing:
        size = int(checkpointing)
        segments = -(-config.num_hidden_layers // size)
        held = segments * h + min(size, config.num_hidden_layers) * inner * (attention + ffn)
    else:
        held = steps * (attention + ffn)
    return tokens * bytes_per_value * (held + 2 * config.embedding_size + h)


def _dense(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def _attention_weights(config: AlbertConfig) -> int:
    h = config.hidden_size
    width, narrow = config.attention_size, config.key_value_size
    weights = _dense(h, width) + 2 * _dense(h, narrow) + _dense(width, h)
    options = config.litebert
    if options.has_relative and options.relative_form == "v1":
        weights += h * narrow if "c2p" in options.relative_terms else 0
        weights += _dense(h, width) if "p2c" in options.relative_terms else 0
    return weights


def _ffn_weights(config: AlbertConfig) -> int:
    h, i = config.hidden_size, config.intermediate_size
    entering = 2 if config.litebert.ffn == "geglu" else 1
    return entering * _dense(h, i) + _dense(i, h)


def _option_parameters(config: AlbertConfig) -> int:
    options, h = config.litebert, config.hidden_size
    count = options.relative_rows * h
    if options.has_relative and options.relative_form == "v2":
        count += 2 * h
    if options.depth_embeddings:
        count += config.num_hidden_layers * h
    if options.norm_position == "pre":
        count += 2 * h
    step = _lora_weights(config) + _bottleneck_weights(config)
    if options.adapter_size:
        step += 2 * (options.adapter_size + h)  # biases
    if options.depth_norms:
        step += 2 * 2 * h
    return count + len(config.plan) * step


def _bottleneck_weights(config: AlbertConfig) -> int:
    """Matrices of the two bottlenecks of one step, which are also its multiplications per token."""
    return 2 * 2 * config.hidden_size * config.litebert.adapter_size


def _lora_weights(config: AlbertConfig) -> int:
    """Weights of the low-rank updates of one step, which are also its multiplications per token."""
    options = config.litebert
    if not options.lora_rank:
        return 0
    h, i, width = config.hidden_size, config.intermediate_size, config.attention_size
    narrow = config.key_value_size
    sums = {"key": h + narrow, "value": h + narrow, "gate": h + i, "up": h + i, "down": i + h}
    return options.lora_rank * sum(sums.get(name, h + width) for name in options.lora_on)


def _keys_seen(config: AlbertConfig, depth: int, length: int) -> int:
    """Keys that each query of a depth is multiplied with."""
    window = config.litebert.local_window
    if window is None or not config.litebert.is_local(depth):
        return length
    return min(length, 3 * (window // 2))


def _head_parameters(config: AlbertConfig, head: str) -> int:
    h, e = config.hidden_size, config.embedding_size
    sizes = {
        "mlm": _dense(h, e) + 2 * e + config.vocab_size,
        "sentence_order": _dense(h, config.num_labels),
        "sequence": _dense(h, config.num_labels),
        "token": _dense(h, config.num_labels),
        "span": _dense(h, 2),
        "span_joint": 2 * _dense(2 * h, h) + 2 * h + 2 * _dense(h, 1) + h * config.num_labels,
        "choice": _dense(h, 1),
    }
    exits = 0
    if config.litebert.exit_heads and head in EXIT_WORDS:
        exits = (config.num_hidden_layers - 1) * _dense(h, config.num_labels)
    return exits + sum(sizes[part] for part in head_kind(head).parts)


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise SettingsError(f"{name} is {value}, allowed is >= 1")
