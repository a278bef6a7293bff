"""`report.json` and `report.md`: what was read, what was kept, and why the rest was dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from litebert.checkpoint.fs import write_atomic
from litebert.recipes.prepare.tally import MAX_LISTED, SplitCounts, Tally

__all__ = ["JSON_FILE", "MARKDOWN_FILE", "write_report"]

JSON_FILE: Final = "report.json"
MARKDOWN_FILE: Final = "report.md"
_SHOWN: Final = 50


def write_report(
    folder: Path, tally: Tally, options: Mapping[str, Any], shards: int, eval_shards: int
) -> None:
    """Write both reports; they hold no times, so that equal results are equal bytes.

    Raises:
        StorageError: the disk refused.
    """
    values = {
        "format_version": 1,
        "options": dict(options),
        "shards": shards,
        "eval_shards": eval_shards,
        "counts": tally.to_json(),
    }
    text = json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    write_atomic(folder / JSON_FILE, text.encode("utf-8", "backslashreplace"))
    text = _markdown(tally, options, shards, eval_shards)
    write_atomic(folder / MARKDOWN_FILE, text.encode("utf-8", "backslashreplace"))


def _markdown(tally: Tally, options: Mapping[str, Any], shards: int, eval_shards: int) -> str:
    lines = [
        "# Prepared corpus",
        "",
        f"{tally.documents:,} documents with {tally.num_bytes:,} bytes of text were read from "
        f"{options['input_files']:,} files ({options['input_bytes']:,} bytes on disk).",
        "",
        "| | for training | held out |",
        "|---|---:|---:|",
        f"| shards | {shards:,} | {eval_shards:,} |",
    ]
    for name in SplitCounts.__slots__:
        pair = (getattr(tally.train, name), getattr(tally.eval, name))
        lines.append(f"| {_TITLES[name]} | {pair[0]:,} | {pair[1]:,} |")
    lines.append(
        f"| unknown tokens, share | {_share(tally.train)} | {_share(tally.eval)} |",
    )
    lines += ["", "## Dropped documents", ""]
    lines += _counted(tally.dropped) or ["None."]
    lines += ["", "## Left out or cut while reading", ""]
    lines += _counted(tally.faults) or ["Nothing."]
    if tally.cut_sentences:
        lines.append(f"- {tally.cut_sentences:,} x sentence cut because it was too long")
    if tally.listed:
        shown = tally.listed[:_SHOWN]
        lines += ["", f"The first {len(shown)}:", "", "```"]
        lines += [" ".join(line.replace("```", "'''").splitlines()) for line in shown]
        lines += ["```"]
        if sum(tally.faults.values()) > _SHOWN:
            lines += ["", f"`{JSON_FILE}` lists up to {MAX_LISTED:,}."]
    lines += ["", "## Options", ""]
    lines += [f"- {name}: `{value}`" for name, value in sorted(options.items())]
    return "\n".join(lines) + "\n"


_TITLES: Final = {
    "documents": "documents",
    "sentences": "sentences",
    "tokens": "tokens",
    "words": "words",
    "unknown": "unknown tokens",
}


def _share(counts: SplitCounts) -> str:
    return f"{counts.unknown / counts.tokens:.3%}" if counts.tokens else "-"


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"- {count:,} x {kind}" for kind, count in sorted(counts.items())]
