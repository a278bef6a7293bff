"""A finished encoder as a folder that can come with litebert: half precision, an int8 graph, a card.

One folder is a model folder to train from, an export that runs without torch, and a folder of
sentence-transformers. `tools/package_encoder.py` calls it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from litebert.checkpoint import fs
from litebert.checkpoint.files import CARD_FILE, CONFIG_FILE, TOKENIZER_FILES
from litebert.checkpoint.folder import load_model, save_model
from litebert.checkpoint.sentence_transformers import write_sentence_transformers
from litebert.errors import CheckpointError, ExportError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.recipes.export import export_model
from litebert.recipes.plain_folder import vector_task
from litebert.recipes.predictor import Predictor
from litebert.recipes.run_folder import model_folder
from litebert.runtime.exported import EXPORT_FILE
from litebert.runtime.session import Session
from litebert.text.tokenizer import Tokenizer

__all__ = ["Package", "package_encoder"]

GRAPH: Final = "onnx/litebert_int8.onnx"
MIN_AGREEMENT: Final = 0.95
"""Least cosine of the vectors of the int8 graph with torch's."""
PROBES: Final = (
    "The harbour was closed because of the storm.",
    "Two ships lay at anchor.",
    "How do I change my address?",
    "It rained all night, and in the morning the river had risen over the meadow.",
)


@dataclass(frozen=True, slots=True)
class Package:
    """What was made.

    Attributes:
        path: the folder.
        bytes: size of each file, by its name within the folder.
        agreement: least cosine of the vectors of the int8 graph with torch's, over a few texts.
        parameters: stored weights.
        has_words: whether it predicts masked words.
    """

    path: Path
    bytes: dict[str, int] = field(repr=False)
    agreement: float
    parameters: int
    has_words: bool

    @property
    def runtime_bytes(self) -> int:
        """Size of what runs without torch: graph and tokenizer."""
        return sum(size for name, size in self.bytes.items() if name in (GRAPH, *TOKENIZER_FILES))

    def lines(self) -> list[str]:
        """Return what a person reads."""
        words = "predicts masked words" if self.has_words else "no head for masked words"
        return [
            f"{self.path}: {self.parameters:,} weights, {words}",
            *(f"  {name:<36} {size / 1e6:>7.3f} MB" for name, size in sorted(self.bytes.items())),
            f"graph and tokenizer {self.runtime_bytes / 1e6:.2f} MB, all files "
            f"{sum(self.bytes.values()) / 1e6:.2f} MB; int8 beside torch: cosine >= {self.agreement:.4f}",
        ]


def package_encoder(
    student: Path,
    out: Path,
    *,
    words: Path | None = None,
    card: str | None = None,
    most_runtime_bytes: int | None = None,
    overwrite: bool = False,
) -> Package:
    """Write an encoder as a folder for `litebert/models/`; complete or not at all.

    Args:
        student: model folder or run folder of the encoder.
        out: where to; its name is the name of the encoder.
        words: the same encoder with a head for masked words (`litebert pretrain` with
            `model.train = "head"`); None: without one.
        card: text of the model card; None: the student's own, if it has one.
        most_runtime_bytes: largest size of graph and tokenizer; None: any.
        overwrite: replace what is at `out`.

    Raises:
        SettingsError: `out` is taken.
        CheckpointError: a folder that cannot be used, two that are not one encoder, or a result that is
            larger than allowed.
        ExportError: int8 differs too much from torch.
    """
    if out.exists() and not overwrite:
        raise SettingsError(f"{out} exists; --overwrite replaces it")
    if out.exists() and not (out / CONFIG_FILE).is_file():
        raise SettingsError(
            f"{out} is no model folder, so it is not replaced; choose another place"
        )
    source = model_folder(student)
    model = _with_words(source, words)
    config = model.config
    task = vector_task(config.max_position_embeddings)
    text = card if card is not None else _card_of(source)
    fs.make_folder(out.absolute().parent)
    scratch = out.absolute().with_name(f".{out.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    made, graph = scratch / out.name, scratch / "export"
    try:
        save_model(model.half(), made, Tokenizer.from_pretrained(source), task=task, card=text)
        _say_float32(made / CONFIG_FILE)
        if config.model_type == "albert":
            length = json.loads(task)["max_length"]
            write_sentence_transformers(made, config, length)
        report = export_model(
            "onnx", made, graph, precisions=("int8",), plain=False, least_agreement=MIN_AGREEMENT
        )
        fs.make_folder(made / "onnx")
        for name in (GRAPH, EXPORT_FILE):
            fs.write_file(made / name, (graph / name).read_bytes())
        agreement = _agreement(made, has_words=words is not None)
        sizes = {
            path.relative_to(made).as_posix(): path.stat().st_size
            for path in made.rglob("*")
            if path.is_file()
        }
        done = Package(out, sizes, agreement, report.parameters, words is not None)
        if most_runtime_bytes is not None and done.runtime_bytes > most_runtime_bytes:
            raise CheckpointError(
                f"graph and tokenizer have {done.runtime_bytes:,} bytes, allowed are "
                f"{most_runtime_bytes:,}; nothing was written",
                path=out,
            )
        fs.replace_folder_atomic(made, out.absolute())
    finally:
        with contextlib.suppress(CheckpointError):
            fs.remove_tree(scratch)
    return done


def _with_words(source: Path, words: Path | None) -> AlbertWithHead:
    """The encoder with its vectors alone, or with a head for masked words that was trained on it."""
    changes: dict[str, Any] = {
        "litebert": {"pooling": "mean"},
        "id2label": {0: "similarity"},
        "problem_type": None,
    }
    plain = load_model(source, "embedding", changes=changes)
    # What folding keeps of the teacher's pooler reads the first token, where a student of mean vectors
    # keeps little; without it, fine-tuning starts one that reads the mean.
    plain.model.pooler = None
    if words is None:
        return plain
    model = load_model(model_folder(words), "mlm", changes=changes)
    other = dict(model.model.named_parameters())
    for name, weight in plain.model.named_parameters():
        if not name.startswith("pooler.") and not _equal(weight, other.get(name)):
            raise CheckpointError(
                f"the encoder differs from that of {source} in {name}: the head for masked words was "
                "trained on another one; train it again (configs/pretrain/mask-head.toml)",
                path=words,
            )
    return model


def _equal(first: torch.Tensor, second: torch.Tensor | None) -> bool:
    return second is not None and torch.equal(first, second)


def _card_of(source: Path) -> str | None:
    path = source / CARD_FILE
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _say_float32(path: Path) -> None:
    """Say that the model computes in float32, so that other readers do not compute in half precision."""
    values = json.loads(path.read_text(encoding="utf-8")) | {"dtype": "float32"}
    text = json.dumps(values, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    fs.write_atomic(path, text.encode())


def _agreement(folder: Path, *, has_words: bool) -> float:
    """Return the least cosine between the vectors of the graph and of torch, from the finished folder.

    Raises:
        ExportError: below `MIN_AGREEMENT`.
    """
    session = Session(folder, threads=1)
    pairs = session.embed(PROBES), Predictor.load(folder).embed(PROBES)
    least = float(np.min(np.sum(pairs[0] * pairs[1], axis=1)))
    if least < MIN_AGREEMENT:
        raise ExportError(
            f"the vectors of the int8 graph agree with torch's by a cosine of {least:.4f}, wanted are "
            f"{MIN_AGREEMENT:g}; nothing was written",
            path=folder,
        )
    if has_words:
        session.fill_mask(
            f"The ship lies in the {session.tokenizer.token(session.tokenizer.mask_id)}."
        )
    return least
