"""The model configuration: published ALBERT keys, plus ours under one key `litebert`.

Published `config.json` files load unchanged: known legacy keys are ignored, keys that mean another
model are refused, any other unknown key is an error with a suggestion.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, Self, cast

from pydantic import Field, ValidationError, model_validator

from litebert.errors import CheckpointError, SettingsError
from litebert.files import check_file, read_json
from litebert.model.legacy import (
    BERT_ONLY_KEYS,
    FIXED_KEYS,
    IGNORED_KEYS,
    MAX_CONFIG_BYTES,
    MAX_LABELS,
    REQUIRED_KEYS,
)
from litebert.model.options import FORMAT_VERSION, POOLER_PARTS, LitebertOptions, check_options
from litebert.model.sharing import SHARING, Plan, make_plan, transformers_groups
from litebert.settings import Settings, got

__all__ = ["AlbertConfig", "LitebertOptions"]

MAX_SHOWN: Final = 8
"""Faults of one configuration that a message lists."""
ARCHITECTURES: Final = {
    None: "AlbertModel",
    "mlm": "AlbertForMaskedLM",
    "sentence_order": "AlbertForPreTraining",
    "pretraining": "AlbertForPreTraining",
    "sequence": "AlbertForSequenceClassification",
    "token": "AlbertForTokenClassification",
    "span": "AlbertForQuestionAnswering",
    "span_joint": "AlbertModel",
    "choice": "AlbertForMultipleChoice",
    "embedding": "AlbertModel",
}


class AlbertConfig(Settings):
    """Sizes and constants of one encoder, under their published names.

    Source: official `modeling.py` (AlbertConfig) and the released `albert_config.json` files.
    Differs from transformers: missing sizes are an error instead of silently those of xxlarge.
    """

    vocab_size: int = Field(ge=1, le=2_000_000)
    embedding_size: int = Field(default=128, ge=1, le=16_384)
    hidden_size: int = Field(ge=1, le=16_384)
    num_hidden_layers: int = Field(ge=1, le=256)
    num_hidden_groups: int = Field(default=1, ge=1, le=256)
    inner_group_num: int = Field(default=1, ge=1, le=64)
    num_attention_heads: int = Field(ge=1, le=1024)
    intermediate_size: int = Field(ge=1, le=131_072)
    hidden_act: Literal["gelu", "gelu_new", "relu"] = "gelu_new"
    """`gelu` is the exact (erf) form, `gelu_new` the tanh form that the official code uses."""
    hidden_dropout_prob: float = Field(default=0.0, ge=0.0, lt=1.0)
    attention_probs_dropout_prob: float = Field(default=0.0, ge=0.0, lt=1.0)
    classifier_dropout_prob: float = Field(default=0.1, ge=0.0, lt=1.0)
    max_position_embeddings: int = Field(default=512, ge=1, le=1_000_000)
    type_vocab_size: int = Field(default=2, ge=1, le=65_536)
    layer_norm_eps: float = Field(default=1e-12, ge=0.0, le=1.0)
    initializer_range: float = Field(default=0.02, gt=0.0, le=10.0)
    pad_token_id: int = Field(default=0, ge=0)
    bos_token_id: int | None = Field(default=2, ge=0)
    eos_token_id: int | None = Field(default=3, ge=0)
    id2label: dict[int, str] = Field(default_factory=lambda: {0: "LABEL_0", 1: "LABEL_1"})
    problem_type: (
        Literal["single_label_classification", "multi_label_classification", "regression"] | None
    ) = None
    litebert: LitebertOptions = LitebertOptions()

    @model_validator(mode="before")
    @classmethod
    def _settle_groups(cls, values: Any) -> Any:
        """`none` stores one group per depth and `all` one in total, whatever the default says."""
        if not isinstance(values, dict):
            return values
        table = dict(cast(dict[str, Any], values))
        options = table.get("litebert")
        if isinstance(options, LitebertOptions):
            sharing = options.sharing
        elif isinstance(options, Mapping):
            sharing = cast(Mapping[str, Any], options).get("sharing")
        else:
            sharing = None
        groups, layers = table.get("num_hidden_groups"), table.get("num_hidden_layers")
        if sharing == "none":
            if groups not in (None, 1, layers):
                raise ValueError(
                    f"sharing 'none' has one group per depth, not num_hidden_groups={groups}"
                )
            table["num_hidden_groups"] = layers
        elif sharing == "all":
            if groups not in (None, 1):
                raise ValueError(
                    f"sharing 'all' has one group, not num_hidden_groups={groups}; use 'groups'"
                )
            table["num_hidden_groups"] = 1
        return table

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.litebert.head_size is None and self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is no multiple of num_attention_heads {self.num_attention_heads}"
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads {self.num_attention_heads} is no multiple of "
                f"num_key_value_heads {self.num_key_value_heads}"
            )
        if self.litebert.project_embeddings is False and self.embedding_size != self.hidden_size:
            raise ValueError("project_embeddings = false needs embedding_size = hidden_size")
        check_options(self.litebert, self.head_size)
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(
                f"pad_token_id {self.pad_token_id} is outside the vocabulary of {self.vocab_size}"
            )
        if sorted(self.id2label) != list(range(len(self.id2label))) or not self.id2label:
            raise ValueError(f"id2label must have the keys 0..C-1, got {sorted(self.id2label)[:8]}")
        _ = self.plan  # a plan that cannot be made is an error now, not at the first use
        return self

    @property
    def num_labels(self) -> int:
        """Number of outputs C of a classification head."""
        return len(self.id2label)

    @property
    def label2id(self) -> dict[str, int]:
        """Label -> class index."""
        return {label: index for index, label in self.id2label.items()}

    @property
    def num_key_value_heads(self) -> int:
        """Key-value heads K; A for ordinary multi-head attention."""
        return self.litebert.num_key_value_heads or self.num_attention_heads

    @property
    def head_size(self) -> int:
        """Numbers D of an attention head."""
        return self.litebert.head_size or self.hidden_size // self.num_attention_heads

    @property
    def attention_size(self) -> int:
        """Width A * D of all queries of a token; H unless heads were removed."""
        return self.num_attention_heads * self.head_size

    @property
    def key_value_size(self) -> int:
        """Width K * D of the keys, and of the values, of a token."""
        return self.num_key_value_heads * self.head_size

    @property
    def pooler_width(self) -> int:
        """Numbers that the pooler reads of a sequence; H unless it compares two texts."""
        return self.hidden_size * POOLER_PARTS[self.litebert.pooler_reads]

    @property
    def has_projection(self) -> bool:
        """Whether the embedding output is projected E -> H."""
        chosen = self.litebert.project_embeddings
        return self.embedding_size != self.hidden_size if chosen is None else chosen

    @property
    def plan(self) -> Plan:
        """Steps in running order, `num_hidden_layers * inner_group_num` of them."""
        return make_plan(
            self.litebert.sharing,
            self.num_hidden_layers,
            self.num_hidden_groups,
            self.inner_group_num,
        )

    @property
    def model_type(self) -> Literal["albert", "litebert"]:
        """`albert` only if transformers computes the same function from the same weights."""
        same_plan = transformers_groups(self.plan, self.num_hidden_layers) == self.num_hidden_groups
        same_heads = self.num_key_value_heads == self.num_attention_heads
        same_block = self.litebert.is_albert and self.has_projection
        same_head = self.litebert.head != "span_joint"
        same = same_plan and same_heads and same_block and same_head
        return "albert" if same else "litebert"

    def replace(self, /, **changes: Any) -> AlbertConfig:
        """Return a checked copy with some values changed; `litebert=dict(...)` merges into the options.

        Raises:
            SettingsError: unknown key or wrong value.
        """
        table = self.model_dump()
        options = changes.pop("litebert", {})
        if isinstance(options, LitebertOptions):
            options = options.model_dump()
        if not isinstance(options, Mapping):
            raise SettingsError(f"litebert must be a table of options, got {options!r:.80}")
        table["litebert"] |= options
        return _validate(table | changes, None)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, path: Path | None = None) -> AlbertConfig:
        """Read a published configuration.

        Raises:
            SettingsError: another model type, missing sizes, unknown key, wrong value, or a sharing
                pattern that is not registered: what is read from a folder never names code to import.
        """
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SettingsError(
                f"expected a table of keys and values, got {values!r:.80}", path=path
            )
        return _validate(_published_values(values, path), path)

    @classmethod
    def load(cls, folder: Path) -> AlbertConfig:
        """Read `config.json` of a model folder, or the JSON file itself.

        Raises:
            CheckpointError: missing, unreadable, not JSON, or not an ALBERT configuration.
        """
        path = folder / "config.json" if folder.is_dir() else folder
        return cls.from_dict_checked(read_config_json(path), path)

    @classmethod
    def from_dict_checked(cls, values: Mapping[str, Any], path: Path) -> AlbertConfig:
        """As `from_dict`, for values read from the file `path` of a model folder.

        Raises:
            CheckpointError: whatever is wrong with them.
        """
        try:
            return cls.from_dict(values)
        except SettingsError as error:
            raise CheckpointError(str(error), path=path) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `config.json` in the published layout."""
        table = self.model_dump(exclude={"litebert", "id2label"})
        options = self.litebert.model_dump(exclude_defaults=True)
        table |= {
            "architectures": [ARCHITECTURES[self.litebert.head]],
            "model_type": self.model_type,
            "id2label": {str(index): label for index, label in self.id2label.items()},
            "label2id": self.label2id,
            "tie_word_embeddings": True,
        }
        if options or self.model_type == "litebert":
            table["litebert"] = {"format_version": FORMAT_VERSION} | options
        return dict(sorted(table.items()))


