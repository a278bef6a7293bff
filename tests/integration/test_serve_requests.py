"""One server with a model of each kind: its routes, its limits, and other people's clients."""

from __future__ import annotations

import base64
import json
import re
import socket
import struct
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve_process import ServeProcess, everything
from tests.serve_folders import make_folder

from litebert.runtime import Session

pytest.importorskip("fastapi")
pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

KINDS = ("classify", "embed", "ner", "qa", "words")
SAME = 1e-5
"""Float32 sums in another order."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("serve") / "models"
    return {kind: make_folder(kind, root) for kind in KINDS}


@pytest.fixture(scope="module")
def server(folders: dict[str, Path]) -> Generator[ServeProcess]:
    process = ServeProcess(
        *(f"{kind}={folder}" for kind, folder in folders.items()),
        "--set", "header_seconds=1.0", "--set", "max_body_bytes=300000", "--set", "watch=false",
    ).wait_until_serving()  # fmt: skip
    yield process
    process.kill()


def header(method: str = "POST", path: str = "/embed", *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def test_every_route_answers(server: ServeProcess, folders: dict[str, Path]) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/predict", {"inputs": "the lamp"}),
        ("/embed", {"inputs": ["the lamp", "a chair"], "model": "embed"}),
        ("/rerank", {"query": "lamp", "texts": ["chair", "lamp"], "model": "embed"}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "model": "embed"}),
        ("/tokenize", {"inputs": "the lamp"}),
        ("/decode", {"ids": [7, 8]}),
        ("/v1/embeddings", {"input": "the lamp", "model": "embed"}),
        ("/embeddings", {"input": ["the lamp"], "model": "embed", "user": "me"}),
        ("/v1/qa", {"question": "who", "context": "anna near berlin", "model": "qa"}),
        ("/v1/qa", {"inputs": [{"question": "who", "context": "anna"}], "model": "qa", "top_k": 2}),
        ("/v1/ner", {"inputs": ["anna near berlin"], "model": "ner"}),
        ("/v1/fill-mask", {"inputs": "the [MASK]", "model": "words"}),
        ("/", {"inputs": "the lamp"}),
    ]
    for path, body in asked:
        status, answer, headers = server.ask(path, body)
        assert status == 200, (path, answer)
        assert answer
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert re.fullmatch(r"[0-9a-f]{16}", headers["x-request-id"])
        assert headers["cache-control"] == "no-store"
    vectors = server.ask("/embed", {"inputs": ["the lamp", "a chair"], "model": "embed"})[1]
    expected = Session(folders["embed"], threads=1).embed(["the lamp", "a chair"])
    np.testing.assert_allclose(vectors, expected, atol=SAME, rtol=0)
    for path in (
        "/health",
        "/ping",
        "/ready",
        "/info",
        "/info?model=qa",
        "/v1/models",
        "/openapi.json",
    ):
        assert server.ask(path)[0] == 200
    assert server.ask("/info")[1]["model_type"]["classifier"]["id2label"]["1"] == "good"
    assert server.ask("/info?model=embed")[1]["model_type"] == {"embedding": {"pooling": "mean"}}
    assert [item["id"] for item in server.ask("/v1/models")[1]["data"]] == list(KINDS)
    assert (
        server.ask("/predict", {"inputs": "a"}, headers={"x-request-id": "mine-7"})[2][
            "x-request-id"
        ]
        == "mine-7"
    )


def test_metrics_are_what_prometheus_reads(server: ServeProcess) -> None:
    before = server.metric("litebert_requests_total")
    server.ask("/predict", {"inputs": "the lamp"})
    status, text, headers = server.ask("/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert server.metric("litebert_requests_total") >= before + 2
    sample = re.compile(r'[a-z_]+(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? (\+Inf|[0-9.e+-]+)')
    kinds: dict[str, str] = {}
    for line in text.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            assert sample.fullmatch(line), line
    assert kinds["litebert_request_seconds"] == "histogram"
    buckets = re.findall(
        r'litebert_request_seconds_bucket\{route="/predict",le="(.*?)"\} (\d+)', text.decode()
    )
    assert buckets[-1][0] == "+Inf"
    assert [int(n) for _, n in buckets] == sorted(int(n) for _, n in buckets)


REFUSED: list[tuple[str, Any, int, str]] = [
    ("/predict", b"", 400, "no JSON"),
    ("/predict", b"{", 400, "no JSON"),
    ("/predict", b'{"inputs": NaN}', 400, "no JSON"),
    ("/predict", b"\xef\xbb\xbf{}", 400, "no JSON"),
    ("/predict", b'{"inputs":"\xff"}', 400, "no JSON"),
    ("/predict", b'{"inputs":"\\ud800"}', 400, "no JSON"),
    ("/predict", b"[" * 50_000, 400, "no JSON"),
    ("/predict", b'{"inputs":"a","depth":' + b"9" * 5000 + b"}", 400, "no JSON"),
    ("/predict", b'{"inputs":[' + b"1," * 80_000 + b"1]}", 400, "more than 60000 values"),
    ("/predict", b'{"inputs":[' + b'"",' * 61_000 + b'""]}', 400, "more than 60000 values"),
    ("/predict", b'{"inputs":[' + b"[]," * 50_000 + b"[]]}", 400, "more than 60000 values"),
    ("/predict", {"inputs": ["a"] * 5000}, 422, "at most 4096 items"),
    ("/predict", {"inputs": ",[" * 50_000}, 422, "100000 characters"),
    ("/predict", {"inputs": []}, 400, "no input"),
    ("/predict", {}, 422, "inputs: Field required"),
    ("/predict", [], 422, "body"),
    ("/predict", {"inputs": 7}, 422, "inputs"),
    ("/predict", {"inputs": "a", "top_k": True}, 422, "top_k"),
    ("/predict", {"inputs": "a", "dept": 1}, 422, "dept: not known here; known: model, depth"),
    ("/predict", {"inputs": "a", "depth": 0}, 422, "depth"),
    ("/predict", {"inputs": "a", "depth": 99}, 422, "depth is 99; allowed: 1 to 2"),
    ("/predict", {"inputs": ["a"] * 33}, 422, "33 inputs; allowed: 32"),
    ("/predict", {"inputs": "a" * 16_001}, 422, "16001 characters; allowed: 16000"),
    ("/predict", {"inputs": "a", "model": "../embed"}, 404, "no model of this name"),
    ("/predict", {"inputs": "a", "model": "embedd"}, 404, "did you mean 'embed'"),
    ("/predict", {"inputs": "a", "model": "e" * 10_000}, 422, "model"),
    ("/v1/ner", {"inputs": "a"}, 422, "needs a model that tags words"),
    ("/v1/qa", {"question": "a", "model": "qa"}, 422, "give either question and context, or inputs"),
    ("/embed", {"inputs": "lamp " * 200, "truncate": False}, 422, "input 0 has"),
    ("/decode", {"ids": [1 << 40]}, 422, "ids"),
    ("/nothing", {}, 404, "no such route"),
    ("/%2e%2e%2fetc/passwd", {}, 404, "no such route"),
    ("/health", {}, 405, "another method"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "message"), REFUSED)
def test_what_is_wrong_is_said_without_a_word_of_the_inside(
    server: ServeProcess, path: str, body: Any, status: int, message: str
) -> None:
    found, answer, headers = server.ask(path, body)
    assert (found, message in answer["error"]) == (status, True), answer
    assert isinstance(answer["error_type"], str)
    assert "Traceback" not in answer["error"]
    assert "/" not in answer["error"].replace("GET /info", "").replace("GET /openapi.json", "")
    assert "x-request-id" in headers


def test_a_405_names_the_methods_of_all_routes_of_a_path(server: ServeProcess) -> None:
    for path, methods in (("/", "GET, HEAD, POST"), ("/health", "GET"), ("/predict", "POST")):
        status, _, headers = server.ask(path, method="PUT")
        assert (status, headers["allow"]) == (405, methods)


def test_faults_of_openai_routes_have_their_shape(server: ServeProcess) -> None:
    status, answer, _ = server.ask("/v1/embeddings", {"input": "a", "model": "gpt"})
    assert status == 404
    assert set(answer) == {"message", "code", "type"}


def test_bodies_are_bounded_and_json(server: ServeProcess) -> None:
    large = {"inputs": "a" * 300_000}
    assert server.ask("/predict", large)[0] == 413
    assert server.ask("/predict", {"inputs": "a"}, headers={"content-type": "text/plain"})[0] == 415
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    assert b" 413 " in server.raw(header("POST", "/embed", *lines) + chunk * 6 + b"0\r\n\r\n")
    assert server.ask("/embed", {"inputs": "a"}, headers={"x-request-timeout": "never"})[0] == 400


def test_only_names_of_this_machine_are_answered(server: ServeProcess) -> None:
    assert server.ask("/health", headers={"host": "evil.example"})[0] == 403
    for name in ("localhost", "127.0.0.1:99", "[::1]:80", "LOCALHOST"):
        assert server.ask("/health", headers={"host": name})[0] == 200


def test_a_deadline_is_kept(server: ServeProcess) -> None:
    start = time.monotonic()
    many = {"inputs": ["lamp " * 60] * 32, "model": "embed"}
    status, answer, _ = server.ask("/embed", many, headers={"x-request-timeout": "0.0001"})
    assert (status, answer["error_type"]) == (504, "Timeout")
    assert time.monotonic() - start < 5


def test_logs_hold_no_text_and_no_line_of_others(server: ServeProcess) -> None:
    secret = "xyzzy-plugh"
    server.ask(f"/predict?{secret}", {"inputs": secret})
    server.ask(
        f"/{secret}", {"inputs": secret}, headers={"user-agent": secret, "x-request-id": "a b"}
    )
    server.ask("/v1/ner", {"inputs": secret})
    server.raw(f"GET /{secret} HTTP/9\r\n\r\n".encode())
    time.sleep(0.2)
    assert "route=/predict" in server.log
    assert secret not in server.log


RAW = {
    "both lengths": header("POST", "/embed", "Content-Length: 2", "Transfer-Encoding: chunked")
    + b"0\r\n\r\n",
    "length twice": header("POST", "/embed", "Content-Length: 2", "Content-Length: 3") + b"{}",
    "unknown coding": header("POST", "/embed", "Transfer-Encoding: gzip, chunked"),
    "folded line": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "bare line feeds": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "huge header": header("GET", "/health", "X: " + "a" * 100_000),
    "many headers": header("GET", "/health", *("X: y" for _ in range(2000))),
    "huge target": header("GET", "/" + "a" * 100_000),
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "bad chunk": header(
        "POST", "/embed", "Content-Type: application/json", "Transfer-Encoding: chunked"
    )
    + b"zz\r\n",
}


@pytest.mark.parametrize("name", RAW)
def test_requests_that_are_none_are_refused_and_the_connection_closed(
    server: ServeProcess, name: str
) -> None:
    start = time.monotonic()
    answer = server.raw(RAW[name])
    assert re.match(rb"HTTP/1.1 (400|408|431) ", answer) or (name == "bad chunk" and not answer), (
        answer
    )
    assert time.monotonic() - start < 5
    assert server.ask("/health")[0] == 200


def test_a_second_request_cannot_be_hidden_in_the_first(server: ServeProcess) -> None:
    inner = header("GET", "/health")
    smuggled = (
        header("POST", "/predict", "Content-Length: 5", "Transfer-Encoding: chunked")
        + b"0\r\n\r\n"
        + inner
    )
    assert server.raw(smuggled, wait=3).count(b"HTTP/1.1") == 1


def test_requests_in_a_row_on_one_connection_are_answered_in_order(server: ServeProcess) -> None:
    body = b'{"inputs":"a"}'
    post = (
        header("POST", "/predict", "Content-Type: application/json", f"Content-Length: {len(body)}")
        + body
    )
    last = header("GET", "/health", "Connection: close")
    answer = server.raw(post + header("GET", "/nothing") + post + last)
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"404", b"200", b"200"]


def test_slow_clients_are_sent_away_and_do_not_slow_down_others(server: ServeProcess) -> None:
    start = header("POST", "/embed", "Content-Type: application/json", "Content-Length: 1000")
    slow = [b"", b"GET /hea", start[:-2], start, start + b"{"] * 12
    socks = [socket.create_connection(("127.0.0.1", server.port)) for _ in slow]
    for sock, data in zip(socks, slow, strict=True):
        sock.sendall(data)
    assert server.ask("/predict", {"inputs": "the lamp"})[0] == 200
    begin = time.monotonic()
    answers = [everything(sock, 20.0) for sock in socks]
    assert time.monotonic() - begin < 15
    for sock, data, answer in zip(socks, slow, answers, strict=True):
        assert answer.startswith(b"HTTP/1.1 408 ") or (not data and not answer)
        sock.close()
    assert server.ask("/health")[0] == 200


def test_a_client_that_goes_away_frees_its_place(server: ServeProcess) -> None:
    body = json.dumps({"inputs": ["lamp " * 60] * 32, "model": "embed"}).encode()
    post = (
        header("POST", "/embed", "Content-Type: application/json", f"Content-Length: {len(body)}")
        + body
    )
    for _ in range(20):
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.sendall(post)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    end = time.monotonic() + 30
    while server.metric("litebert_requests_in_flight") and time.monotonic() < end:
        time.sleep(0.05)
    assert server.metric("litebert_requests_in_flight") == 0


def test_half_closed_and_reset_connections_do_no_harm(server: ServeProcess) -> None:
    for data in (
        b"",
        b"GET /health HTTP/1.1\r\n",
        header("GET", "/health"),
        header("POST", "/embed"),
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            everything(sock, 5.0)
    assert server.ask("/health")[0] == 200


def test_the_openai_client_gets_vectors(server: ServeProcess, folders: dict[str, Path]) -> None:
    openai = pytest.importorskip("openai")
    expected = Session(folders["embed"], threads=1).embed(["the lamp", "a chair"])
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
            found = client.embeddings.create(
                model="embed", input=["the lamp", "a chair"], **options
            )
            vectors = [item.embedding for item in found.data]
            if options.get("encoding_format") == "base64":
                vectors = [np.frombuffer(base64.b64decode(text), "<f4") for text in vectors]
            np.testing.assert_allclose(vectors, expected, atol=SAME, rtol=0)
            assert found.usage.prompt_tokens > 0
        assert (
            len(client.embeddings.create(model="embed", input="a", dimensions=4).data[0].embedding)
            == 4
        )
        assert [model.id for model in client.models.list()] == list(KINDS)
        with pytest.raises(openai.NotFoundError, match="no model of this name"):
            client.embeddings.create(model="other", input="a")
        with pytest.raises(openai.UnprocessableEntityError):
            client.embeddings.create(model="embed", input=[1, 2, 3])


def test_the_client_of_hugging_face_works_on_every_task(
    server: ServeProcess, folders: dict[str, Path], tmp_path: Path
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    client = hub.InferenceClient(server.url)
    best = client.text_classification("the lamp", top_k=2)
    assert next(item.label for item in best) in ("bad", "good", "so-so")
    assert len(best) == 2
    for kind in ("embed", "ner", "qa", "words"):
        # That client names a model by its address alone.
        client = hub.InferenceClient(f"{server.url}/models/{kind}")
        if kind == "embed":
            expected = Session(folders[kind], threads=1).embed("the lamp")
            np.testing.assert_allclose(client.feature_extraction("the lamp"), expected, atol=SAME)
            assert len(client.sentence_similarity("a", other_sentences=["b", "c"])) == 2
        elif kind == "ner":
            for entity in client.token_classification("anna near berlin"):
                assert "anna near berlin"[entity.start : entity.end] == entity.word
        elif kind == "qa":
            answer = client.question_answering(question="who", context="anna near berlin")
            assert "anna near berlin"[answer.start : answer.end] == answer.answer
        else:
            found = client.fill_mask("the [MASK]", top_k=3)
            assert [len(found), found[0].sequence.startswith("the ")] == [3, True]
