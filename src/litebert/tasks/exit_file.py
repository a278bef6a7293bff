"""`exits.json` of a model folder: how depth, score and speed go together, and the rule to use."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from litebert.errors import CheckpointError, SettingsError
from litebert.files import check_file, read_json
from litebert.tasks.exit_rules import ExitRule, parse_exit

__all__ = ["EXIT_FILE", "ExitCurve", "ExitPoint", "read_exit_curve", "read_exit_rule"]

EXIT_FILE: Final = "exits.json"
FORMAT_VERSION: Final = 1
MAX_BYTES: Final = 4_000_000
_MOST_WORD: Final = 200
_MOST_POINTS: Final = 1000
_LARGEST: Final = 1e15


@dataclass(frozen=True, slots=True)
class ExitPoint:
    """One setting, and what it gives.

    Attributes:
        rule: as `parse_exit` reads it; empty: all sequences end after `depth`.
        depth: depths at most.
        score: main score of the task.
        mean_depth: depths that a token goes through on average.
        sentences_per_second: measured; None where it was not.
    """

    rule: str
    depth: int
    score: float
    mean_depth: float
    sentences_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class ExitCurve:
    """Everything that `litebert exits` found.

    Attributes:
        metric: main score of the task.
        max_drop: how much worse than with all depths it was allowed to be.
        data: name of the labelled file.
        examples: how many were scored.
        threads: threads of the timed runs.
        full: all depths.
        chosen: the fastest setting that is good enough.
        expected_drop: how much worse it is expected to be on other examples: each half scored with
            the setting that the other half chose.
        points: all settings: every depth, every rule.
    """

    metric: str
    max_drop: float
    data: str
    examples: int
    threads: int
    full: ExitPoint
    chosen: ExitPoint
    expected_drop: float
    points: tuple[ExitPoint, ...]

    @property
    def speedup(self) -> float | None:
        """Sentences per second of the chosen setting, by those with all depths."""
        a, b = self.full.sentences_per_second, self.chosen.sentences_per_second
        return None if not a or b is None else b / a

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"format_version": FORMAT_VERSION, "speedup": self.speedup} | asdict(self)

    def to_json(self) -> str:
        """Return the text of `exits.json`."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


def read_exit_rule(folder: Path) -> tuple[ExitRule | None, int | None]:
    """Return the rule and the largest depth that were chosen for a model folder; None: no limit.

    Raises:
        SettingsError: nothing was chosen for it yet.
        CheckpointError: the file is damaged, too large, or of a newer format.
    """
    path = folder / EXIT_FILE
    if check_file(path, max_bytes=MAX_BYTES) is None:
        raise SettingsError(
            f"exit auto: {folder} has no {EXIT_FILE}, so no rule was chosen for it; choose one with "
            "`litebert exits MODEL DATA`, or name one, for example confidence=0.9"
        )
    table = read_json(path, max_bytes=MAX_BYTES)
    version, chosen = table.get("format_version"), table.get("chosen")
    if version != FORMAT_VERSION or not isinstance(chosen, dict):
        raise CheckpointError(
            f"format_version is {version!r:.40}, expected {FORMAT_VERSION} and a table 'chosen'; "
            "make the file again with `litebert exits`",
            path=path,
        )
    values = cast("dict[str, Any]", chosen)
    rule, depth = values.get("rule"), values.get("depth")
    if not isinstance(rule, str) or type(depth) is not int or depth < 1:
        raise CheckpointError(
            f"the chosen rule is {rule!r:.60} with depth {depth!r:.40}; make the file again with "
            "`litebert exits`",
            path=path,
        )
    try:
        return (parse_exit(rule) if rule else None), depth
    except SettingsError as error:
        raise CheckpointError(f"{error}; make it again with `litebert exits`", path=path) from error


def read_exit_curve(folder: Path) -> dict[str, Any] | None:
    """Return what was measured for a model folder, as far as it can be shown; None: nothing.

    Returns:
        `metric`, `data`, `examples`, the `points` of the depths without a rule, shallow first, `full`
        and `chosen`; a point has `rule`, `depth`, `score` and `speed` (sentences a second or None).

    A damaged file is no curve: whoever wants the rule hears of it from `read_exit_rule`.
    """
    path = folder / EXIT_FILE
    try:
        if check_file(path, max_bytes=MAX_BYTES) is None:
            return None
        table = read_json(path, max_bytes=MAX_BYTES)
    except CheckpointError:
        return None
    rows = table.get("points")
    if table.get("format_version") != FORMAT_VERSION or not isinstance(rows, list):
        return None
    points = [_shown(row) for row in cast("list[Any]", rows)]
    full, chosen = _shown(table.get("full")), _shown(table.get("chosen"))
    depths = [point for point in points if point is not None and not point["rule"]]
    words = [table.get(name) for name in ("metric", "data")]
    examples = table.get("examples")
    if full is None or chosen is None or not depths or type(examples) is not int:
        return None
    if not all(isinstance(word, str) and len(word) <= _MOST_WORD for word in words):
        return None
    return {
        "metric": words[0],
        "data": words[1],
        "examples": examples,
        "points": sorted(depths, key=lambda point: point["depth"])[:_MOST_POINTS],
        "full": full,
        "chosen": chosen,
    }


def _shown(value: Any) -> dict[str, Any] | None:
    """A point as a page shows it; None: it is none."""
    if not isinstance(value, dict):
        return None
    row = cast("dict[str, Any]", value)
    rule, depth, score = row.get("rule"), row.get("depth"), row.get("score")
    speed = row.get("sentences_per_second")
    if not isinstance(rule, str) or len(rule) > _MOST_WORD or type(depth) is not int or depth < 1:
        return None
    if not _is_number(score) or not (speed is None or _is_number(speed)):
        return None
    return {"rule": rule, "depth": depth, "score": score, "speed": speed}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and abs(value) < _LARGEST
