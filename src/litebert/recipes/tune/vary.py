"""A plan with other settings over the same encoded data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from litebert.errors import SettingsError
from litebert.recipes.finetune.defaults import default_train_settings
from litebert.recipes.tune.ranges import train_size
from litebert.train.settings import TrainSettings

if TYPE_CHECKING:
    from litebert.model.config import AlbertConfig
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.recipes.tune.space import Choice, Dimension

__all__ = ["check_space", "varied"]

HIDDEN = "model.config.hidden_size"


def varied(
    base: AnyPlan,
    told: FinetuneSettings,
    space: Sequence[Dimension],
    values: Mapping[str, Choice],
    *,
    for_trial: bool = False,
) -> AnyPlan:
    """Return `base` with the values of a trial; data and vocabulary are those of `base`.

    Args:
        base: plan of the training without a search.
        told: its settings before defaults were filled in.
        space: dimensions.
        values: dimension name -> value.
        for_trial: without baselines, and without fresh starts unless they were told: settings that
            collapse are to be known as such.

    Raises:
        SettingsError: values that make no model or no training.
    """
    train: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for dimension in space:
        for path in dimension.paths:
            _put(path, values[dimension.name], train, config)
    if "hidden_size" in config:
        config = _following(base.model.config, told, config)
    options = config.pop("litebert", {})
    changes = config | ({"litebert": options} if options else {})
    model = dataclasses.replace(base.model, config=base.model.config.replace(**changes))
    table = told.train.model_dump(exclude_unset=True) | train
    if for_trial:
        table["guard"] = {"restarts": 0} | table.get("guard", {})
    try:
        wanted = TrainSettings.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(
            f"train.{place}: {first['msg']} (got {first['input']!r:.80})"
        ) from error
    old = told.model.config
    merged = old | config | ({"litebert": old.get("litebert", {}) | options} if options else {})
    settings = base.settings.model_copy(
        update={
            "train": default_train_settings(wanted, model, train_size(base)),
            "model": told.model.model_copy(update={"config": merged}),
            "has_baselines": told.has_baselines and not for_trial,
            "num_seeds": (told.num_seeds or 1) if for_trial else told.num_seeds,
        }
    )
    return dataclasses.replace(base, settings=settings, model=model)


def check_space(base: AnyPlan, told: FinetuneSettings, space: Sequence[Dimension]) -> None:
    """Try every choice and both ends of every range, each with the first values of the others.

    Raises:
        SettingsError: one of them makes no model or no training; the message names the dimension.
    """
    first = {dimension.name: dimension.ends()[0] for dimension in space}
    for dimension in space:
        for value in dimension.ends():
            try:
                varied(base, told, space, first | {dimension.name: value})
            except SettingsError as error:
                raise SettingsError(f"tune.space.{dimension.name} = {value}: {error}") from error


def _put(path: str, value: Choice, train: dict[str, Any], config: dict[str, Any]) -> None:
    section, _, name = path.rpartition(".")
    if section == "train":
        train[name] = value
    elif section == "model.config":
        config[name] = value
    else:
        config.setdefault("litebert", {})[name] = value


def _following(
    base: AlbertConfig, told: FinetuneSettings, config: dict[str, Any]
) -> dict[str, Any]:
    """Let heads and feed-forward width follow the width, in the proportion of the base model."""
    width = config["hidden_size"]
    head = base.head_size
    follow = {
        "num_attention_heads": width // head if width % head == 0 else 1,
        "intermediate_size": max(1, round(width * base.intermediate_size / base.hidden_size)),
    }
    fixed = set(told.model.config) | set(config)
    return config | {name: value for name, value in follow.items() if name not in fixed}
