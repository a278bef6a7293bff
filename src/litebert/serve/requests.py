"""Bodies of requests over texts: what each route takes, checked before anything is computed.

Shapes are those of text-embeddings-inference and OpenAI where they have the route. Every body may
say `model`, `depth` and `exit` besides.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "MOST_INPUTS", "Body", "DecodeBody", "Defaults", "EmbedBody", "EmbeddingsBody", "Inputs", "Many",
    "PairInputs", "PredictBody", "RerankBody", "SimilarityBody", "TokenizeBody", "strings",
]  # fmt: skip

MOST_INPUTS: Final = 4096
"""More are not even looked at, whatever a server allows."""
Many = Field(max_length=MOST_INPUTS)
Inputs = str | Annotated[list[str], Many]
PairInputs = (
    str | Annotated[list[str | Annotated[list[str], Field(min_length=1, max_length=2)]], Many]
)
Keep = Literal["Left", "Right", "left", "right"]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the server does where a request does not say.

    Attributes:
        model: name of the model that was found.
        truncate: cut long texts.
        pooling: mean or cls.
    """

    model: str
    truncate: bool
    pooling: str


class Body(BaseModel):
    """What all requests share."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=()
    )
    operation: ClassVar[str]

    model: str | None = Field(default=None, max_length=96)
    """Name of a model that is served."""
    depth: int | None = Field(default=None, ge=1, le=100_000)
    """Depths to run; fewer is faster."""
    exit: str | None = Field(default=None, max_length=64)
    """When a text leaves before them, such as `patience=2`."""

    @abstractmethod
    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what the engine's operation takes."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield every text that is tokenized."""

    def count(self) -> int:
        """How many inputs it has, as the limit counts them."""
        return sum(1 for _ in self.texts())


def strings(inputs: str | Sequence[str | Sequence[str]]) -> Iterator[str]:
    """Yield the texts of inputs, of pairs both."""
    if isinstance(inputs, str):
        yield inputs
        return
    for item in inputs:
        if isinstance(item, str):
            yield item
        else:
            yield from item


def _size(inputs: str | Sequence[Any]) -> int:
    return 1 if isinstance(inputs, str) else len(inputs)


class _Cut(Body):
    truncate: bool | None = None
    truncation_direction: Keep = "Right"
    """The end that is cut off."""

    def _cutting(self, defaults: Defaults) -> dict[str, Any]:
        return {
            "truncate": defaults.truncate if self.truncate is None else self.truncate,
            "keep": "tail" if self.truncation_direction.lower() == "left" else "head",
        }


class EmbedBody(_Cut):
    """`POST /embed`."""

    operation: ClassVar[str] = "embed"
    inputs: Inputs
    normalize: bool = True
    dimensions: int | None = Field(default=None, ge=1)
    """Numbers of a vector that are kept, for models that were trained for it."""
    prompt_name: None = None

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `embed` takes."""
        return self._cutting(defaults) | {
            "inputs": self.inputs,
            "normalize": self.normalize,
            "dimensions": self.dimensions,
            "pooling": defaults.pooling,
            "form": "rows",
        }

    def texts(self) -> Iterator[str]:
        """Yield the inputs."""
        return strings(self.inputs)


class EmbeddingsBody(Body):
    """`POST /v1/embeddings`, as OpenAI has it."""

    operation: ClassVar[str] = "embed"
    input: Inputs
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)
    user: str | None = Field(default=None, max_length=1000)

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `embed` takes."""
        return {
            "inputs": self.input,
            "normalize": True,
            "dimensions": self.dimensions,
            "pooling": defaults.pooling,
            "form": "base64" if self.encoding_format == "base64" else "openai",
            "model": defaults.model,
            "truncate": defaults.truncate,
            "keep": "head",
        }

    def texts(self) -> Iterator[str]:
        """Yield the inputs."""
        return strings(self.input)


class PredictBody(_Cut):
    """`POST /predict`."""

    operation: ClassVar[str] = "predict"
    inputs: PairInputs
    raw_scores: bool = False
    top_k: int | None = Field(default=None, ge=1)
    """Labels of each answer; all when not given."""

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `predict` takes."""
        return self._cutting(defaults) | {
            "inputs": self.inputs,
            "raw_scores": self.raw_scores,
            "top_k": self.top_k,
            "nested": False,
        }

    def texts(self) -> Iterator[str]:
        """Yield the inputs, of pairs both."""
        return strings(self.inputs)

    def count(self) -> int:
        """A pair counts once."""
        return _size(self.inputs)


class RerankBody(_Cut):
    """`POST /rerank`."""

    operation: ClassVar[str] = "rerank"
    query: str
    texts_: list[str] = Field(alias="texts", min_length=1, max_length=MOST_INPUTS)
    raw_scores: bool = False
    return_text: bool = False

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `rerank` takes."""
        return self._cutting(defaults) | {
            "query": self.query,
            "texts": self.texts_,
            "raw_scores": self.raw_scores,
            "return_text": self.return_text,
            "pooling": defaults.pooling,
        }

    def texts(self) -> Iterator[str]:
        """Yield query and texts."""
        yield self.query
        yield from self.texts_

    def count(self) -> int:
        """The texts count."""
        return len(self.texts_)


class _SimilarityInputs(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    source_sentence: str
    sentences: list[str] = Field(min_length=1, max_length=MOST_INPUTS)


class _SimilarityParameters(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    truncate: bool | None = None
    truncation_direction: Keep = "Right"
    prompt_name: None = None


class SimilarityBody(Body):
    """`POST /similarity`."""

    operation: ClassVar[str] = "similarity"
    inputs: _SimilarityInputs
    parameters: _SimilarityParameters | None = None

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `similarity` takes."""
        told = self.parameters or _SimilarityParameters()
        return {
            "source": self.inputs.source_sentence,
            "sentences": self.inputs.sentences,
            "pooling": defaults.pooling,
            "truncate": defaults.truncate if told.truncate is None else told.truncate,
            "keep": "tail" if told.truncation_direction.lower() == "left" else "head",
        }

    def texts(self) -> Iterator[str]:
        """Yield the sentence and the others."""
        yield self.inputs.source_sentence
        yield from self.inputs.sentences

    def count(self) -> int:
        """The other sentences count."""
        return len(self.inputs.sentences)


class TokenizeBody(Body):
    """`POST /tokenize`."""

    operation: ClassVar[str] = "tokenize"
    inputs: Inputs
    add_special_tokens: bool = True
    prompt_name: None = None

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `tokenize` takes."""
        del defaults
        return {"inputs": self.inputs, "add_special_tokens": self.add_special_tokens}

    def texts(self) -> Iterator[str]:
        """Yield the inputs."""
        return strings(self.inputs)


MOST_IDS: Final = 50_000
Id = Annotated[int, Field(ge=0, lt=1 << 31)]


class DecodeBody(Body):
    """`POST /decode`."""

    operation: ClassVar[str] = "decode"
    ids: (
        Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS)]
        | list[Annotated[list[Id], Field(max_length=MOST_IDS)]]
    )
    skip_special_tokens: bool = True

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `decode` takes."""
        del defaults
        rows = [self.ids] if self.ids and isinstance(self.ids[0], int) else self.ids
        return {"ids": rows, "skip_special_tokens": self.skip_special_tokens}

    def texts(self) -> Iterator[str]:
        """Nothing is tokenized."""
        return iter(())

    def count(self) -> int:
        """Lists of ids count."""
        return 1 if self.ids and isinstance(self.ids[0], int) else len(self.ids)
