"""`POST /` and `POST /models/NAME`: what `huggingface_hub.InferenceClient` sends, whichever task the model has.

The body is `{"inputs": ..., "parameters": {...}}`; answers have the shapes of that client's tasks.
Parameters that are not known here are passed over, as its servers do.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from litebert.serve.errors import HttpFault
from litebert.serve.reading import told
from litebert.serve.record_requests import FillMaskBody, NerBody, QaBody
from litebert.serve.requests import Body, EmbedBody, PairInputs, PredictBody, SimilarityBody

__all__ = ["NestedPredictBody", "PipelineBody", "pipeline_body"]


class PipelineBody(BaseModel):
    """Any task's request."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)
    inputs: PairInputs | Annotated[dict[str, Any], Field(max_length=8)]
    parameters: dict[str, Any] | None = None
    normalize: bool | None = None
    truncate: bool | None = None
    model: str | None = Field(default=None, max_length=96)


class NestedPredictBody(PredictBody):
    """Predictions with a list around those of a single text, as pipelines give them."""

    def arguments(self, defaults: Any) -> dict[str, Any]:
        """Return what `predict` takes."""
        return super().arguments(defaults) | {"nested": True}


def pipeline_body(sent: PipelineBody, model: str, info: dict[str, Any]) -> Body:
    """Return the request that is meant, by what the model does.

    Raises:
        HttpFault: it is none.
    """
    given = sent.parameters or {}
    routes = info.get("routes", ())
    values: dict[str, Any] = {"inputs": sent.inputs, "model": model}
    kind: type[Body]
    if isinstance(sent.inputs, dict) and "source_sentence" in sent.inputs:
        kind = SimilarityBody
    elif "/v1/qa" in routes:
        kind = QaBody
        values |= _kept(given, {"top_k": "top_k"})
    elif "/v1/ner" in routes:
        kind = NerBody
    elif "/v1/fill-mask" in routes:
        kind = FillMaskBody
        values |= _kept(given, {"top_k": "top_k"})
    elif "/predict" in routes:
        kind = NestedPredictBody
        values |= _kept(given, {"top_k": "top_k"})
        if given.get("function_to_apply") == "none":
            values["raw_scores"] = True
    else:
        kind = EmbedBody
        values |= {"normalize": sent.normalize is not False, "truncate": sent.truncate}
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise HttpFault(422, told(error, kind)) from error


def _kept(given: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {ours: given[theirs] for theirs, ours in names.items() if given.get(theirs) is not None}
