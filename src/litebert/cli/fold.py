"""`litebert fold`: a BERT, or any encoder with a block for each depth, becomes a shared one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from litebert.cli.output import show, show_json


class Sharing(StrEnum):
    """Which depths share a block."""

    groups = "groups"
    cycle = "cycle"


def fold(
    source: Path = typer.Argument(
        metavar="BERT-FOLDER", help="Model folder: BERT layout (safetensors), or litebert."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Model folder to write."),
    embedding_size: int | None = typer.Option(
        None, "--embedding-size", "-E", min=2, help="Width of the cut table; default: not cut."
    ),
    blocks: int = typer.Option(1, "--blocks", min=1, help="Stored blocks."),
    sharing: Sharing = typer.Option(
        Sharing.groups, "--sharing", help="Neighbours share a block, or blocks take turns."
    ),
    keep: str = typer.Option(
        "average",
        "--keep",
        help="Of the depths that share a block: average, stepwise (evenly spaced), or a number "
        "from 0; or the depth that each block is, such as 0,3,5.",
    ),
    lora_rank: int = typer.Option(
        0, "--lora-rank", min=0, help="Rank of what each depth adds, from the SVD of what it lost."
    ),
    depth_norms: bool = typer.Option(
        False, "--depth-norms", help="Keep the LayerNorms of each depth."
    ),
    counts: Path | None = typer.Option(
        None, "--counts", help="Shards whose texts decide what the cut table keeps."
    ),
    data: Path | None = typer.Option(
        None, "--data", help="Labelled data to score on before and after."
    ),
    task: str | None = typer.Option(None, "--task", help="How --data is read, such as stsb."),
    max_drop: float | None = typer.Option(
        None, "--max-drop", help="Refuse a result that scores so much worse."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Fold the blocks of a BERT into a shared one.

    What comes out is a start; heal it with `litebert distill`.
    """
    from litebert.compress.fold import FoldOptions, Keep
    from litebert.errors import SettingsError
    from litebert.recipes.compress_measure import MeasureOptions
    from litebert.recipes.evaluate import EvaluationJob
    from litebert.recipes.fold import fold_folder

    chosen: Keep
    if keep in ("average", "stepwise"):
        chosen = keep
    elif keep.isdecimal():
        chosen = int(keep)
    elif keep.replace(",", "").isdecimal():
        chosen = tuple(int(part) for part in keep.split(",") if part)
    else:
        raise SettingsError(
            f"--keep is {keep!r}; allowed are average, stepwise, a number from 0, or one for each block"
        )
    options = FoldOptions(
        embedding_size=embedding_size,
        blocks=blocks,
        keep=chosen,
        lora_rank=lora_rank,
        depth_norms=depth_norms,
        sharing=sharing.value,
    )
    evaluation = None if data is None else EvaluationJob(data=data, task=task)
    measure = MeasureOptions(evaluation=evaluation, max_drop=max_drop)
    result = fold_folder(source, out, options, counts=counts, measure=measure)
    if as_json:
        show_json(result.to_dict())
    else:
        show("\n".join(result.lines()))
