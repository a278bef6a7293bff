from __future__ import annotations

import pytest

pytest.importorskip("starlette")
from litebert.serve.errors import HttpFault
from litebert.serve.pipeline import PipelineBody, pipeline_body


def test_a_fault_does_not_say_again_what_was_sent() -> None:
    secret = "xyzzy plugh " * 50
    sent = PipelineBody(inputs={"source_sentence": "a", "sentences": ["b"], secret: 1})
    with pytest.raises(HttpFault) as caught:
        pipeline_body(sent, "model", {})
    assert caught.value.status == 422
    assert "xyzzy" not in caught.value.message
    assert len(caught.value.message) < 300
