"""One compression step: made beside its place, measured against its start, put in place if good enough."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint import fs
from litebert.checkpoint.files import CARD_FILE, CONFIG_FILE, TASK_FILE, TOKENIZER_FILES
from litebert.errors import CheckpointError, SettingsError
from litebert.files import check_file
from litebert.recipes.compress_measure import MeasureOptions, measure_pair
from litebert.recipes.compress_report import (
    REPORT_FILE,
    StepReport,
    dump_report,
    earlier_steps,
    read_card,
    with_section,
)
from litebert.recipes.figures import save_plots
from litebert.recipes.markup import inline
from litebert.recipes.run_folder import model_folder, require_free
from litebert.train.device import choose_threads

if TYPE_CHECKING:
    from litebert.recipes.figures import Plot

__all__ = ["StepResult", "carry_files", "finish_folder", "run_step"]

_SIDE_FILES: Final = {
    **TOKENIZER_FILES,
    TASK_FILE: 16_000_000,
    "modules.json": 1 << 20,
    "sentence_bert_config.json": 1 << 20,
    "config_sentence_transformers.json": 1 << 20,
    "1_Pooling/config.json": 1 << 20,
}
"""What a folder holds beside configuration, weights, card and report -> its largest size."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step says about itself.

    Attributes:
        facts: JSON values for `report.json`.
        notes: sentences for a person.
        plots: figures by name.
    """

    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()
    plots: Mapping[str, Plot] = field(default_factory=dict[str, Any])


def run_step(
    step: str,
    folder: Path,
    out: Path,
    make: Callable[[Path, Path], StepResult],
    options: MeasureOptions,
) -> StepReport:
    """Make a smaller model of a folder, measure both, and put the result in place.

    The result is written beside `out` first. If it is worse than `options.max_drop` allows, or if
    anything fails, it is deleted and `out` stays as it was.

    Args:
        step: the command, for example "quantize".
        folder: model folder or run folder to start from; it is not changed.
        out: new or empty folder for the result.
        make: (model folder, new folder) -> writes a whole model folder there.
        options: how to measure.

    Raises:
        SettingsError: `out` holds something, or a limit without data.
        DegradedError: the score falls more than allowed.
        CheckpointError: a folder that cannot be used, or the disk refuses.
    """
    options.check()
    source = model_folder(folder)
    check_out(source, out)
    fs.make_folder(out.absolute().parent)
    temporary = out.absolute().with_name(f".{out.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        result = make(source, temporary)
        report = finish_folder(step, source, temporary, result, options, name=out.name)
        fs.replace_folder_atomic(temporary, out.absolute())
    except BaseException:
        with contextlib.suppress(CheckpointError):
            fs.remove_tree(temporary)
        raise
    return report


def check_out(source: Path, out: Path) -> None:
    """Refuse a place for the result that is taken, or that lies inside what it is made from.

    Raises:
        SettingsError: so it is.
    """
    require_free(out)
    if out.resolve() == source.resolve() or source.resolve() in out.resolve().parents:
        raise SettingsError(
            f"{out} lies inside the model folder {source}, which stays as it is; choose another --out"
        )


def finish_folder(
    step: str,
    before: Path,
    after: Path,
    result: StepResult,
    options: MeasureOptions,
    *,
    name: str | None = None,
) -> StepReport:
    """Measure a finished model folder against the one before, and write report, plots and card into it.

    For steps that write their folder themselves (a distillation that was resumed); others use
    `run_step`.

    Args:
        step: the command.
        before: model folder it started from (a teacher, for distillation).
        after: model folder it made; gets `report.json`, `plots/` and a section in `README.md`.
        result: what the step says.
        options: how to measure.
        name: what to call the result; None: the name of `after`.

    Raises:
        DegradedError: the score falls more than allowed; nothing is written then.
        CheckpointError, DataError, SettingsError: as `measure_pair`.
    """
    old, new, outputs = measure_pair(before, after, options)
    report = StepReport(
        step=step,
        before=old,
        after=new if name is None else replace(new, name=name),
        outputs=outputs,
        threads=choose_threads(options.threads),
        data="" if options.evaluation is None else options.evaluation.data.name,
        max_drop=options.max_drop,
        facts=result.facts,
        notes=result.notes,
        figures=tuple(result.plots),
        earlier=earlier_steps(before),
    )
    report.check()
    if result.plots:
        save_plots(result.plots, after / "plots")
    card = read_card(after) or read_card(before) or f"# {inline(report.after.name)}\n"
    fs.write_atomic(after / CARD_FILE, with_section(card, report).encode("utf-8", "replace"))
    fs.write_atomic(after / REPORT_FILE, dump_report(report).encode("utf-8", "backslashreplace"))
    return report


def carry_files(source: Path, target: Path) -> None:
    """Copy tokenizer, task and sentence-transformers files of a model folder into a new one.

    Only names we know, only plain files of a sane size, and none that is there already.

    Raises:
        CheckpointError: one of them is no plain file or too large, or the disk refuses.
    """
    for name, limit in _SIDE_FILES.items():
        path, copy = source / name, target / name
        if check_file(path, max_bytes=limit) is None or copy.exists():
            continue
        fs.make_folder(copy.parent)
        fs.write_file(copy, path.read_bytes())
    if not (target / CONFIG_FILE).exists():
        raise CheckpointError(f"has no {CONFIG_FILE}; save the model first", path=target)
