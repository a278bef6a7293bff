"""What the published configuration has no key for: our options, under its one key `litebert`.

The defaults are ALBERT as published. Every option is data; `check_options` refuses what contradicts
itself or the sizes of the model.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from litebert.model.quantization import Quantization
from litebert.settings import Settings

__all__ = ["FORMAT_VERSION", "POOLER_PARTS", "PROJECTIONS", "LitebertOptions", "check_options"]

FORMAT_VERSION: Final = 1

Projection = Literal["query", "key", "value", "output", "gate", "up", "down"]
PROJECTIONS: Final[tuple[Projection, ...]] = (
    "query",
    "key",
    "value",
    "output",
    "gate",
    "up",
    "down",
)
"""Projections of a block that low-rank updates can change; `gate` with `ffn = "geglu"` only."""

_SAME_FUNCTION: Final = frozenset(
    {
        "format_version",
        "sharing",
        "num_key_value_heads",
        "project_embeddings",
        "head",
        "pooling",
        "exit_heads",
    }
)
"""Options that `AlbertConfig.model_type` judges by themselves, or that change no hidden state."""
_NEEDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("rotary_base", "has_rotary", "positions with 'rotary'"),
    ("relative_distance", "has_relative", "positions with 'disentangled'"),
    ("relative_buckets", "has_relative", "positions with 'disentangled'"),
    ("relative_terms", "has_relative", "positions with 'disentangled'"),
    ("relative_form", "has_relative", "positions with 'disentangled'"),
    ("lora_alpha", "lora_rank", "lora_rank >= 1"),
    ("lora_on", "lora_rank", "lora_rank >= 1"),
    ("global_every", "local_window", "local_window"),
)
"""(option, what makes it count, how that is asked for)."""


POOLER_PARTS: Final = {"first": 1, "mean": 1, "segments": 3}
"""Vectors of width H that the pooler reads, by the word in `pooler_reads`."""


class LitebertOptions(Settings):
    """Our options; see docs/explanation/architecture-options.md for formulas, sources and costs."""

    format_version: int = Field(default=FORMAT_VERSION, ge=1, le=FORMAT_VERSION)
    """Version of this table; a newer one is refused."""
    sharing: str = "groups"
    """Registered sharing pattern (`model/sharing.py`); `groups` is the official one."""
    num_key_value_heads: int | None = Field(default=None, ge=1)
    """Key-value heads shared by the query heads: 1 = multi-query, None = one for each."""
    head_size: int | None = Field(default=None, ge=1, le=16_384)
    """Numbers D of an attention head. None: hidden_size / num_attention_heads, as everywhere; told, heads
    together may be narrower than the model, which is what is left after some were removed."""
    project_embeddings: bool | None = None
    """Whether E -> H is projected. None: only if E != H, as the official code does."""
    head: (
        Literal[
            "mlm",
            "sentence_order",
            "pretraining",
            "sequence",
            "token",
            "span",
            "span_joint",
            "choice",
            "embedding",
        ]
        | None
    ) = None
    """Head the folder was saved with, where `architectures` cannot say it."""
    pooling: Literal["cls", "mean"] = "cls"
    """What the embedding head returns: the pooled first token, or the mean over real tokens."""
    pooler_reads: Literal["first", "mean", "segments"] = "first"
    """What the pooler reads: the first token, as published, or the mean over real tokens, for encoders
    that learnt to put the meaning of a text there; `segments` compares the means of two texts, and is
    three times as wide (`model/pooling.py`)."""
    exit_heads: bool = False
    """Whether each depth but the last has a classifier of its own, for the heads sequence and token. What
    the last depth answers stays the same, so that other readers may leave them out."""
    quantization: Quantization | None = None
    """What is stored and multiplied as integers; None: nothing."""

    positions: Literal[
        "absolute", "rotary", "disentangled", "absolute+rotary", "absolute+disentangled"
    ] = "absolute"
    """How the model knows the order of tokens; without `absolute` there is no table of positions."""
    rotary_base: float = Field(default=10_000.0, gt=1.0, le=1e9)
    """Longest wavelength of rotary positions over 2 pi, in tokens."""
    relative_distance: int = Field(default=128, ge=2, le=65_536)
    """Distance k in tokens from which disentangled attention tells no difference."""
    relative_buckets: int | None = Field(default=None, ge=4, le=65_536)
    """Buckets on each side of a token: near distances one each, far ones by logarithm. None: no buckets."""
    relative_terms: Literal["c2p+p2c", "c2p", "p2c"] = "c2p+p2c"
    """Terms of disentangled attention: content to position, position to content."""
    relative_form: Literal["v1", "v2"] = "v2"
    """v1: relative positions have projections of their own; v2: they use those of the content, after
    a LayerNorm."""
    ffn: Literal["mlp", "geglu"] = "mlp"
    """Feed-forward: `down(act(up(x)))`, or gated, `down(act(gate(x)) * up(x))`."""
    norm_position: Literal["post", "pre"] = "post"
    """LayerNorm after each residual, or before each sub-layer and once more after the last depth."""
    depth_embeddings: bool = False
    """Whether a vector of each depth is added to what enters it; zero at the start."""
    lora_rank: int = Field(default=0, ge=0, le=4096)
    """Rank r of the update that each depth adds to the shared projections; 0: none."""
    lora_alpha: float | None = Field(default=None, gt=0.0, le=1e6)
    """Updates are scaled by alpha / r; None: alpha = r."""
    lora_on: tuple[Projection, ...] = ("query", "key", "value", "output", "up", "down")
    """Projections that get updates."""
    depth_norms: bool = False
    """Whether each depth adds its own to gain and bias of the two LayerNorms of a block; zero at the
    start."""
    adapter_size: int = Field(default=0, ge=0, le=65_536)
    """Width m of a bottleneck H -> m -> H that each depth has after each of its two sub-layers; 0: none."""
    local_window: int | None = Field(default=None, ge=2, le=1_000_000)
    """Tokens i and j of a sequence see each other where |i - j| <= window // 2. None: all do."""
    global_every: int = Field(default=3, ge=0, le=256)
    """With a window, depths 0, n, 2n, ... see the whole sequence; 0: no depth does."""

    @property
    def has_position_table(self) -> bool:
        """Whether absolute positions are looked up; only then is the length limited."""
        return "absolute" in self.positions

    @property
    def has_rotary(self) -> bool:
        """Whether queries and keys are rotated by their position."""
        return "rotary" in self.positions

    @property
    def has_relative(self) -> bool:
        """Whether attention is disentangled."""
        return "disentangled" in self.positions

    @property
    def relative_rows(self) -> int:
        """Rows R of the table of relative positions."""
        return 2 * (self.relative_buckets or self.relative_distance) if self.has_relative else 0

    @property
    def num_relative_terms(self) -> int:
        """Score terms besides content to content: 0, 1 or 2."""
        return len(self.relative_terms.split("+")) if self.has_relative else 0

    @property
    def has_step_parts(self) -> bool:
        """Whether steps have weights of their own beside the blocks."""
        return self.lora_rank > 0 or self.depth_norms or self.adapter_size > 0

    @property
    def lora_scale(self) -> float:
        """Factor alpha / r of the low-rank updates."""
        return 1.0 if self.lora_alpha is None else self.lora_alpha / max(self.lora_rank, 1)

    @property
    def is_albert(self) -> bool:
        """Whether no option asks for an encoder that the published code cannot compute."""
        changed = self.model_dump(exclude_defaults=True)
        return set(changed) <= _SAME_FUNCTION

    def is_local(self, depth: int) -> bool:
        """Whether a depth sees its window only."""
        if self.local_window is None:
            return False
        return self.global_every == 0 or depth % self.global_every != 0