def read_config_json(path: Path) -> dict[str, Any]:
    """Return the object in a `config.json`.

    Raises:
        CheckpointError: missing, no regular file, over 4 MB, not JSON, or not an object.
    """
    if check_file(path) is None:
        raise CheckpointError(
            "there is no such file; a model folder needs a config.json", path=path
        )
    return read_json(path, max_bytes=MAX_CONFIG_BYTES)


def _published_values(values: Mapping[str, Any], path: Path | None) -> dict[str, Any]:
    """Drop legacy keys, refuse foreign ones, and bring labels into our form."""
    model_type = values.get("model_type")
    if model_type not in (None, "albert", "litebert"):
        raise SettingsError(
            f"model_type is {model_type!r:.80}, allowed are 'albert' and 'litebert'; if the weights really "
            "are ALBERT's, correct model_type in config.json",
            path=path,
        )
    missing = [key for key in REQUIRED_KEYS if values.get(key) is None]
    if missing:
        raise SettingsError(
            f"sizes missing: {', '.join(missing)}; other readers would silently take those of "
            "albert-xxlarge, so state them",
            path=path,
        )
    for key, allowed in FIXED_KEYS.items():
        if key in values and values[key] not in allowed:
            raise SettingsError(
                f"{key} = {values[key]!r:.80} is another model, allowed: {allowed}", path=path
            )
    bert_keys = sorted(BERT_ONLY_KEYS & set(values))
    if bert_keys:
        warnings.warn(
            f"{path or 'config'}: keys of a BERT configuration ({', '.join(bert_keys)}) in one that says "
            "albert; loading its weights will tell whether they are ALBERT's",
            stacklevel=4,
        )
    if values.get("ln_type") == "preln":
        warnings.warn(
            f"{path or 'config'}: ln_type 'preln' (LayerNorm before each sub-layer) is another model than "
            "ALBERT; sizes are right, but weights trained so are refused",
            stacklevel=4,
        )
    known = set(AlbertConfig.model_fields) | {"label2id", "num_labels"}
    table: dict[str, Any] = {}
    for key, value in values.items():
        if key in known:
            if value is not None or key in ("bos_token_id", "eos_token_id"):
                table[key] = value
        elif key not in IGNORED_KEYS and key not in FIXED_KEYS and key not in BERT_ONLY_KEYS:
            near = get_close_matches(str(key)[:80], known, n=1)
            hint = (
                f"did you mean {near[0]!r}?" if near else "additions live under the key 'litebert'"
            )
            raise SettingsError(f"unknown key {key!r:.80}; {hint}", path=path)
    _refuse_foreign_sharing(table.get("litebert"), path)
    return table | _labels(table, path)


