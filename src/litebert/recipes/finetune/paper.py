"""The paper's fine-tuning recipes as data: training settings of each task, and the scores they gave.

`litebert train --recipe paper/rte` takes them for everything that is not told. They are meant for the
published sizes; the scores are dev scores of these, to compare with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from litebert.errors import SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.presets import PRESETS, preset
from litebert.models import locate
from litebert.recipes.run_folder import model_folder
from litebert.registry import Registry

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import FinetuneSettings, ModelSettings

__all__ = ["PAPER_RECIPES", "PaperRecipe", "expected_lines", "with_expectation", "with_recipe"]

P = TypeVar("P")
SIZES: Final = {768: "base", 1024: "large", 2048: "xlarge", 4096: "xxlarge"}
"""Hidden size -> name of the published models."""


@dataclass(frozen=True, slots=True)
class PaperRecipe:
    """One row of the paper's table of fine-tuning settings.

    Attributes:
        learning_rate: peak of AdamW.
        batch_size: examples of a step.
        steps: optimizer updates.
        warmup_steps: of these, over which the rate rises.
        dropout: of hidden states and attention probabilities ("ALBERT DR").
        max_length: tokens.
        metric: what `scores` are, in words.
        scores: size -> lowest and highest published dev score, times 100.
        start: "mnli" where the paper starts from a model trained on MNLI.
    """

    learning_rate: float
    batch_size: int
    steps: int
    warmup_steps: int
    dropout: float
    max_length: int
    metric: str
    scores: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    start: str = ""

    @property
    def warmup_fraction(self) -> float:
        """Part of the steps over which the rate rises."""
        return self.warmup_steps / self.steps

    def train(self) -> dict[str, Any]:
        """Return the settings of the loop; the optimizer is that of the official code."""
        return {
            "optimizer": "adamw",
            "schedule": "linear",
            "learning_rate": self.learning_rate,
            "batch_size": self.batch_size,
            "max_steps": self.steps,
            "warmup_fraction": self.warmup_fraction,
            "weight_decay": 0.01,
            "adam_epsilon": 1e-6,
            "bias_correction": False,
            "max_grad_norm": 1.0,
        }

    def config(self) -> dict[str, Any]:
        """Return what changes in the configuration of the model."""
        return {
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.dropout,
            "classifier_dropout_prob": CLASSIFIER_DROPOUT,
        }


CLASSIFIER_DROPOUT: Final = 0.1
"""The same in every row."""

PAPER_RECIPES: Final[Registry[PaperRecipe]] = Registry("recipe")
"""By name: `paper/` and the task. Source: Lan et al. 2020, Table 14, and run_glue.sh.

