"""`quantize`: a model folder into one whose weights are integers, with the error by depth and the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch

from litebert.checkpoint.folder import load_encoder, load_model, saved_head
from litebert.checkpoint.saving import save_model
from litebert.compress.quantize import DepthError, calibrate, depth_errors, with_quantization
from litebert.errors import MissingDependencyError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.packing import Packing
from litebert.model.quantization import Quantization
from litebert.recipes.compress_heal import HealOptions, heal
from litebert.recipes.compress_measure import MeasureOptions, sample_ids
from litebert.recipes.compress_step import StepResult, carry_files, run_step
from litebert.recipes.figures import FIRST, SECOND, Plot, figure_style, new_figure, render

if TYPE_CHECKING:
    from litebert.compress.quantize import Batch
    from litebert.recipes.compress_report import StepReport
    from litebert.recipes.finetune.run import OnRunEvent

__all__ = ["QuantizeJob", "quantize_folder"]

BATCH_TOKENS: Final = 2048


@dataclass(frozen=True, slots=True)
class QuantizeJob:
    """What to do.

    Attributes:
        quantization: which numbers become integers.
        measure: how to measure; its data also calibrate.
        qat: train on with rounding; None: no.
    """

    quantization: Quantization
    measure: MeasureOptions
    qat: HealOptions | None = None


def quantize_folder(
    folder: Path, out: Path, job: QuantizeJob, *, on_event: OnRunEvent | None = None
) -> StepReport:
    """Quantize a model folder; the result is another model folder, with a report.

    Raises:
        SettingsError: quantized already, `out` is taken, or settings that do not fit.
        DegradedError: the score falls more than allowed.
        CheckpointError, DataError: folders or data that cannot be used.
    """

    def make(source: Path, target: Path) -> StepResult:
        plain = _load(source)
        batches = _batches(sample_ids(source, plain.config, job.measure))
        model = with_quantization(cast(AlbertWithHead, plain), job.quantization)
        calibrate(model, batches)
        first = target if job.qat is None else target.with_name(target.name + "-first")
        facts: dict[str, Any] = {"quantization": job.quantization.model_dump()}
        try:
            save_model(model, first)
            carry_files(source, first)
            if job.qat is not None:
                facts["qat"] = heal(first, target, job.qat, on_event=on_event)
        finally:
            if job.qat is not None and first.exists():
                from litebert.checkpoint import fs

                fs.remove_tree(first)
        errors = depth_errors(plain, _load(target), batches)
        facts["depths"] = [asdict(error) for error in errors]
        facts["calibration_tokens"] = sum(packing.num_tokens for _, packing in batches)
        return StepResult(facts, _notes(job, errors), _plots(errors))

    return run_step("quantize", folder, out, make, job.measure)


def _load(folder: Path) -> AlbertModel | AlbertWithHead:
    return load_encoder(folder) if saved_head(folder) is None else load_model(folder)


def _batches(sequences: Sequence[Sequence[int]]) -> list[Batch]:
    """Pack sequences into batches of about `BATCH_TOKENS` tokens."""
    batches: list[Batch] = []
    chunk: list[Sequence[int]] = []
    for number, sequence in enumerate(sequences):
        chunk.append(sequence)
        is_full = sum(map(len, chunk)) >= BATCH_TOKENS
        if is_full or number == len(sequences) - 1:
            flat = np.concatenate([np.asarray(ids, np.int64) for ids in chunk])
            batches.append((torch.from_numpy(flat), Packing.from_lengths([len(c) for c in chunk])))
            chunk = []
    return batches


def _notes(job: QuantizeJob, errors: list[DepthError]) -> tuple[str, ...]:
    chosen, last = job.quantization, errors[-1]
    weights = {"pairs": "int8 that no kernel overflows", "int7": "7 bits in int8", "int8": "int8"}
    inputs = {
        "none": "stay floating point",
        "dynamic": "uint8, sized row by row as they come",
        "static": "uint8, ranges of each depth from the calibration texts",
    }
    return (
        f"Weights: {weights[chosen.weights]}, a scale for each output; token table "
        f"{chosen.embeddings}; each shared weight is rounded and stored once.",
        f"Inputs of the projections: {inputs[chosen.activations]}.",
        f"Hidden states after {last.depth} depths: cosine {last.cosine_mean:.4f} on average, "
        f"{last.cosine_min:.4f} at least, relative error {last.relative:.3f}.",
        "PyTorch computes these integers in floating point, which saves no time; export the folder "
        "(litebert export onnx) for speed.",
    )


def _plots(errors: list[DepthError]) -> dict[str, Plot]:
    """Error over depth; nothing without matplotlib."""
    try:
        with figure_style("quantization"):
            figure = new_figure(6.4, 3.2)
            axes = figure.subplots(1, 2)
            depths = [error.depth for error in errors]
            axes[0].plot(depths, [1 - e.cosine_mean for e in errors], color=FIRST, label="mean")
            axes[0].plot(
                depths, [1 - e.cosine_min for e in errors], color=SECOND, label="worst token"
            )
            axes[0].set_xlabel("depth")
            axes[0].set_ylabel("1 - cosine")
            axes[0].legend()
            axes[1].plot(depths, [error.relative for error in errors], color=FIRST)
            axes[1].set_xlabel("depth")
            axes[1].set_ylabel("relative error")
            plot = render(figure)
    except MissingDependencyError:
        return {}
    return {} if plot is None else {"quantization": plot}
