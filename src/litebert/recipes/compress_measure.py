"""What one model costs and gives, measured side by side with another: size, speed, scores, outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch

from litebert.checkpoint.files import INDEX_FILE, TASK_FILE, WEIGHTS_FILE
from litebert.checkpoint.folder import load_encoder
from litebert.errors import DataError, SettingsError
from litebert.model.packing import Packing
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.record_predict import RecordReport, kind_of
from litebert.tasks.base import load_task
from litebert.tasks.classification import SequenceClassification
from litebert.text.tokenizer import Tokenizer
from litebert.train.device import torch_threads

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.model.albert import AlbertModel
    from litebert.model.config import AlbertConfig
    from litebert.tasks.records import RecordTask

__all__ = [
    "SAMPLE_TEXTS",
    "MeasureOptions",
    "OutputDifference",
    "Side",
    "alternate",
    "measure_pair",
    "sample_ids",
    "weight_bytes",
]

SAMPLE_TEXTS: Final = (
    "Yes.",
    "The kettle boils on the stove.",
    "Where did you put the keys to the garden shed?",
    "Nobody expected the train to arrive before noon, least of all the driver.",
    "Prices rose by 3.5 % in May and fell again in June.",
    "If the parcel is damaged, take a photograph and write to us within two weeks.",
    "A short film about two brothers who repair old radios, told without a single spoken word.",
    "She reads the letter twice, folds it along the old crease, and lays it back into the drawer; "
    "then she goes out to look at the river, which has risen overnight.",
)
"""Texts whose outputs are compared where the user gives none."""

SPEED_SEQUENCES: Final = 8
SPEED_LENGTH: Final = 64
LATENCY_LENGTH: Final = 16
_FIRST_PLAIN_ID: Final = 5
"""Ids below are usually special; random sequences do without."""
_PROBE_SEED: Final = 1
MAX_COMPARED: Final = 32
MAX_TEXTS: Final = 256
"""Texts of the data that calibrate."""


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """What to measure with.

    Attributes:
        evaluation: the user's labelled data; without it nothing is scored.
        texts: whose outputs are compared; empty: those of the data, else `SAMPLE_TEXTS`.
        rounds: timed runs of each model, >= 1; the median counts.
        threads: threads to compute with; None: as `choose_threads`.
        max_drop: how much worse the task's score may become, in its own unit (0.01 of accuracy is
            one point); None: any.
    """

    evaluation: EvaluationJob | None = None
    texts: tuple[str, ...] = ()
    rounds: int = 5
    threads: int | None = None
    max_drop: float | None = None

    def check(self) -> None:
        """Refuse a limit that cannot be checked, before hours are spent.

        Raises:
            SettingsError: a limit below 0 or without data, or no rounds.
        """
        if self.rounds < 1:
            raise SettingsError(f"rounds is {self.rounds}; allowed: 1 and more")
        if self.max_drop is None:
            return
        if not 0.0 <= self.max_drop < float("inf"):
            raise SettingsError(
                f"max_drop is {self.max_drop}; allowed: 0 and more, in the unit of the score: 0.01 "
                "of accuracy is one point"
            )
        if self.evaluation is None:
            raise SettingsError(
                "--max-drop compares scores, so it needs labelled data; give it with --data"
            )


@dataclass(frozen=True, slots=True)
class Side:
    """One model of a comparison.

    Attributes:
        name: name of its folder.
        weight_bytes: bytes of its weight files on disk.
        parameters: stored numbers, each shared one once.
        depth: depths that run.
        tokens_per_second: of `SPEED_SEQUENCES` sequences; 0 if not measured.
        latency_ms: of one short sequence; 0 if not measured.
        metric: the task's main score; empty without data.
        scores: all scores; empty without data.
        examples: records that were scored.
    """

    name: str
    weight_bytes: int
    parameters: int
    depth: int
    tokens_per_second: float = 0.0
    latency_ms: float = 0.0
    metric: str = ""
    scores: dict[str, float] = field(default_factory=dict[str, float])
    examples: int = 0


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """How alike the vectors of two models are, where they have the same width.

    Attributes:
        texts: how many were compared.
        cosine_mean: mean cosine of the vectors of a text.
        cosine_min: least cosine.
    """

    texts: int
    cosine_mean: float
    cosine_min: float


def measure_pair(
    before: Path, after: Path, options: MeasureOptions
) -> tuple[Side, Side, OutputDifference | None]:
    """Measure two model folders on the same data, texts and threads, taking turns where time counts.

    Args:
        before: model folder before a step.
        after: model folder after it.
        options: data and texts.

    Raises:
        CheckpointError: a folder that cannot be used.
        DataError, SettingsError: as `evaluate_folder`.
    """
    options.check()
    folders = (before, after)
    with torch_threads(options.threads), torch.inference_mode():
        models = [load_encoder(folder) for folder in folders]
        sides = [_plain_side(folder, model) for folder, model in zip(folders, models, strict=True)]
        for name, sequences, length in (
            ("tokens_per_second", SPEED_SEQUENCES, SPEED_LENGTH),
            ("latency_ms", 1, LATENCY_LENGTH),
        ):
            runs = [_speed_run(model, sequences, length) for model in models]
            times = alternate([run for run, _ in runs], options.rounds)
            for place, (seconds, (_, tokens)) in enumerate(zip(times, runs, strict=True)):
                value = tokens / seconds if sequences > 1 else 1000.0 * seconds
                sides[place] = replace(sides[place], **{name: value})
        difference = _compare_outputs(folders, models, options)
    del models
    if options.evaluation is not None:
        job = _with_kind(before, options.evaluation)
        sides = [_scored(side, folder, job) for side, folder in zip(sides, folders, strict=True)]
    return sides[0], sides[1], difference


def alternate(runs: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the median seconds of each run; they take turns, so that a busy moment hits all alike."""
    times: list[list[float]] = [[] for _ in runs]
    for number in range(rounds + 1):
        for taken, run in zip(times, runs, strict=True):
            start = time.perf_counter()
            run()
            if number:  # the first round warms up
                taken.append(time.perf_counter() - start)
    return [median(taken) for taken in times]


