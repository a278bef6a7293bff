"""Bodies of requests over records: questions with passages, texts to tag or fill, questions with choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from litebert.serve.requests import Body, Defaults, Inputs, Many, strings

__all__ = ["ChoiceBody", "FillMaskBody", "NerBody", "QaBody"]


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    question: str = Field(min_length=1)
    context: str = Field(min_length=1)


class QaBody(Body):
    """`POST /v1/qa`: a question and a passage, or `inputs` with one or many of them."""

    operation: ClassVar[str] = "qa"
    question: str | None = Field(default=None, min_length=1)
    context: str | None = Field(default=None, min_length=1)
    inputs: _Question | Annotated[list[_Question], Many] | None = None
    top_k: int | None = Field(default=None, ge=1, le=100)
    """Answers for each question, as a list; one answer that is no list when not given."""

    def items(self) -> list[_Question]:
        """Return the questions.

        Raises:
            ValueError: none, or in two places.
        """
        if self.inputs is not None and self.question is None and self.context is None:
            return self.inputs if isinstance(self.inputs, list) else [self.inputs]
        if self.inputs is None and self.question is not None and self.context is not None:
            return [_Question(question=self.question, context=self.context)]
        raise ValueError("give either question and context, or inputs")

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `qa` takes."""
        del defaults
        return {
            "items": [item.model_dump() for item in self.items()],
            "single": not isinstance(self.inputs, list),
            "top_k": self.top_k,
        }

    def texts(self) -> Iterator[str]:
        """Yield questions and passages."""
        for item in self.items():
            yield from (item.question, item.context)

    def count(self) -> int:
        """Questions count."""
        return len(self.items())


class NerBody(Body):
    """`POST /v1/ner`."""

    operation: ClassVar[str] = "ner"
    inputs: Inputs

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `ner` takes."""
        del defaults
        return {"texts": list(strings(self.inputs)), "single": isinstance(self.inputs, str)}

    def texts(self) -> Iterator[str]:
        """Yield the inputs."""
        return strings(self.inputs)


class FillMaskBody(Body):
    """`POST /v1/fill-mask`."""

    operation: ClassVar[str] = "fill_mask"
    inputs: str
    top_k: int = Field(default=5, ge=1, le=1000)

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `fill_mask` takes."""
        del defaults
        return {"text": self.inputs, "top_k": self.top_k}

    def texts(self) -> Iterator[str]:
        """Yield the text."""
        yield self.inputs


class _Choices(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    question: str = ""
    context: str = ""
    choices: list[str] = Field(min_length=2, max_length=26)


class ChoiceBody(Body):
    """`POST /v1/choice`: a question with choices, or `inputs` with many of them."""

    operation: ClassVar[str] = "choice"
    question: str = ""
    context: str = ""
    choices: list[str] | None = Field(default=None, min_length=2, max_length=26)
    inputs: Annotated[list[_Choices], Many] | None = None

    def items(self) -> list[_Choices]:
        """Return the questions.

        Raises:
            ValueError: none, or in two places.
        """
        if self.inputs is not None and self.choices is None:
            return self.inputs
        if self.inputs is None and self.choices is not None:
            return [_Choices(question=self.question, context=self.context, choices=self.choices)]
        raise ValueError("give either choices with a question, or inputs")

    def arguments(self, defaults: Defaults) -> dict[str, Any]:
        """Return what `choice` takes."""
        del defaults
        items = [item.model_dump() for item in self.items()]
        return {"items": items, "single": self.inputs is None}

    def texts(self) -> Iterator[str]:
        """Yield questions, passages and choices."""
        for item in self.items():
            yield from (item.question, item.context, *item.choices)

    def count(self) -> int:
        """Questions count."""
        return len(self.items())
