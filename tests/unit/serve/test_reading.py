from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("starlette")
from starlette.requests import Request

from litebert.serve import reading
from litebert.serve.errors import HttpFault, fault_response
from litebert.serve.reading import MOST_VALUES, BodyReader, parse, timeout_of
from litebert.serve.requests import EmbedBody, PredictBody
from litebert.serve.service import ClientGoneError


def request(parts: Iterable[bytes | float | None], **headers: str) -> Request:
    """A request whose body comes in parts: bytes, a pause, or None for the end of the connection."""
    waiting = iter(parts)

    async def receive() -> dict[str, Any]:
        for part in waiting:
            if isinstance(part, float):
                await asyncio.sleep(part)
                continue
            if part is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": part, "more_body": True}
        return {"type": "http.request", "body": b"", "more_body": False}

    names = {"content_type": "application/json"} | headers
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in names.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": lines}, receive)


def read(reader: BodyReader, *asked: Request) -> list[Any]:
    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*map(reader.read, asked), return_exceptions=True)

    return asyncio.run(all_of_them())


def statuses(found: list[Any]) -> list[Any]:
    return [item.status if isinstance(item, HttpFault) else item for item in found]


def test_bodies_are_bounded_alone_and_together() -> None:
    reader = BodyReader(most=10, most_together=15, seconds=5)
    assert read(reader, request([b"abc", b"de"])) == [b"abcde"]
    assert statuses(read(reader, request([b"abcdef"] * 2))) == [413]
    assert statuses(read(reader, request([], content_length="11"))) == [413]
    both = [request([b"a" * 9, 0.05]), request([0.01, b"b" * 9])]
    assert statuses(read(reader, *both)) == [b"a" * 9, 429]
    assert read(reader, request([b"a" * 9]))  # what was held is free again


def test_a_body_that_stopped_gives_its_room_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SILENT_SECONDS", 0.1)
    reader = BodyReader(most=10, most_together=15, seconds=5)
    stopped = request([b"a" * 9, 4.0, b"b"])
    late = request([0.4, b"c" * 9])
    assert statuses(read(reader, stopped, late)) == [408, b"c" * 9]
    both = [request([b"a" * 9]), request([b"b" * 6])]
    assert read(reader, *both) == [b"a" * 9, b"b" * 6]


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    reader = BodyReader(most=10, most_together=99, seconds=0.05)
    assert statuses(read(reader, request([b"a", 5.0]))) == [408]
    assert isinstance(read(reader, request([b"a", None]))[0], ClientGoneError)
    assert statuses(read(reader, request([b"{}"], content_type="text/html"))) == [415]


def test_marks_inside_texts_do_not_count() -> None:
    text = "[,{" * MOST_VALUES + '\\"' * 9
    body = b'{"inputs":"' + text.encode() + b'"}'
    assert len(parse(EmbedBody, body).inputs) == 3 * MOST_VALUES + 9
    with pytest.raises(HttpFault, match="more than 60000 values"):
        parse(EmbedBody, b'{"inputs":[' + b"{}," * MOST_VALUES + b"{}]}")


def test_many_wrong_values_are_not_all_told() -> None:
    with pytest.raises(HttpFault) as caught:
        parse(PredictBody, b'{"inputs":[' + b"1," * 20_000 + b"1]}")
    assert caught.value.status == 422
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon", ""])
def test_times_that_are_none(value: str) -> None:
    with pytest.raises(HttpFault, match="number of seconds"):
        timeout_of(request([], x_request_timeout=value))
    assert timeout_of(request([])) is None
    assert timeout_of(request([], x_request_timeout="0.5")) == 0.5


def test_faults_have_the_shape_of_their_route() -> None:
    fault = HttpFault(429, "later", headers={"retry-after": "1"})
    assert (
        bytes(fault_response(fault, "/embed").body)
        == b'{"error":"later","error_type":"Overloaded"}'
    )
    assert b'"code":429' in bytes(fault_response(fault, "/v1/embeddings").body)