Scores: Table 2 (base to xxlarge, v1, 125k steps), Tables 9 and 10 (xxlarge, 1.5M steps, single
model), and for base of version 2 what others measured (MNLI 84.2 to 85.0, SST-2 92.6, CoLA 57.6, STS-B
90.9)."""

_RECIPES: Final = {
    "cola": PaperRecipe(
        1e-5, 16, 5336, 320, 0.0, 512, "Matthews", {"base": (57.6, 57.6), "xxlarge": (71.4, 71.4)}
    ),
    "stsb": PaperRecipe(
        2e-5, 16, 3598, 214, 0.0, 512, "Pearson",
        {"base": (90.9, 90.9), "xxlarge": (93.0, 93.0)}, "mnli",
    ),
    "sst2": PaperRecipe(
        1e-5, 32, 20_935, 1256, 0.0, 512, "accuracy",
        {"base": (90.3, 92.6), "large": (91.7, 91.7), "xlarge": (92.4, 92.4), "xxlarge": (95.2, 96.9)},
    ),
    "mnli": PaperRecipe(
        3e-5, 128, 10_000, 1000, 0.0, 512, "accuracy",
        {"base": (81.6, 85.0), "large": (83.5, 83.5), "xlarge": (86.4, 86.4), "xxlarge": (88.0, 90.8)},
    ),
    "qnli": PaperRecipe(
        1e-5, 32, 33_112, 1986, 0.0, 512, "accuracy", {"xxlarge": (95.3, 95.3)}
    ),
    "qqp": PaperRecipe(
        5e-5, 128, 14_000, 1000, 0.1, 512, "accuracy", {"xxlarge": (92.2, 92.2)}
    ),
    "rte": PaperRecipe(
        3e-5, 32, 800, 200, 0.1, 512, "accuracy", {"xxlarge": (89.2, 89.2)}, "mnli"
    ),
    "mrpc": PaperRecipe(
        2e-5, 32, 800, 200, 0.0, 512, "accuracy", {"xxlarge": (90.9, 90.9)}, "mnli"
    ),
    "wnli": PaperRecipe(2e-5, 16, 2000, 250, 0.1, 512, "accuracy"),
    "squad": PaperRecipe(
        5e-5, 48, 3649, 365, 0.0, 384, "F1",
        {"base": (89.3, 89.3), "large": (90.6, 90.6), "xlarge": (92.5, 92.5), "xxlarge": (94.1, 94.8)},
    ),
    "squad_v2": PaperRecipe(
        3e-5, 48, 8144, 814, 0.0, 512, "F1",
        {"base": (80.0, 80.0), "large": (82.3, 82.3), "xlarge": (86.1, 86.1), "xxlarge": (88.1, 90.2)},
    ),
    "race": PaperRecipe(
        2e-5, 32, 12_000, 1000, 0.1, 512, "accuracy",
        {"base": (64.0, 64.0), "large": (68.5, 68.5), "xlarge": (74.8, 74.8), "xxlarge": (82.3, 86.5)},
    ),
    "race-v2": PaperRecipe(1e-5, 32, 12_000, 1000, 0.0, 512, "accuracy"),
}  # fmt: skip
for _name, _recipe in _RECIPES.items():
    PAPER_RECIPES.register(f"paper/{_name}")(_recipe)


def with_recipe(settings: FinetuneSettings) -> FinetuneSettings:
    """Return settings with what their recipe says for everything that was not told.

    `max_steps` stands back for told epochs, and lengths keep to the positions of the model.

    Raises:
        SettingsError: no such recipe.
        CheckpointError: the model folder is not usable.
    """
    if settings.recipe is None:
        return settings
    recipe = PAPER_RECIPES.get(settings.recipe)
    if not isinstance(recipe, PaperRecipe):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(
            f"recipe {settings.recipe!r} is a {type(recipe).__name__}; name a PaperRecipe"
        )
    told = settings.train.model_fields_set
    values = {name: value for name, value in recipe.train().items() if name not in told}
    if "epochs" in told:
        values.pop("max_steps", None)
    update: dict[str, Any] = {
        "train": settings.train.model_copy(update=values),
        "model": settings.model.model_copy(
            update={"config": recipe.config() | settings.model.config}
        ),
    }
    if settings.data.max_length is None and "max_length" not in settings.task:
        length = min(recipe.max_length, _positions(settings.model))
        update["data"] = settings.data.model_copy(update={"max_length": length})
    return settings.model_copy(update=update)


def with_expectation(plan: P) -> P:
    """Return a plan whose notes say what the recipe gave the published models."""
    found: Any = plan
    if found.settings.recipe is None:
        return plan
    lines = tuple(expected_lines(found.settings.recipe, found.model.config.hidden_size))
    return dataclasses.replace(found, notes=(*found.notes, *lines))


def expected_lines(name: str, hidden_size: int) -> Iterator[str]:
    """Yield what to expect of a recipe: the score of this size, or of all published sizes.

    Args:
        name: a name of `PAPER_RECIPES`.
        hidden_size: of the model.
    """
    recipe = PAPER_RECIPES.get(name)
    size = SIZES.get(hidden_size)
    known = {
        s: recipe.scores[s] for s in SIZES.values() if s in recipe.scores and size in (s, None)
    }
    shown = ", ".join(f"{s} {_band(*band)}" for s, band in known.items())
    if shown:
        yield f"recipe {name}: published {recipe.metric} on dev of {shown}"
    else:
        yield f"recipe {name}: there is no published score of the size {size or 'of this model'}"
    if size is None:
        yield (
            f"this model is {hidden_size} wide and none of the published ones (768 to 4096): the rate "
            f"{recipe.learning_rate:g} may be too low for it; compare with a run without --recipe"
        )
    if recipe.start:
        yield f"the paper starts {name} from a model trained on {recipe.start.upper()}"


def _band(low: float, high: float) -> str:
    return f"{low:.1f}" if low == high else f"{low:.1f} to {high:.1f}"


def _positions(model: ModelSettings) -> int:
    """Return the longest sequence of the model that will be chosen."""
    told = model.config.get("max_position_embeddings")
    if isinstance(told, int):
        return told
    if locate(model.source).is_dir():
        config = AlbertConfig.load(model_folder(Path(model.source)))
    else:
        config = preset(model.source if model.source in PRESETS else "tiny")
    return config.max_position_embeddings
