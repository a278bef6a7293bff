"""A trained model that others learn from: token ids in, hidden states, vectors or logits out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.checkpoint.files import CONFIG_FILE, TOKENIZER_FILES
from litebert.checkpoint.folder import load_model, saved_head
from litebert.compress.bert import BERT_TYPES, load_bert
from litebert.data.batch import EncodedExample, collate
from litebert.errors import CheckpointError, DataError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import read_config_json
from litebert.model.packing import Packing
from litebert.objectives.distill import relation_vectors
from litebert.text.tokenizer import Tokenizer

__all__ = ["PARTS", "Teacher", "folder_digest", "load_encoder_folder"]

PARTS: Final = ("hidden", "pooled", "logits", "relations")
"""What a teacher can be asked for; see `TeacherTargets`."""
BATCH_TOKENS: Final = 2048
"""Real tokens of one forward pass."""


@dataclass(frozen=True, slots=True, eq=False)
class Teacher:
    """A model with its tokenizer, in evaluation mode.

    Attributes:
        model: encoder with a head.
        tokenizer: what makes its ids.
        fingerprint: sha256 (hex) of everything that its answers follow from.
        relation_depth: depth, from 1, that relations are taken of; None: the last.
    """

    model: AlbertWithHead
    tokenizer: Tokenizer
    fingerprint: str
    relation_depth: int | None = None

    @classmethod
    def load(cls, folder: Path, head: str, *, relation_depth: int | None = None) -> Teacher:
        """Load a litebert folder, or one of the BERT layout.

        Args:
            folder: model folder.
            head: "embedding", or the head whose logits are wanted.
            relation_depth: depth, from 1, that relations are taken of; None: the last.

        Raises:
            CheckpointError: any fault of the folder, or fewer depths.
        """
        model = load_encoder_folder(folder, head)
        depths = model.config.num_hidden_layers
        if relation_depth is not None and relation_depth > depths:
            raise CheckpointError(
                f"has {depths} depths, relation_depth is {relation_depth}", path=folder
            )
        return cls(model, Tokenizer.from_pretrained(folder), folder_digest(folder), relation_depth)

    @property
    def width(self) -> int:
        """Numbers D of a hidden state."""
        return self.model.config.hidden_size

    def width_of(self, part: str) -> int:
        """Return the numbers in a row of a part."""
        sizes = {"relations": 3 * self.width, "logits": self.model.config.num_labels}
        return sizes.get(part, self.width)

    def answer(
        self, examples: Sequence[EncodedExample], parts: Sequence[str]
    ) -> dict[str, NDArray[np.float16]]:
        """Return what is asked for, rows in the order of the examples (tokens in a row).

        Half precision is kept, which costs 5e-4 of a number.

        Args:
            examples: single sequences, at least one.
            parts: names out of `PARTS`.

        Raises:
            DataError: numbers beyond half precision.
        """
        starts = np.cumsum([0, *(len(example) for example in examples)])
        found = {
            part: np.empty(
                (int(starts[-1]) if part in ("hidden", "relations") else len(examples),
                 self.width_of(part)), np.float16)
            for part in parts
        }  # fmt: skip
        order = sorted(range(len(examples)), key=lambda n: (len(examples[n]), n))
        for chosen in _runs(order, [len(example) for example in examples]):
            rows = self._run([examples[n] for n in chosen], parts)
            bounds = np.cumsum([0, *(len(examples[n]) for n in chosen)])
            for part, values in rows.items():
                half = values.half()
                if not bool(half.isfinite().all()):
                    raise DataError(
                        f"the teacher's {part} hold numbers that half precision does not; "
                        "such a teacher cannot be kept in a cache"
                    )
                array: NDArray[np.float16] = half.numpy()
                for place, n in enumerate(chosen):
                    if part in ("hidden", "relations"):
                        own = array[bounds[place] : bounds[place + 1]]
                        found[part][starts[n] : starts[n + 1]] = own
                    else:
                        found[part][n] = array[place]
        return found

    @torch.inference_mode()
    def _run(self, examples: Sequence[EncodedExample], parts: Sequence[str]) -> dict[str, Tensor]:
        batch = collate(examples)
        packing = Packing.from_lengths(batch.lengths.tolist())
        output = self.model.forward_packed(
            torch.from_numpy(batch.input_ids).long(),
            packing,
            torch.from_numpy(batch.token_type_ids).long(),
            torch.from_numpy(batch.position_ids).long(),
            output_hidden_states="relations" in parts,
        )
        found: dict[str, Tensor] = {}
        if "hidden" in parts:
            found["hidden"] = output.last_hidden_state
        if "pooled" in parts:
            found["pooled"] = packing.mean_tokens(output.last_hidden_state)
        if "logits" in parts:
            found["logits"] = cast(Tensor, output.logits)
        if "relations" in parts:
            states = cast(tuple[Tensor, ...], output.hidden_states)
            found["relations"] = relation_vectors(self.model, states, self.relation_depth)
        return found


def load_encoder_folder(folder: Path, head: str) -> AlbertWithHead:
    """Load a model with a head from a litebert folder, or from one of the BERT layout.

    Raises:
        CheckpointError: any fault of the folder, or no such head in it.
    """
    kind = read_config_json(folder / CONFIG_FILE).get("model_type")
    if kind in BERT_TYPES:
        return cast(AlbertWithHead, load_bert(folder, head))
    if head == "embedding":
        return load_model(folder, head, changes={"litebert": {"pooling": "mean"}})
    if saved_head(folder) != head:
        raise CheckpointError(
            f"was not trained for a task with the head {head!r}; give the folder of a fine-tuned "
            "model (litebert train ...), or learn hidden, pooled or similarity from it",
            path=folder,
        )
    return load_model(folder, head)


def folder_digest(folder: Path) -> str:
    """Return sha256 (hex) over configuration, tokenizer and weights of a model folder.

    Raises:
        CheckpointError: a file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        weights = [path.name for path in folder.iterdir() if path.suffix == ".safetensors"]
        for name in sorted({CONFIG_FILE, *TOKENIZER_FILES, *weights}):
            path = folder / name
            if path.is_file():
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                digest.update(f"{name}:{found}\n".encode())
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error.strerror}", path=folder) from error
    return digest.hexdigest()


def _runs(order: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Cut an order into forward passes."""
    runs: list[list[int]] = []
    tokens = 0
    for n in order:
        if not runs or tokens + lengths[n] > BATCH_TOKENS:
            runs.append([])
            tokens = 0
        runs[-1].append(n)
        tokens += lengths[n]
    return runs