def check_options(options: LitebertOptions, head_size: int) -> None:
    """Refuse options that contradict each other or the size of an attention head.

    Raises:
        ValueError: the message says what and what to do; pydantic makes a `SettingsError` of it.
    """
    defaults: dict[str, Any] = LitebertOptions().model_dump()
    chosen: dict[str, Any] = options.model_dump()
    for name, condition, wanted in _NEEDS:
        if chosen[name] != defaults[name] and not getattr(options, condition):
            raise ValueError(
                f"litebert.{name} = {chosen[name]!r} changes nothing without {wanted}; set that too, or "
                f"leave {name} out"
            )
    if options.has_rotary and head_size % 2:
        raise ValueError(
            f"rotary positions turn pairs of numbers, but heads have {head_size} (hidden_size / "
            "num_attention_heads), an odd number; choose other sizes or positions"
        )
    buckets = options.relative_buckets
    if buckets is not None and (buckets % 2 or buckets >= options.relative_distance):
        raise ValueError(
            f"relative_buckets = {buckets} must be even and below relative_distance = "
            f"{options.relative_distance}; without buckets leave it out"
        )
    if len(set(options.lora_on)) != len(options.lora_on) or not options.lora_on:
        raise ValueError(f"lora_on = {list(options.lora_on)} must name projections, each once")
    if "gate" in options.lora_on and options.ffn != "geglu":
        raise ValueError("lora_on names 'gate', which only ffn = 'geglu' has; take it out")
    if options.local_window is not None and options.global_every == 1:
        raise ValueError(
            "global_every = 1 makes every depth global, so local_window changes nothing; leave "
            "local_window out, or choose 0 or 2 and more"
        )
