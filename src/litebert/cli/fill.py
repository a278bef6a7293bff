"""`litebert fill`: words for the [MASK] in a text."""

from __future__ import annotations

import typer

from litebert.cli.output import show, show_json
from litebert.errors import SettingsError

MASK = "[MASK]"


def fill(
    words: list[str] = typer.Argument(
        metavar="[MODEL] TEXT",
        help="A text with [MASK] in it; before it a folder of `litebert pretrain` or an export, left "
        "out: litebert-small-en.",
    ),
    top: int = typer.Option(5, "--top", "-k", min=1, help="Words for each [MASK]."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Suggest words for each [MASK] of a text, with their probabilities.

    A text may have several masks; each is filled as if the others stayed.
    """
    from litebert.cli.default_model import default_model
    from litebert.recipes.fill import fill_masks

    if len(words) > 2:
        raise SettingsError(f"there are {len(words)} words; put the text in quotes")
    text = words[-1]
    if MASK not in text:
        raise SettingsError(
            f"there is no {MASK} in the text {text!r:.80}; put it where a word is missing"
        )
    model = words[0] if len(words) == 2 else default_model()
    filled = fill_masks(model, text, top=top)
    if as_json:
        rows = [[{"piece": f.piece, "probability": f.probability} for f in mask] for mask in filled]
        show_json({"text": text, "masks": rows})
        return
    for number, mask in enumerate(filled, start=1):
        if len(filled) > 1:
            show(f"{MASK} {number}")
        for found in mask:
            show(f"  {found.probability:>6.1%}  {found.piece}")
