"""Teachers that only transformers can run: safetensors from a local folder, nothing of it is code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.checkpoint.digest import folder_digest
from litebert.checkpoint.files import CONFIG_FILE, TOKENIZER_FILES, check_folder
from litebert.checkpoint.weights import find_weights
from litebert.compress.bert import BERT_TYPES
from litebert.compress.teacher import BATCH_TOKENS, Answering, Teacher, pooling_of
from litebert.data.batch import EncodedExample
from litebert.errors import CheckpointError, DataError, MissingDependencyError
from litebert.files import check_file
from litebert.model.config import read_config_json

__all__ = ["TransformersTeacher", "load_teacher"]

OURS: Final = (None, "albert", "litebert", *BERT_TYPES)
CODE_KEYS: Final = ("auto_map", "custom_pipelines")
"""Keys that name code of the folder."""


def load_teacher(folder: Path, head: str, *, relation_depth: int | None = None) -> Answering:
    """Load a teacher with our own code where it can, else through transformers.

    Args:
        folder: model folder.
        head: "embedding", or "sequence" for logits.
        relation_depth: depth, from 1, that relations are taken of; None: the last.

    Raises:
        CheckpointError: any fault of the folder.
        MissingDependencyError: it needs transformers, which is not installed.
    """
    check_folder(folder)
    kind = read_config_json(folder / CONFIG_FILE).get("model_type")
    if kind in OURS:
        return Teacher.load(folder, head, relation_depth=relation_depth)
    return TransformersTeacher.load(folder, head)


@dataclass(frozen=True, slots=True, eq=False)
class TransformersTeacher:
    """A model and tokenizer of transformers: vectors of whole texts, or logits.

    Attributes:
        model: in evaluation mode.
        tokenizer: its own.
        fingerprint: digest of the folder.
        pooling: what the vector of a text is.
        relation_depth: None: relations are not taken.
    """

    model: Any
    tokenizer: Any
    fingerprint: str
    pooling: Literal["mean", "cls"] = "mean"
    relation_depth: int | None = None

    @classmethod
    def load(cls, folder: Path, head: str) -> TransformersTeacher:
        """Load a folder.

        Raises:
            CheckpointError: code in the folder, no safetensors, or what transformers cannot read.
            MissingDependencyError: transformers is not installed.
        """
        values = read_config_json(folder / CONFIG_FILE)
        for name, limit in TOKENIZER_FILES.items():
            check_file(folder / name, max_bytes=limit)
        named = [key for key in CODE_KEYS if values.get(key)]
        if named:
            raise CheckpointError(
                f"{named[0]} names code of its own, which is never run; allowed are models that "
                "transformers knows",
                path=folder / CONFIG_FILE,
            )
        find_weights(folder)  # safetensors and nothing else, with headers that hold
        try:
            import transformers
        except ImportError as error:
            raise MissingDependencyError(
                "transformers",
                extra="hf",
                purpose=f"a teacher of type {values.get('model_type')!r:.60}",
            ) from error
        library: Any = transformers
        maker = library.AutoModel
        if head == "sequence":
            maker = library.AutoModelForSequenceClassification
        options = {"local_files_only": True, "trust_remote_code": False}
        try:
            model = maker.from_pretrained(
                folder, use_safetensors=True, dtype=torch.float32, **options
            )
            tokenizer = library.AutoTokenizer.from_pretrained(folder, **options)
        except Exception as error:
            # transformers has no error of its own for a folder that it cannot read.
            reason = str(error).partition("\n")[0]
            raise CheckpointError(
                f"transformers cannot read it: {type(error).__name__}: {reason:.300}", path=folder
            ) from error
        return cls(model.eval(), tokenizer, folder_digest(folder), pooling_of(folder))

    @property
    def vocabulary(self) -> str:
        """Digest that no vocabulary of ours has."""
        return f"transformers {self.fingerprint}"

    @property
    def width(self) -> int:
        """Numbers D of a hidden state."""
        return int(self.model.config.hidden_size)

    @property
    def max_length(self) -> int:
        """Most tokens of a sequence."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or 512
        own = int(getattr(self.tokenizer, "model_max_length", positions))
        return min(int(positions), own)

    def width_of(self, part: str) -> int:
        """Return the numbers in a row of a part."""
        return int(self.model.config.num_labels) if part == "logits" else self.width

    def describe(self) -> str:
        """Return one line for a person."""
        count = sum(parameter.numel() for parameter in self.model.parameters())
        kind = self.model.config.model_type
        return f"{count / 1e6:.2f} M parameters of {kind}, width {self.width}, by transformers"

    def encode(self, text: str, pair: str | None, max_length: int, number: int) -> EncodedExample:
        """Return a text, or a pair, as ids, cut to a length."""
        found = self.tokenizer(
            text, pair, truncation=True, max_length=min(max_length, self.max_length)
        )
        ids = np.asarray(found["input_ids"], np.int32)
        types = np.asarray(found.get("token_type_ids", np.zeros(len(ids))), np.int32)
        return EncodedExample(ids, types, None, number)

    @torch.inference_mode()
    def answer(
        self, examples: Sequence[EncodedExample], parts: Sequence[str]
    ) -> dict[str, NDArray[np.float16]]:
        """Return vectors or logits, rows in the order of the examples.

        Raises:
            DataError: something else is asked for, or numbers beyond half precision.
        """
        unknown = [part for part in parts if part not in ("pooled", "logits")]
        if unknown:
            raise DataError(
                f"a teacher of transformers gives vectors and logits of texts, not {unknown[0]}; "
                "leave that out of [distill]"
            )
        found = {p: np.empty((len(examples), self.width_of(p)), np.float16) for p in parts}
        order = sorted(range(len(examples)), key=lambda n: (len(examples[n]), n))
        widest = max(len(example) for example in examples)
        rows = max(1, BATCH_TOKENS // widest)
        for first in range(0, len(order), rows):
            chosen = order[first : first + rows]
            for part, values in self._run([examples[n] for n in chosen], parts).items():
                half = values.half()
                if not bool(half.isfinite().all()):
                    raise DataError(f"the teacher's {part} hold numbers beyond half precision")
                found[part][chosen] = half.numpy()
        return found

    def _run(
        self, examples: Sequence[EncodedExample], parts: Sequence[str]
    ) -> dict[str, torch.Tensor]:
        width = max(len(example) for example in examples)
        ids = torch.full((len(examples), width), int(self.tokenizer.pad_token_id or 0))
        mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, example in enumerate(examples):
            ids[row, : len(example)] = torch.from_numpy(example.ids).long()
            types[row, : len(example)] = torch.from_numpy(np.asarray(example.type_ids)).long()
            mask[row, : len(example)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self.tokenizer.model_input_names:
            inputs["token_type_ids"] = types
        output = self.model(**inputs, output_hidden_states=True)
        found: dict[str, torch.Tensor] = {}
        if "logits" in parts:
            found["logits"] = output.logits
        if "pooled" in parts:
            is_bare = hasattr(output, "last_hidden_state")
            states = output.last_hidden_state if is_bare else output.hidden_states[-1]
            weights = mask[:, :, None].float()
            mean = (states * weights).sum(1) / weights.sum(1).clamp_min(1)
            found["pooled"] = mean if self.pooling == "mean" else states[:, 0]
        return found
