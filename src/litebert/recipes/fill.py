"""Words for the masks of a text, from whatever predicts words: an export without torch, else torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.models import locate
from litebert.runtime.exported import is_exported
from litebert.runtime.session import FilledMask, Session

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

    from litebert.text.tokenizer import Tokenizer

__all__ = ["FilledMask", "fill_masks"]


def fill_masks(model: str | Path, text: str, *, top: int = 5) -> list[list[FilledMask]]:
    """Return the likeliest pieces for each [MASK] of a text, best first.

    Args:
        model: export, model folder or run folder with a head for masked words, or a named encoder.
        text: with the mask word at least once.
        top: pieces for each mask, 1 and more.

    Raises:
        CheckpointError: no such model, or one that does not predict words.
        DataError: there is no mask in the text, or it was cut off.
        SettingsError: `top` below 1.
        MissingDependencyError: a model folder, and torch is not installed.
    """
    source = locate(model)
    if is_exported(source):
        return Session(source).fill_mask(text, top=top)
    return _by_torch(source, text, top)


def _by_torch(source: Path, text: str, top: int) -> list[list[FilledMask]]:
    import numpy as np
    import torch

    from litebert.checkpoint.folder import load_model, saved_head
    from litebert.model.packing import Packing
    from litebert.recipes.run_folder import model_folder
    from litebert.text.tokenizer import Tokenizer

    folder = model_folder(source)
    head = saved_head(folder)
    if head not in ("mlm", "pretraining"):
        raise CheckpointError(
            f"its head is {head!r}, which does not predict words; give a folder of `litebert pretrain`",
            path=folder,
        )
    if top < 1:
        raise SettingsError(f"top is {top}; allowed: 1 and above")
    model = load_model(folder, "mlm")
    tokenizer = Tokenizer.from_pretrained(folder)
    encoding = tokenizer.encode(text, max_length=model.config.max_position_embeddings)
    ids = np.asarray(encoding.ids, np.int64)
    masks = np.flatnonzero(ids == tokenizer.mask_id)
    if not len(masks):
        raise DataError("there is no [MASK] in the text, or it is too far behind its start")
    with torch.inference_mode():
        output = model.forward_packed(
            torch.from_numpy(ids),
            Packing.from_lengths([len(ids)]),
            torch.tensor(encoding.type_ids),
            masked_positions=torch.from_numpy(masks),
        )
    logits = output.logits
    assert isinstance(logits, torch.Tensor)  # noqa: S101 - the head mlm alone gives one
    return [
        _likeliest(row[: tokenizer.vocab_size], tokenizer, top) for row in logits.double().numpy()
    ]


def _likeliest(row: Float[ndarray, " V"], tokenizer: Tokenizer, top: int) -> list[FilledMask]:
    import numpy as np

    weights = np.exp(row - row.max())
    order = np.argsort(-weights, kind="stable")[:top].tolist()
    return [FilledMask(tokenizer.token(i), float(weights[i] / weights.sum()), i) for i in order]
