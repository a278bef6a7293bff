"""The settings that a search varies: names, ranges, and where each value goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, cast

from litebert.errors import SettingsError
from litebert.settings import got

__all__ = ["NAMED", "Choice", "Dimension", "read_space"]

Choice = str | int | float | bool

NAMED: Final[dict[str, tuple[str, ...]]] = {
    "learning_rate": ("train.learning_rate",),
    "batch_size": ("train.batch_size",),
    "epochs": ("train.epochs",),
    "warmup": ("train.warmup_fraction",),
    "weight_decay": ("train.weight_decay",),
    "dropout": ("model.config.hidden_dropout_prob", "model.config.attention_probs_dropout_prob"),
    "classifier_dropout": ("model.config.classifier_dropout_prob",),
    "embedding_size": ("model.config.embedding_size",),
    "hidden_size": ("model.config.hidden_size",),
    "depth": ("model.config.num_hidden_layers",),
    "sharing": ("model.config.litebert.sharing",),
}
"""Short name -> settings that it sets."""

_PREFIXES: Final = ("train.", "model.config.litebert.", "model.config.")
_FIXED: Final = frozenset(
    f"model.config.{name}"
    for name in ("vocab_size", "max_position_embeddings", "type_vocab_size", "id2label",
                 "problem_type", "pad_token_id", "bos_token_id", "eos_token_id", "litebert")
)  # fmt: skip
"""The texts are encoded once, for all trials."""
_RANGE_KEYS: Final = frozenset({"low", "high", "log", "step"})


@dataclass(frozen=True, slots=True)
class Dimension:
    """One varied setting: a choice, or a range of numbers.

    Attributes:
        name: short name, or path of the setting.
        paths: settings that get the value.
        choices: what is chosen from; empty for a range.
        low, high: ends of a range, both included.
        is_log: whether a range is gone through by ratios.
        is_integer: whether a range has whole numbers only.
        step: distance of neighbours in a range; None: 1 for whole numbers, else any.
    """

    name: str
    paths: tuple[str, ...]
    choices: tuple[Choice, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    is_integer: bool = False
    step: float | None = None

    def ends(self) -> tuple[Choice, ...]:
        """Return values that stand for all: each choice, or both ends."""
        if self.choices:
            return self.choices
        pair = (self.low, self.high)
        return tuple(int(end) for end in pair) if self.is_integer else pair

    def describe(self) -> str:
        """Return the range for a person."""
        if self.choices:
            return ", ".join(str(choice) for choice in self.choices)
        scale = " by ratio" if self.is_log else ""
        step = f" in steps of {self.step:g}" if self.step is not None else ""
        return f"{self.low:g} to {self.high:g}{scale}{step}"

    def to_json(self) -> dict[str, Any]:
        """Return what a later start compares and `tune.json` shows."""
        if self.choices:
            return {"name": self.name, "choices": list(self.choices)}
        return {
            "name": self.name, "low": self.low, "high": self.high, "log": self.is_log,
            "integer": self.is_integer, "step": self.step,
        }  # fmt: skip


def read_space(table: Mapping[str, Any]) -> tuple[Dimension, ...]:
    """Return the dimensions of a table [tune.space].

    Raises:
        SettingsError: an unknown name, a setting that cannot vary, or a range that is none.
    """
    found = [_dimension(name, told) for name, told in _flat(table, "")]
    taken: dict[str, str] = {}
    for dimension in found:
        for path in dimension.paths:
            if path in taken:
                raise SettingsError(
                    f"tune.space: {taken[path]} and {dimension.name} both set {path}; leave one out"
                )
            taken[path] = dimension.name
    return tuple(found)


def _flat(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    """Yield (dotted name, range); an unquoted dotted key of TOML makes tables inside tables."""
    for key, value in table.items():
        if isinstance(value, Mapping) and value and not _RANGE_KEYS & set(value):
            yield from _flat(cast("Mapping[str, Any]", value), f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _dimension(name: str, told: Any) -> Dimension:
    paths = NAMED.get(name, (name,))
    for path in paths:
        prefix = next((p for p in _PREFIXES if path.startswith(p)), None)
        if prefix is None or path in _FIXED or "." in path.removeprefix(prefix):
            near = get_close_matches(name, NAMED, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"names: {', '.join(NAMED)}"
            raise SettingsError(
                f"tune.space: {name!r:.80} cannot vary; {hint} Or give a path such as train.adam_beta2 "
                "or model.config.hidden_act"
            )
    if isinstance(told, list | tuple):
        return Dimension(name, paths, choices=_choices(name, cast("list[Any]", told)))
    if isinstance(told, Mapping):
        return _range(name, paths, cast("Mapping[str, Any]", told))
    raise SettingsError(
        f"tune.space.{name}: expected a list of values, or a table with low and high{got(told)}; to fix "
        "a value, set it outside of [tune]"
    )


def _choices(name: str, told: list[Any]) -> tuple[Choice, ...]:
    wrong = [value for value in told if not isinstance(value, str | int | float | bool)]
    if wrong:
        raise SettingsError(
            f"tune.space.{name}: {wrong[0]!r:.80} is no word, number, true or false"
        )
    if len({(type(value), value) for value in told}) != len(told) or len(told) < 2:
        raise SettingsError(
            f"tune.space.{name}: a choice needs two different values or more, got {told!r:.80}"
        )
    return tuple(told)


def _range(name: str, paths: tuple[str, ...], told: Mapping[str, Any]) -> Dimension:
    unknown = sorted(set(told) - _RANGE_KEYS)
    if unknown:
        raise SettingsError(
            f"tune.space.{name}: no key {unknown[0]!r:.40}; known: low, high, log, step"
        )
    low, high, step = (_number(name, told, key) for key in ("low", "high", "step"))
    is_log = told.get("log", name == "learning_rate" and step is None)
    if not isinstance(is_log, bool):
        raise SettingsError(f"tune.space.{name}.log is true or false{got(is_log)}")
    if low is None or high is None or not low < high:
        raise SettingsError(
            f"tune.space.{name}: low must be below high, both given{got(dict(told))}"
        )
    if is_log and (low <= 0 or step is not None):
        raise SettingsError(f"tune.space.{name}: log needs low above 0, and has no step")
    if step is not None and not 0 < step <= high - low:
        raise SettingsError(f"tune.space.{name}: step must be above 0 and fit between low and high")
    is_integer = all(isinstance(told[key], int) for key in ("low", "high", "step") if key in told)
    return Dimension(
        name, paths, low=low, high=high, is_log=is_log, is_integer=is_integer, step=step
    )


def _number(name: str, told: Mapping[str, Any], key: str) -> float | None:
    value = told.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise SettingsError(f"tune.space.{name}.{key} must be a finite number, got {value!r:.40}")
    return float(value)
