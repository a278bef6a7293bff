"""What is kept of a text before it becomes pieces, for each script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Clean-up of texts and coverage of their characters.

    Attributes:
        lower_case: lower-case everything.
        keep_accents: keep combining marks: accents, vowel signs, umlauts.
        coverage: fraction of characters, in (0, 1], that must not be unknown.
        languages: what it is for.
    """

    lower_case: bool
    keep_accents: bool
    coverage: float
    languages: str


PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "english": Preset(True, False, 0.99995, "English, as the published vocabulary"),
        "accents": Preset(True, True, 0.99995, "German, French, Polish, Turkish, Vietnamese ..."),
        "cased": Preset(False, True, 0.99995, "as accents, with capital letters (for names)"),
        "cyrillic": Preset(True, True, 0.99995, "Russian, Ukrainian, Bulgarian ..."),
        "greek": Preset(True, True, 0.99995, "Greek"),
        "indic": Preset(True, True, 0.99995, "Hindi, Bengali, Tamil, Telugu ..."),
        "arabic": Preset(True, True, 0.99995, "Arabic, Persian, Urdu; Hebrew"),
        "thai": Preset(True, True, 0.99995, "Thai, Lao, Khmer, Burmese"),
        "cjk": Preset(True, True, 0.9995, "Chinese, Japanese, Korean"),
        "multilingual": Preset(True, True, 0.9995, "many scripts together"),
    }
)
"""By the name that `--script` takes. Only "english" strips marks: elsewhere they carry meaning
(a stripped й is и, a stripped が is か). The coverage is the published one, and lower where the
rarest of thousands of characters would crowd out everything else."""
