"""A pretraining run from its first file to its last: folder, settings, summary, plots and card."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint.fs import write_atomic
from litebert.errors import CheckpointError, MissingDependencyError
from litebert.recipes.figures import save_plots
from litebert.recipes.pretrain.report import draw_curves, render_card, result_lines, summarize
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.recipes.run_folder import RunFolder
from litebert.settings import load_settings

if TYPE_CHECKING:
    from litebert.recipes.pretrain.plan import PretrainPlan
    from litebert.recipes.pretrain.run import PretrainOutcome

__all__ = ["SUMMARY", "finish_run", "located", "open_run", "start_run"]

SUMMARY: Final = "summary.json"
FREE_SECTIONS: Final = ("train", "data.verify")
"""What the loop itself compares when a run goes on, or what changes nothing."""
log = logging.getLogger(__name__)


def start_run(plan: PretrainPlan, out: Path | None, name: str, command: str) -> RunFolder:
    """Create the run folder with everything that is known before training.

    Raises:
        SettingsError: `out` is not empty.
        CheckpointError: it cannot be written.
    """
    facts = data_facts(plan)
    return RunFolder.start(out, name=name, command=command, settings=plan.settings, facts=facts)


def located(settings: PretrainSettings) -> PretrainSettings:
    """Return the settings with absolute paths, so that a run can be resumed from anywhere."""
    data, source = settings.data, Path(settings.model.source)
    held_out = data.eval_shards and str(Path(data.eval_shards).absolute())
    paths = {"shards": str(Path(data.shards).absolute()), "eval_shards": held_out}
    model = {"source": str(source.absolute())} if source.is_dir() else {}
    return settings.model_copy(
        update={
            "data": data.model_copy(update=paths),
            "model": settings.model.model_copy(update=model),
        }
    )


def open_run(path: Path, wanted: PretrainSettings) -> tuple[RunFolder, PretrainSettings]:
    """Return the folder and the resolved settings of a run that was started before.

    Args:
        path: the run folder.
        wanted: settings that were asked for now; what decides the result must be as it was.

    Returns:
        The settings of the run, with `wanted`'s choice of device, threads, workers and limits.

    Raises:
        CheckpointError: no run folder, or a run with other data, model or objectives.
        SettingsError: its settings cannot be read.
    """
    folder = RunFolder.open(path)
    before = load_settings(PretrainSettings, folder.config)
    was, now = (s.model_dump(mode="json") for s in (before, located(wanted)))
    changed = [
        f"{section}.{key} was {was[section][key]!r}, is {now[section][key]!r}"
        for section in ("data", "model", "objectives")
        for key in was[section]
        if was[section][key] != now[section][key] and f"{section}.{key}" not in FREE_SECTIONS
    ]
    if changed:
        raise CheckpointError(
            f"cannot resume with other settings: {'; '.join(changed)}; resume with the old ones, "
            "or choose another --out",
            path=path,
        )
    open_steps = {
        name: getattr(before.train, name)
        for name in ("eval_steps", "save_steps")
        if getattr(wanted.train, name) is None
    }
    return folder, before.model_copy(update={"train": wanted.train.model_copy(update=open_steps)})


def data_facts(plan: PretrainPlan) -> dict[str, Any]:
    """Return the content of `data.json`: shards with digests and counts."""
    parts = (("train", plan.shards), ("eval", plan.eval_shards))
    return {
        "format_version": 1,
        "tokenizer_sha256": plan.shards.tokenizer_fingerprint,
        "parts": [
            {
                "role": role,
                "folder": str(shards.folder),
                "sha256": shards.fingerprint,
                "documents": shards.num_documents,
                "sentences": shards.num_sentences,
                "tokens": shards.num_tokens,
            }
            for role, shards in parts
        ],
        "train_examples": len(plan.train_chunks),
        "eval_examples": len(plan.eval_chunks),
    }


def finish_run(outcome: PretrainOutcome, folder: RunFolder) -> list[str]:
    """Write summary, plots and model card of a finished run; return what a person reads."""
    command = (folder.path / "command.txt").read_text(encoding="utf-8").strip()
    summary = summarize(outcome, folder, command)
    folder.write_text(SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    try:
        save_plots(draw_curves(summary), folder.plots)
    except MissingDependencyError as error:
        log.warning("the plots are left out: %s", error)
    card = render_card(summary)
    folder.write_text("README.md", card)
    write_atomic(folder.last / "README.md", card.encode("utf-8"))
    return result_lines(summary, folder)
