"""Parts of a model by name, and which of its weights are trained."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from torch import nn

from litebert.errors import SettingsError
from litebert.model.options import PROJECTIONS

__all__ = ["PARTS", "freeze_weights", "names_of_part", "present_parts", "trained_names"]

_STEP: Final = r"encoder\.adapters\.\d+\."
PARTS: Final[dict[str, str]] = {
    "embeddings": r"embeddings\.",
    "block": r"encoder\.(?:attentions|ffns|final_norm|relative)\.",
    "attention": r"encoder\.attentions\.\d+\.(?!norm\.)",
    "ffn": r"encoder\.ffns\.\d+\.(?!norm\.)",
    "norms": r"encoder\.(?:attentions\.\d+\.norm|ffns\.\d+\.norm|final_norm)\.",
    "relative": r"encoder\.relative\.",
    "lora": rf"{_STEP}(?:{'|'.join(PROJECTIONS)})\.",
    "adapters": rf"{_STEP}(?:attention|ffn)_bottleneck\.",
    "depth_norms": rf"{_STEP}(?:attention|ffn)_norm\.",
    "depth_embeddings": r"encoder\.depths\.",
    "pooler": r"pooler\.",
    "head": r"heads\.",
}
"""Word -> how the names of its weights begin. `block` is what depths share, its norms included."""

_PREFIX: Final = "model."


def names_of_part(part: str, names: Collection[str]) -> set[str]:
    """Return the names of the weights that a word of `PARTS` or a pattern means.

    Args:
        part: a word, or a pattern on names such as `encoder.ffns.0.*` (`*`, `?` and `[...]`, as in
            file names; without `model.` at the front).
        names: of all weights of the model.

    Raises:
        SettingsError: an unknown word, or a pattern or word that no weight has.
    """
    plain = {name: name.removeprefix(_PREFIX) for name in names}
    if part in PARTS:
        found = {name for name, short in plain.items() if re.match(PARTS[part], short)}
        if found:
            return found
        raise SettingsError(
            f"this model has no weights in {part!r}; it has: {', '.join(present_parts(names))}"
        )
    found = {name for name, short in plain.items() if fnmatchcase(short, part)}
    if found:
        return found
    is_pattern = any(letter in part for letter in "*?[.")
    near = get_close_matches(part[:120], list(plain.values()) if is_pattern else PARTS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"parts are: {', '.join(PARTS)}"
    what = "no weight has a name like" if is_pattern else "no part is called"
    raise SettingsError(f"{what} {part!r:.80}; {hint}")


def present_parts(names: Iterable[str]) -> list[str]:
    """Return the words of `PARTS` that some of these weights belong to."""
    plain = [name.removeprefix(_PREFIX) for name in names]
    return [part for part, start in PARTS.items() if any(re.match(start, name) for name in plain)]


def trained_names(
    names: Collection[str],
    *,
    only: Sequence[str] | None,
    freeze: Sequence[str] = (),
    train: Sequence[str] = (),
) -> set[str]:
    """Return the names of the weights to train.

    Args:
        names: of all weights.
        only: parts that are trained and no others; None: all.
        freeze: parts that are not trained.
        train: parts that are trained whatever `only` and `freeze` say.

    Raises:
        SettingsError: unknown parts, a part in both lists, or nothing left to train.
    """
    both = sorted(set(freeze) & set(train))
    if both:
        raise SettingsError(f"{', '.join(both)} is both frozen and trained; name it once")
    found = set(names) if only is None else _union(only, names)
    found = (found - _union(freeze, names)) | _union(train, names)
    if not found:
        raise SettingsError("nothing is left to train; freeze less")
    return found


def freeze_weights(model: nn.Module, trained: Collection[str]) -> None:
    """Let the weights of these names, and no others, be trained."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trained)


def _union(parts: Iterable[str], names: Collection[str]) -> set[str]:
    found: set[str] = set()
    for part in parts:
        found |= names_of_part(part, names)
    return found
