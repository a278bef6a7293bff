"""What `litebert serve` would answer to a body, computed in this process."""

from __future__ import annotations

import json
from typing import Any

from litebert.runtime.session import Session
from litebert.serve import record_requests, requests
from litebert.serve.engine.jobs import StepKey
from litebert.serve.engine.operations import OPERATIONS
from litebert.serve.engine.steps import Stepper

BODIES = {
    "/predict": requests.PredictBody,
    "/embed": requests.EmbedBody,
    "/rerank": requests.RerankBody,
    "/similarity": requests.SimilarityBody,
    "/tokenize": requests.TokenizeBody,
    "/v1/qa": record_requests.QaBody,
    "/v1/ner": record_requests.NerBody,
    "/v1/fill-mask": record_requests.FillMaskBody,
    "/v1/choice": record_requests.ChoiceBody,
}


def server_answer(session: Session, route: str, body: dict[str, Any]) -> Any:
    """The answer of the server's engine to a request."""
    asked = BODIES[route].model_validate(body)
    args = asked.arguments(requests.Defaults(model="m", truncate=True, pooling="mean"))
    plan = OPERATIONS[asked.operation](session, args)
    stepper, key = Stepper(session), StepKey(plan.want, asked.depth, asked.exit)
    stepper.check(key)
    outputs = [] if plan.want == "words" else stepper.run(key, plan.examples)
    for output in outputs:
        if isinstance(output, Exception):
            raise output
    return json.loads(plan.finish(outputs))