def weight_bytes(folder: Path) -> int:
    """Return the bytes of a folder's weight files: one file, or the shards and their index."""
    single = folder / WEIGHTS_FILE
    files = (
        [single]
        if single.exists()
        else [folder / INDEX_FILE, *folder.glob("model-*-of-*.safetensors")]
    )
    return sum(path.stat().st_size for path in files if path.exists())


def _plain_side(folder: Path, model: AlbertModel) -> Side:
    from litebert.checkpoint.weights import find_weights

    entries = find_weights(folder).entries.values()
    return Side(
        name=folder.name,
        weight_bytes=weight_bytes(folder),
        parameters=_parameters(entries),
        depth=model.encoder.num_depths,
    )


def _parameters(entries: Any) -> int:
    """Numbers of the file: 4-bit integers lie in pairs, and their scales are no parameters."""
    total = 0
    for entry in entries:
        count = int(np.prod(entry.shape, dtype=np.int64))
        if entry.name.endswith((".scales", "_center", "activation_ranges")):
            continue
        total += 2 * count if entry.name.endswith(".int4") else count
    return total


def _speed_run(model: AlbertModel, sequences: int, length: int) -> tuple[Callable[[], Any], int]:
    config = model.config
    length = min(length, config.max_position_embeddings)
    lengths = [length] * sequences
    ids = torch.from_numpy(_random_ids(config.vocab_size, sum(lengths)))
    packing = Packing.from_lengths(lengths)
    return lambda: model.forward_packed(ids, packing), sum(lengths)


