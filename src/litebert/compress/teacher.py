"""A trained model that others learn from: token ids in, hidden states, vectors or logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.checkpoint.digest import folder_digest
from litebert.checkpoint.files import CONFIG_FILE
from litebert.checkpoint.folder import load_model, saved_head
from litebert.compress.bert import BERT_TYPES, load_bert
from litebert.data.batch import EncodedExample, collate
from litebert.errors import CheckpointError, DataError
from litebert.files import check_file, read_json
from litebert.model.albert import AlbertWithHead
from litebert.model.config import read_config_json
from litebert.model.packing import Packing
from litebert.objectives.distill import relation_vectors
from litebert.text.tokenizer import Tokenizer

__all__ = [
    "PARTS",
    "PER_TOKEN",
    "Answering",
    "Teacher",
    "load_encoder_folder",
    "pooling_of",
]

PARTS: Final = ("hidden", "pooled", "logits", "relations")
"""What a teacher can be asked for; see `TeacherTargets`."""
PER_TOKEN: Final = ("hidden", "relations")
"""Parts with a row for each token; the others have one for each sequence."""
BATCH_TOKENS: Final = 2048
"""Real tokens of one forward pass."""
MAX_POOLING_BYTES: Final = 1 << 16


class Answering(Protocol):
    """Who can be asked: a model of ours, or one of another library."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything that the answers follow from."""
        ...

    @property
    def relation_depth(self) -> int | None:
        """Depth, from 1, that relations are taken of; None: the last."""
        ...

    @property
    def vocabulary(self) -> str:
        """Digest of what makes ids of texts."""
        ...

    @property
    def width(self) -> int:
        """Numbers D of a hidden state."""
        ...

    @property
    def max_length(self) -> int:
        """Most tokens of a sequence."""
        ...

    def width_of(self, part: str) -> int:
        """Return the numbers in a row of a part."""
        ...

    def describe(self) -> str:
        """Return one line for a person."""
        ...

    def encode(self, text: str, pair: str | None, max_length: int, number: int) -> EncodedExample:
        """Return a text, or a pair, as ids of this teacher."""
        ...

    def answer(
        self, examples: Sequence[EncodedExample], parts: Sequence[str]
    ) -> dict[str, NDArray[np.float16]]:
        """Return what is asked for, rows in the order of the examples."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Teacher:
    """A model with its tokenizer, in evaluation mode.

    Attributes:
        model: encoder with a head.
        tokenizer: what makes its ids.
        fingerprint: sha256 (hex) of everything that its answers follow from.
        relation_depth: depth, from 1, that relations are taken of; None: the last.
        pooling: what the vector of a sequence is.
    """

    model: AlbertWithHead
    tokenizer: Tokenizer
    fingerprint: str
    relation_depth: int | None = None
    pooling: Literal["mean", "cls"] = "mean"

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
        return cls(
            model,
            Tokenizer.from_pretrained(folder),
            folder_digest(folder),
            relation_depth,
            pooling_of(folder),
        )

    @property
    def vocabulary(self) -> str:
        """Digest of what makes ids of texts."""
        return self.tokenizer.fingerprint

    @property
    def max_length(self) -> int:
        """Most tokens of a sequence."""
        return self.model.config.max_position_embeddings

    @property
    def width(self) -> int:
        """Numbers D of a hidden state."""
        return self.model.config.hidden_size

    def width_of(self, part: str) -> int:
        """Return the numbers in a row of a part."""
        sizes = {"relations": 3 * self.width, "logits": self.model.config.num_labels}
        return sizes.get(part, self.width)

    def describe(self) -> str:
        """Return one line for a person."""
        count = sum(parameter.numel() for parameter in self.model.parameters())
        depths = self.model.config.num_hidden_layers
        return f"{count / 1e6:.2f} M parameters, {depths} depths of width {self.width}"

    def encode(self, text: str, pair: str | None, max_length: int, number: int) -> EncodedExample:
        """Return a text, or a pair, as ids, cut to a length."""
        encoding = self.tokenizer.encode(text, pair, max_length=max_length)
        return EncodedExample(
            np.asarray(encoding.ids, np.int32),
            np.asarray(encoding.type_ids, np.int32),
            None,
            number,
        )

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
                (int(starts[-1]) if part in PER_TOKEN else len(examples),
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
                    if part in PER_TOKEN:
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
            pool = packing.mean_tokens if self.pooling == "mean" else packing.first_tokens
            found["pooled"] = pool(output.last_hidden_state)
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


def pooling_of(folder: Path) -> Literal["mean", "cls"]:
    """Return what sentence-transformers says about a folder's vectors; the mean where it is silent.

    Raises:
        CheckpointError: `1_Pooling/config.json` cannot be read, or asks for another pooling.
    """
    path = folder / "1_Pooling" / CONFIG_FILE
    if check_file(path) is None:
        return "mean"
    table = read_json(path, max_bytes=MAX_POOLING_BYTES)
    modes = {
        key for key, value in table.items() if key.startswith("pooling_mode") and value is True
    }
    if modes <= {"pooling_mode_mean_tokens"}:
        return "mean"
    if modes == {"pooling_mode_cls_token"}:
        return "cls"
    raise CheckpointError(
        f"asks for {', '.join(sorted(modes))}; allowed are the mean of the tokens or the first one",
        path=path,
    )


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