def _refuse_foreign_sharing(options: Any, path: Path | None) -> None:
    """A dotted path would import and run whatever a stranger's `config.json` names."""
    sharing: Any = options.get("sharing") if isinstance(options, dict) else None
    if isinstance(sharing, str) and ":" in sharing and sharing not in SHARING:
        raise SettingsError(
            f"litebert.sharing is {sharing!r:.80}, which names code; a configuration that is read may "
            f"only name a registered pattern ({', '.join(SHARING)}). If you trust that code, import it "
            f"and call SHARING.register({sharing!r:.80})(it) first",
            path=path,
        )


def _labels(table: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """One id2label out of id2label, label2id (values may be strings) and num_labels."""
    id2label, label2id = table.get("id2label"), table.pop("label2id", None)
    count = table.pop("num_labels", None)
    for name, given in (("id2label", id2label), ("label2id", label2id)):
        if given is not None and not isinstance(given, Mapping):
            raise SettingsError(f"{name} must be an object, got {given!r:.60}", path=path)
    pairs = list(cast(Mapping[Any, Any], id2label or {}).items())
    if id2label is None and label2id is not None:
        pairs = [(index, label) for label, index in cast(Mapping[Any, Any], label2id).items()]
    elif id2label is None and count is not None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MAX_LABELS:
            raise SettingsError(
                f"num_labels is {count!r:.60}, allowed: 1 to {MAX_LABELS:,}", path=path
            )
        pairs = [(index, f"LABEL_{index}") for index in range(count)]
    elif id2label is None:
        return {}
    try:
        labels = sorted((int(index), str(label)) for index, label in pairs)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"id2label has a key that is no number: {str(error)[:120]}"
        raise SettingsError(message, path=path) from error
    if len(dict(labels)) < len(labels):
        raise SettingsError("two labels have the same index; give each label its own", path=path)
    return {"id2label": dict(labels)}


def _validate(table: Mapping[str, Any], path: Path | None) -> AlbertConfig:
    try:
        return AlbertConfig.model_validate(table)
    except ValidationError as error:
        shown = "; ".join(
            f"{'.'.join(str(part)[:60] for part in item['loc']) or 'config'}: "
            f"{item['msg'].removeprefix('Value error, ')}{got(item.get('input'))}"
            for item in error.errors()[:MAX_SHOWN]
        )
        raise SettingsError(shown, path=path) from error