def _random_ids(vocab_size: int, count: int) -> Any:
    low = _FIRST_PLAIN_ID if vocab_size > 2 * _FIRST_PLAIN_ID else 0
    return np.random.default_rng(_PROBE_SEED).integers(low, vocab_size, count)


def _compare_outputs(
    folders: Sequence[Path], models: Sequence[AlbertModel], options: MeasureOptions
) -> OutputDifference | None:
    if models[0].config.hidden_size != models[1].config.hidden_size:
        return None
    texts = options.texts or _data_texts(folders[0], options) or SAMPLE_TEXTS
    first, second = (
        _vectors(model, _encoded(folder, model.config, texts[:MAX_COMPARED]))
        for folder, model in zip(folders, models, strict=True)
    )
    if first.shape != second.shape:
        return None  # one has a tokenizer and the other has none
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = (first * second).sum(axis=1) / np.maximum(norms, 1e-12)
    return OutputDifference(len(cosines), float(cosines.mean()), float(cosines.min()))


def sample_ids(folder: Path, config: AlbertConfig, options: MeasureOptions) -> list[list[int]]:
    """Return token ids to calibrate on: of the told texts, of those of the data, of samples of our own.

    A folder without a tokenizer gets random ids.

    Args:
        folder: model folder with the tokenizer.
        config: its configuration.
        options: texts and data.
    """
    return _encoded(folder, config, options.texts or _data_texts(folder, options) or SAMPLE_TEXTS)


def _encoded(folder: Path, config: AlbertConfig, texts: Sequence[str]) -> list[list[int]]:
    names = ("spiece.model", "vocab.txt", "tokenizer.json")
    if not any((folder / name).exists() for name in names):
        length = min(32, config.max_position_embeddings)
        return [ids.tolist() for ids in np.split(_random_ids(config.vocab_size, 8 * length), 8)]
    tokenizer = Tokenizer.from_pretrained(folder)
    limit = min(128, config.max_position_embeddings)
    return [list(tokenizer.encode(text, max_length=limit).ids) for text in texts]


def _vectors(model: AlbertModel, probe: list[list[int]]) -> Float[np.ndarray, "N H"]:
    packing = Packing.from_lengths([len(ids) for ids in probe])
    flat = torch.tensor([number for ids in probe for number in ids])
    hidden = model.forward_packed(flat, packing).last_hidden_state
    return packing.mean_tokens(hidden).double().numpy()


def _data_texts(folder: Path, options: MeasureOptions) -> tuple[str, ...]:
    """The first texts of the user's data, where they are a table."""
    from litebert.data.sources import load_source

    job = options.evaluation
    if job is None or not (folder / TASK_FILE).exists():
        return ()
    task = load_task(folder)
    if not isinstance(task, SequenceClassification):
        return ()
    try:
        source = load_source(job.data, job.task, encoding=job.encoding, on_bad_row=job.on_bad_row)
        table = source.eval or source.train
        column = (job.text_columns or task.table_schema.text_columns)[0]
        rows = [str(row.values.get(column, "")) for row in table.rows[:MAX_TEXTS]]
    except (DataError, SettingsError, AttributeError, IndexError):
        return ()  # the scoring says what is wrong with the data
    return tuple(text for text in rows if text.strip())


def _with_kind(folder: Path, job: EvaluationJob) -> EvaluationJob:
    """Name the format of records, which the folder after the step may no longer know."""
    task = load_task(folder) if (folder / TASK_FILE).exists() else None
    if task is None or isinstance(task, SequenceClassification):
        return job
    return replace(job, task=kind_of(folder, cast("RecordTask", task), job.task))


def _scored(side: Side, folder: Path, job: EvaluationJob) -> Side:
    report = evaluate_folder(folder, job)
    if isinstance(report, RecordReport):
        scores, examples = report.scores, report.records
    else:
        scores, examples = report.evaluation.scores, report.examples
    return replace(side, metric=report.metric, scores=dict(scores), examples=examples)
