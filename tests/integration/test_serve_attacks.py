"""What an attack by hand found in a real server; `benchmarks.serve_attack` is the whole of it."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Generator

import pytest
from serve_process import ServeProcess, everything
from tests.serve_folders import make_folder

pytest.importorskip("fastapi")
pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

CHUNKED = (
    b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
CHUNK = b'10\r\n{"inputs":"lamp"\r\n1\r\n}\r\n'
HIDDEN = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServeProcess]:
    folder = make_folder("embed", tmp_path_factory.mktemp("serve") / "models")
    process = ServeProcess(
        folder, "--set", "header_seconds=0.8", "--set", "keep_alive_seconds=1", "--set", "watch=false",
        "--set", "max_connections=12", "--set", "max_reading_bytes=3000000",
    ).wait_until_serving()  # fmt: skip
    yield process
    process.kill()


def posted(path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def statuses(answer: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1.1 (\d+)", answer)


@pytest.mark.parametrize(
    "end",
    [b"0\r\n\n", b"0\r\nX: a\r\n\r\n", b"0\r\nX: a\n\n", b"0\r\nContent-Length: 9\r\n\r\n"],
)
def test_a_request_behind_a_doubtful_end_of_chunks_is_not_seen(
    server: ServeProcess, end: bytes
) -> None:
    assert statuses(server.raw(CHUNKED + CHUNK + end + HIDDEN)) == [b"400"]


def test_good_chunks_are_read(server: ServeProcess) -> None:
    assert statuses(server.raw(CHUNKED + CHUNK + b"0\r\n\r\n" + HIDDEN)) == [b"200", b"200"]


def test_a_body_of_single_bytes_does_not_keep_the_server(server: ServeProcess) -> None:
    assert statuses(server.raw(CHUNKED + b"1\r\na\r\n" * 60_000 + b"0\r\n\r\n")) == [b"400"]


def test_a_doubtful_host_is_refused_and_never_part_of_an_address(server: ServeProcess) -> None:
    for host in ("[localhost", "localhost:1/v1/embeddings?", "localhost@evil.example"):
        status, answer, _ = server.ask("/embed", {}, headers={"host": host})
        assert (status, answer["error"]) == (400, "host is no NAME or NAME:PORT")
    assert server.ask("/embed/", {"inputs": "a"})[0] == 404  # no way back that the client names


def test_a_body_behind_its_answer_does_not_keep_the_connection(server: ServeProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(posted("/nothing", 50_000))
        with http.client.HTTPResponse(sock) as answer:
            answer.begin()
            assert (answer.status, "error" in json.loads(answer.read())) == (404, True)
        sock.sendall(b"a" * 50_000)
        start = time.monotonic()
        assert everything(sock, 15.0) == b""
        assert time.monotonic() - start < 8
    # One that waits for an answer before it sends the body hears nothing else afterwards.
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(posted("/nothing", 9))
        assert statuses(everything(sock, 15.0)) == [b"404"]


def test_who_sends_too_much_reads_why(server: ServeProcess) -> None:
    status, answer, _ = server.ask("/embed", b"a" * 8_000_000)
    assert (status, answer["error_type"]) == (413, "PayloadTooLarge")


def test_a_body_that_stops_after_a_fast_start_is_given_up(server: ServeProcess) -> None:
    start = time.monotonic()
    answer = server.raw(posted("/embed", 1_900_000) + b" " * 1_800_000, wait=20.0)
    assert statuses(answer) == [b"408"]
    assert time.monotonic() - start < 10


def test_bodies_that_stop_do_not_take_the_room_of_others(server: ServeProcess) -> None:
    socks = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
    for sock in socks:
        sock.sendall(posted("/embed", 1_900_000) + b" " * 990_000)
    time.sleep(1.2)
    assert server.ask("/embed", {"inputs": ["lamp"] * 8 + [" " * 9_000] * 8})[0] == 200
    for sock in socks:
        sock.close()


def test_silent_connections_do_not_lock_out_others(server: ServeProcess) -> None:
    socks = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    try:
        for _ in range(3):
            assert server.ask("/embed", {"inputs": "the lamp"})[0] == 200
    finally:
        for sock in socks:
            sock.close()


def test_the_interface_is_described_as_it_answers(server: ServeProcess) -> None:
    document = server.ask("/openapi.json")[1]
    paths = document["paths"]
    assert list(paths["/metrics"]["get"]["responses"]["200"]["content"]) == ["text/plain"]
    assert {"200", "403", "503"} <= set(paths["/ready"]["get"]["responses"])
    assert {"200", "401", "404"} <= set(paths["/info"]["get"]["responses"])
    assert list(paths["/"]["get"]["responses"]["200"]["content"]) == ["text/html"]
    body = paths["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["model"]["anyOf"][0]["enum"] == ["embed"]
