"""Score and time a model at every depth and with every rule, and choose the fastest that is good enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.compress.exits.candidates import settings_to_try
from litebert.compress.exits.choice import Candidate, expected_drop, front, try_settings
from litebert.errors import SettingsError
from litebert.recipes.evaluate import EvaluationJob, labelled_examples
from litebert.recipes.exit_run import answers_of_all_depths, set_exit
from litebert.recipes.predictor import Predictor
from litebert.recipes.run_folder import model_folder
from litebert.runtime.text_model import BATCH_TOKENS
from litebert.tasks.exit_file import ExitCurve, ExitPoint
from litebert.tasks.exit_rules import CRITERIA, exit_task
from litebert.tasks.long_texts import encode_long, gather_texts, text_bounds
from litebert.tasks.scores import SCORES
from litebert.train.device import choose_threads, torch_threads

if TYPE_CHECKING:
    from litebert.data.batch import EncodedExample
    from litebert.tasks.exit_rules import Criterion

__all__ = ["ExitJob", "ExitResult", "find_exits"]

MOST_RULES: Final = 6
"""Rules that are timed beside those that may be chosen."""
SAMPLE_SEED: Final = 0
SAME_SPEED: Final = 0.05
"""Speeds that differ by less are the same on a shared machine; then the better score is chosen."""


@dataclass(frozen=True, slots=True)
class ExitJob:
    """What to look for, and with what.

    Attributes:
        evaluation: labelled data.
        max_drop: how much worse than with all depths the main score may be, in its own unit (0.005 of
            accuracy is half a point).
        criteria: rules to try.
        timed: texts that are timed.
        rounds: timed runs of each setting; the fastest counts.
        threads: threads of the timed runs; None: as `choose_threads`.
        batch_tokens: real tokens that enter the first depth together.
    """

    evaluation: EvaluationJob
    max_drop: float = 0.005
    criteria: tuple[Criterion, ...] = CRITERIA
    timed: int = 256
    rounds: int = 3
    threads: int | None = None
    batch_tokens: int = BATCH_TOKENS

    def check(self) -> None:
        """Refuse what cannot be done, before any work.

        Raises:
            SettingsError: so it is.
        """
        if not 0.0 <= self.max_drop < float("inf"):
            raise SettingsError(
                f"max_drop is {self.max_drop}; allowed: 0 and more, in the unit of the score: 0.005 of "
                "accuracy is half a point"
            )
        for name in ("timed", "rounds", "batch_tokens"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is {getattr(self, name)}; allowed: 1 and more")
        unknown = [word for word in self.criteria if word not in CRITERIA]
        if unknown or not self.criteria:
            raise SettingsError(
                f"criteria are {', '.join(self.criteria) or 'none'}; known: {', '.join(CRITERIA)}"
            )


@dataclass(frozen=True, slots=True)
class ExitResult:
    """What was found.

    Attributes:
        folder: model folder.
        curve: all settings.
        scores: all scores with all depths, and with the chosen setting.
        notes: what to know about it, in sentences.
    """

    folder: Path
    curve: ExitCurve
    scores: tuple[dict[str, float], dict[str, float]]
    notes: tuple[str, ...] = field(default=())


def find_exits(
    folder: Path, job: ExitJob, *, on_part: Callable[[str], None] | None = None
) -> ExitResult:
    """Look for the fastest way to stop; nothing is written.

    Args:
        folder: model folder or run folder.
        job: data and limits.
        on_part: is told what is being done.

    Raises:
        CheckpointError: no usable model.
        DataError: unusable data.
        SettingsError: a task whose texts cannot leave early, or a wrong limit.
    """
    job.check()
    tell = on_part or _silently
    path = model_folder(folder)
    predictor = Predictor.load(path)
    task = exit_task(predictor.task)
    examples, _ = labelled_examples(task, job.evaluation)
    tell(f"reading {len(examples):,} texts at every depth")
    windows = [
        window
        for index, example in enumerate(examples)
        for window in encode_long(task, example, predictor.tokenizer, index=index)
    ]
    bounds = text_bounds(windows)
    labels = np.asarray([task.encode_label(example) for example in examples])

    def all_scores(logits: Any, texts: Any) -> dict[str, float]:
        return task.score(gather_texts(logits, bounds)[texts], labels[texts])

    def main_score(logits: Any, texts: Any) -> float:
        return all_scores(logits, texts)[task.metric]

    threads = choose_threads(job.threads)
    with torch_threads(threads):
        table = answers_of_all_depths(predictor.model, windows)
        tell("trying every depth and rule")
        candidates = try_settings(
            table,
            np.asarray([len(window) for window in windows]),
            list(settings_to_try(len(table), task, job.criteria)),
            task,
            main_score,
            len(examples),
        )
        better = SCORES[task.metric].higher_is_better
        good = _good_enough(candidates, job.max_drop, higher_is_better=better)
        timed = _to_time(candidates, good, higher_is_better=better)
        tell(f"timing {len(timed)} settings")
        speeds = _speeds(
            predictor, path, candidates, timed, _sample(windows, job.timed), job, threads
        )
    best = max(speeds[n] for n in timed if n in good)
    fast = [n for n in timed if n in good and speeds[n] >= (1 - SAME_SPEED) * best]
    chosen = max(fast, key=lambda n: ((1 if better else -1) * candidates[n].score, -n))
    points = tuple(_point(item, speeds.get(n)) for n, item in enumerate(candidates))
    texts = np.arange(len(examples))
    curve = ExitCurve(
        metric=task.metric,
        max_drop=job.max_drop,
        data=job.evaluation.data.name,
        examples=len(examples),
        threads=threads,
        full=points[0],
        chosen=points[chosen],
        expected_drop=expected_drop(
            candidates, main_score, len(examples), job.max_drop, higher_is_better=better
        ),
        points=points,
    )
    scores = tuple(all_scores(candidates[n].answers.logits, texts) for n in (0, chosen))
    return ExitResult(path, curve, (scores[0], scores[1]), _notes(predictor, len(examples)))


def _silently(part: str) -> None:
    del part


def _good_enough(
    candidates: Sequence[Candidate], max_drop: float, *, higher_is_better: bool
) -> set[int]:
    sign = 1.0 if higher_is_better else -1.0
    full = candidates[0].score
    return {
        number
        for number, item in enumerate(candidates)
        if number == 0 or sign * (full - item.score) <= max_drop + 1e-12
    }


def _to_time(
    candidates: Sequence[Candidate],
    good: set[int],
    *,
    higher_is_better: bool,
) -> list[int]:
    """Every depth, the cheapest good rules of each criterion, and some of the front."""
    chosen = [n for n, item in enumerate(candidates) if item.setting.rule is None]
    for criterion in CRITERIA:
        rules = [
            n
            for n in sorted(good, key=lambda n: candidates[n].mean_depth)
            if (rule := candidates[n].setting.rule) is not None and rule.criterion == criterion
        ]
        chosen += rules[:2]
    best = front(candidates, higher_is_better=higher_is_better)
    rules = [n for n in best if candidates[n].setting.rule is not None]
    if rules:
        places = np.linspace(0, len(rules) - 1, min(MOST_RULES, len(rules))).round().astype(int)
        chosen += [rules[place] for place in places.tolist()]
    return list(dict.fromkeys(chosen))


def _sample(windows: Sequence[EncodedExample], count: int) -> list[EncodedExample]:
    if len(windows) <= count:
        return list(windows)
    order = np.random.default_rng(SAMPLE_SEED).permutation(len(windows))[:count]
    return [windows[n] for n in sorted(order.tolist())]


def _speeds(
    predictor: Predictor,
    folder: Path,
    candidates: Sequence[Candidate],
    timed: Sequence[int],
    sample: Sequence[EncodedExample],
    job: ExitJob,
    threads: int,
) -> dict[int, float]:
    """Sentences per second of each setting; they take turns."""

    def runner(number: int) -> Callable[[], None]:
        setting = candidates[number].setting

        def run() -> None:
            rule = None if setting.rule is None else str(setting.rule)
            set_exit(predictor, folder, depth=setting.depth, exit_when=rule)
            predictor.outputs(sample, batch_tokens=job.batch_tokens)

        return run

    # With one thread the processor's own time: other programs do not disturb it.
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds = _fastest([runner(number) for number in timed], job.rounds, clock)
    set_exit(predictor, folder)
    return {n: len(sample) / taken for n, taken in zip(timed, seconds, strict=True)}


def _fastest(
    runs: Sequence[Callable[[], None]], rounds: int, clock: Callable[[], float]
) -> list[float]:
    """Return the least seconds of each run; they take turns, the first round warms up."""
    least = [float("inf")] * len(runs)
    for number in range(rounds + 1):
        for place, run in enumerate(runs):
            start = clock()
            run()
            if number:
                least[place] = min(least[place], max(clock() - start, 1e-9))
    return least


def _point(item: Candidate, speed: float | None) -> ExitPoint:
    rule = item.setting.rule
    return ExitPoint(
        rule="" if rule is None else str(rule),
        depth=item.setting.depth,
        score=item.score,
        mean_depth=item.mean_depth,
        sentences_per_second=speed,
    )


def _notes(predictor: Predictor, examples: int) -> tuple[str, ...]:
    notes: list[str] = []
    if predictor.model.exits is None:
        notes.append(
            "The classifier of the last depth answers at every depth. Trained with exits.heads = true or "
            "exits.random_depth, shallow depths answer better."
        )
    if examples < 200:
        notes.append(f"{examples} texts choose a rule by chance; give some hundreds.")
    return tuple(notes)
