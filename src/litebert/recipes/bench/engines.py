"""Back-ends that can be measured: token ids in, outputs computed; one class each, loaded when used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.registry import Registry

__all__ = ["ENGINES", "Engine", "PaddedEngine", "padded_batches"]

BATCH: Final = 16
"""Sequences of one padded batch, for back-ends that pad."""
Ids = NDArray[np.int64]


class Engine(ABC):
    """A loaded model that computes its outputs for sequences of token ids."""

    @abstractmethod
    def __init__(self, path: Path, threads: int) -> None:
        """Load the model at a path."""

    @abstractmethod
    def run(self, sequences: Sequence[Ids]) -> Any:
        """Compute the outputs of all sequences, batched as suits the back-end."""

    def first(self) -> None:
        """Give the first answer, from text where the back-end takes text."""
        self.run([np.arange(8, dtype=np.int64)])


class PaddedEngine(Engine):
    """A back-end that takes rectangles: sorted by length, so that little is padded."""

    is_sorted = True
    batch_size = BATCH

    @abstractmethod
    def compute(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Any:
        """Compute one rectangle, [B, S] each; the mask is 1 where a token is."""

    def run(self, sequences: Sequence[Ids]) -> list[Any]:
        """Compute all sequences in padded batches."""
        batches = padded_batches(sequences, self.batch_size, is_sorted=self.is_sorted)
        return [self.compute(ids, mask) for ids, mask in batches]


def padded_batches(
    sequences: Sequence[Ids], size: int, *, is_sorted: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield token ids and mask of each batch, [B, S], filled up with 0."""
    order = list(range(len(sequences)))
    if is_sorted:
        order.sort(key=lambda i: -len(sequences[i]))
    for start in range(0, len(order), size):
        part = [sequences[i] for i in order[start : start + size]]
        width = max(map(len, part))
        ids = np.zeros((len(part), width), np.int64)
        mask = np.zeros_like(ids)
        for row, sequence in enumerate(part):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        yield ids, mask


class TextModelEngine(Engine):
    """A model folder or an export, as the other commands compute it."""

    def __init__(self, path: Path, threads: int) -> None:
        self.model = self._load(path, threads)

    def _load(self, path: Path, threads: int) -> Any:
        from litebert.runtime.session import Session

        return Session(path, threads=threads)

    def first(self) -> None:
        """Answer a text."""
        self.model.embed("How long does the first answer take?")

    def run(self, sequences: Sequence[Ids]) -> Any:
        """Compute the head's outputs, or the vectors of an encoder."""
        from litebert.data.batch import EncodedExample
        from litebert.runtime.text_model import BATCH_TOKENS

        examples = [
            EncodedExample(ids.astype(np.int32), np.zeros(len(ids), np.int32), None, index)
            for index, ids in enumerate(sequences)
        ]
        if self.model.task is None:
            return self.model.pooled(examples, "mean", batch_tokens=BATCH_TOKENS)
        return self.model.outputs(examples)


class TorchEngine(TextModelEngine):
    """A model folder through torch, packed."""

    def _load(self, path: Path, threads: int) -> Any:
        import torch

        from litebert.recipes.predictor import Predictor

        torch.set_num_threads(threads)
        return Predictor.load(path)


class TransformersEngine(PaddedEngine):
    """The same folder through transformers."""

    def __init__(self, path: Path, threads: int) -> None:
        import torch
        from transformers import AutoModel

        torch.set_num_threads(threads)
        self._torch = torch
        self.model: Any = AutoModel.from_pretrained(path).eval()

    def compute(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Any:
        """Compute one rectangle."""
        given = self._torch.from_numpy
        with self._torch.inference_mode():
            return self.model(input_ids=given(ids), attention_mask=given(mask))[0].numpy()


class PlainOnnxEngine(PaddedEngine):
    """A graph with the usual inputs, through onnxruntime as usual."""

    def __init__(self, path: Path, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self._names = {value.name for value in self._session.get_inputs()}

    def compute(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Any:
        """Compute one rectangle."""
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return self._session.run(None, {name: given[name] for name in self._names})


class OpenVinoEngine(PaddedEngine):
    """A graph with the usual inputs, through OpenVINO."""

    def __init__(self, path: Path, threads: int) -> None:
        import openvino

        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        self.model: Any = core.compile_model(str(path), "CPU", settings)
        self._names = {value.get_any_name() for value in self.model.inputs}

    def compute(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Any:
        """Compute one rectangle."""
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return self.model({name: given[name] for name in self._names})


class ExecuTorchEngine(Engine):
    """A `.pte` of `litebert export executorch`: texts one by one, unpadded."""

    def __init__(self, path: Path, threads: int) -> None:
        import importlib

        from litebert.export.executorch.lowering import program
        from litebert.files import read_json
        from litebert.runtime.exported import EXPORT_FILE, MAX_JSON_BYTES

        listed = read_json(path.parent.parent / EXPORT_FILE, max_bytes=MAX_JSON_BYTES)
        entry = listed["files"][f"{path.parent.name}/{path.name}"]
        # The private name is the only way to say how many threads; without it all cores are used.
        library: Any = importlib.import_module("executorch.extension.pybindings.portable_lib")
        library._unsafe_reset_threadpool(threads)
        order = tuple(str(name) for name in entry["methods"][1:-1])
        self._limit = int(entry["max_tokens"])
        outputs = tuple(str(name) for name in entry["outputs"])
        self._run = program(path.read_bytes(), order, outputs)

    def run(self, sequences: Sequence[Ids]) -> list[Any]:
        """Compute all sequences, cut to the longest that the file takes."""
        import torch

        results: list[Any] = []
        for sequence in sequences:
            ids = torch.from_numpy(sequence[None, : self._limit].astype(np.int64))
            results.append(self._run(ids, torch.ones_like(ids), torch.zeros_like(ids)))
        return results


class GemmEngine(Engine):
    """No model: one large product in float32, the speed that others are compared with."""

    def __init__(self, path: Path, threads: int) -> None:
        del path, threads  # the process was started with so many
        rng = np.random.default_rng(0)
        self._a = rng.random((2048, 768), np.float32)
        self._b = rng.random((768, 3072), np.float32)

    def run(self, sequences: Sequence[Ids]) -> Any:
        """Multiply."""
        del sequences
        return self._a @ self._b


GEMM_FLOPS: Final = 2 * 2048 * 768 * 3072

ENGINES: Final[Registry[type[Engine]]] = Registry("back-end")
for _name, _engine in (
    ("litebert", TextModelEngine),
    ("torch", TorchEngine),
    ("transformers", TransformersEngine),
    ("onnxruntime", PlainOnnxEngine),
    ("openvino", OpenVinoEngine),
    ("executorch", ExecuTorchEngine),
    ("gemm", GemmEngine),
):
    ENGINES.register(_name)(_engine)
