"""Requests that are none, byte by byte: what comes back, and whether the connection is closed."""

# ruff: noqa: E501 - a row of the table is a line

from __future__ import annotations

import asyncio
import re
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.attack.clients import beside, learn
from benchmarks.attack.models import make_models, questions
from benchmarks.attack.server import Server

__all__ = ["ROWS", "malformed", "send"]

CLOSE_SECONDS = 12.0
"""All clocks of the server together, as it is started here, with room for a busy machine."""
HALF, RESET = "half", "reset"
JSON = "Content-Type: application/json"
BODY = b'{"inputs":"lamp"}'
TLS = bytes.fromhex("16030100c8010000c40303") + bytes(range(190))


def head(first: str, *lines: str, host: str = "Host: localhost") -> bytes:
    """A header, with Host first."""
    return "\r\n".join([first, *([host] if host else []), *lines, "", ""]).encode("latin-1")


def post(*lines: str, path: str = "/embed", host: str = "Host: localhost") -> bytes:
    """The header of a request with a body."""
    return head(f"POST {path} HTTP/1.1", JSON, *lines, host=host)


GET = head("GET /health HTTP/1.1")
GOOD = post(f"Content-Length: {len(BODY)}") + BODY
CHUNKED = post("Transfer-Encoding: chunked")
ONE = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n"
HIDDEN = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

ROWS: list[tuple[str, list[Any], str]] = [
    # Name; what is sent (bytes, seconds of silence, half-close, reset); statuses that may come, in order.
    ("a good request", [GOOD], "200"),
    ("three good ones in a row", [GOOD + GET + GOOD], "200 200 200"),
    ("good, in single bytes", [part for byte in GOOD for part in (bytes([byte]), 0.0005)], "200"),
    # two readings of where a body ends
    ("length and coding", [post("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + HIDDEN], "400"),
    ("coding and length", [post("Transfer-Encoding: chunked", "Content-Length: 5") + b"0\r\n\r\n" + HIDDEN], "400"),
    ("two lengths", [post("Content-Length: 17", "Content-Length: 0") + BODY], "400"),
    ("two equal lengths", [post("Content-Length: 17", "Content-Length: 17") + BODY], "400"),
    ("a list of lengths", [post("Content-Length: 17, 17") + BODY], "400"),
    ("a negative length", [post("Content-Length: -1") + BODY], "400"),
    ("a length with plus", [post("Content-Length: +17") + BODY], "400"),
    ("a hexadecimal length", [post("Content-Length: 0x11") + BODY], "400"),
    ("a length with underscore", [post("Content-Length: 1_7") + BODY], "400"),
    ("a length of digits of another script", [post("Content-Length: \xb2") + BODY], "400"),
    ("an empty length", [post("Content-Length:") + BODY], "400"),
    ("a length beyond 64 bits", [post("Content-Length: 99999999999999999999") + BODY], "400"),
    ("a huge length", [post("Content-Length: 999999999999999") + BODY], "413"),
    ("a space before the colon", [post("Content-Length : 17") + BODY], "400"),
    ("a length that is too small", [post("Content-Length: 5") + BODY], "400|400 400|400 408"),
    ("a length that is too large", [post("Content-Length: 99") + BODY], "408"),
    ("coding twice", [post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + ONE], "400"),
    ("chunked, chunked", [post("Transfer-Encoding: chunked, chunked") + ONE], "400"),
    ("gzip, chunked", [post("Transfer-Encoding: gzip, chunked") + ONE], "400"),
    ("identity", [post("Transfer-Encoding: identity") + BODY], "400"),
    ("chunked with a tab of another kind", [post("Transfer-Encoding: \x0bchunked") + ONE], "400"),
    ("a coding in HTTP/1.0", [head("POST /embed HTTP/1.0", JSON, "Transfer-Encoding: chunked") + ONE], "400"),
    # chunks
    ("good chunks", [CHUNKED + ONE + b"0\r\n\r\n"], "200"),
    ("an extension of a chunk", [CHUNKED + ONE.replace(b"\r\n", b";a=b\r\n", 1) + b"0\r\n\r\n"], "200"),
    ("a chunk that is no number", [CHUNKED + b"zz\r\n"], "400"),
    ("a negative chunk", [CHUNKED + b"-1\r\n" + BODY], "400"),
    ("a chunk with plus", [CHUNKED + b"+11\r\n" + BODY], "400"),
    ("a chunk with 0x", [CHUNKED + b"0x11\r\n" + BODY], "400"),
    ("a chunk of many digits", [CHUNKED + b"f" * 40 + b"\r\n" + BODY], "400"),
    ("an immense chunk", [CHUNKED + b"ffffffffffffffff\r\n" + BODY], "408"),
    ("an endless chunk header", [CHUNKED + b"1;" + b"a" * 200_000], "400"),
    ("a chunk without its end", [CHUNKED + ONE[:-2] + b"0\r\n\r\n"], "400"),
    ("a bare line feed in a chunk header", [CHUNKED + ONE.replace(b"\r\n", b"\n", 1) + b"0\r\n\r\n"], "400"),
    ("a bare line feed behind a chunk", [CHUNKED + ONE[:-2] + b"\n0\r\n\r\n"], "400"),
    ("a bare line feed as the end", [CHUNKED + ONE + b"0\r\n\n" + HIDDEN], "400"),
    ("trailers", [CHUNKED + ONE + b"0\r\nX: a\r\n\r\n"], "400"),
    ("trailers with bare line feeds", [CHUNKED + ONE + b"0\r\nX: a\n\n" + HIDDEN], "400"),
    ("a length as a trailer", [CHUNKED + ONE + b"0\r\nContent-Length: 5\r\n\r\n" + HIDDEN], "400"),
    ("chunks without end", [CHUNKED + ONE], "408"),
    ("a body of single bytes", [CHUNKED + b"1\r\na\r\n" * 400_000 + b"0\r\n\r\n"], "400"),
    ("more chunks than allowed bytes", [CHUNKED + b"10000\r\n" + b"a" * 0x10000 + b"\r\n", *[b"10000\r\n" + b"a" * 0x10000 + b"\r\n"] * 40], "413"),
    # header lines
    ("a folded line", [head("GET /health HTTP/1.1", "X: a", " b")], "400"),
    ("a folded first line", [b"GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n"], "400"),
    ("bare line feeds", [GET.replace(b"\r\n", b"\n")], "400"),
    ("bare carriage returns", [GET.replace(b"\r\n", b"\r")], "408"),
    ("a line feed inside a value", [head("GET /health HTTP/1.1", "X: a\nTransfer-Encoding: chunked")], "400"),
    ("NUL in a value", [head("GET /health HTTP/1.1", "X: a\x00b")], "400"),
    ("NUL in a name", [head("GET /health HTTP/1.1", "X\x00: a")], "400"),
    ("NUL in the target", [head("GET /health\x00 HTTP/1.1")], "400"),
    ("a header without name", [head("GET /health HTTP/1.1", ": a")], "400"),
    ("a header without colon", [head("GET /health HTTP/1.1", "abc")], "400"),
    ("a huge header", [head("GET /health HTTP/1.1", "X: " + "a" * 2_000_000)], "431"),
    ("a huge name", [head("GET /health HTTP/1.1", "a" * 30_000 + ": a")], "431"),
    ("ten thousand headers", [head("GET /health HTTP/1.1", *["X: y"] * 10_000)], "431"),
    ("a huge target", [head(f"GET /{'a' * 30_000} HTTP/1.1")], "431"),
    ("a header without end", [GET[:-2]], "408"),
    ("an empty line before", [b"\r\n" + GET], "400"),
    ("one line feed", [b"\n"], "400"),
    ("nothing", [], ""),
    # request lines
    ("no version", [b"GET /health\r\n\r\n"], "400"),
    ("HTTP/0.9", [b"GET /health\r\n"], "408|400"),
    ("HTTP/2 preface", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)], "400"),
    ("HTTP/1.2", [head("GET /health HTTP/1.2")], "400"),
    ("HTTP/3", [head("GET /health HTTP/3")], "400"),
    ("two spaces", [head("GET  /health HTTP/1.1")], "400"),
    ("a tab", [head("GET\t/health HTTP/1.1")], "400"),
    ("a method that is none", [head("G@T /health HTTP/1.1")], "400"),
    ("an unknown method", [head("BREW /health HTTP/1.1")], "405"),
    ("CONNECT", [head("CONNECT localhost:80 HTTP/1.1") + GET], "404|404 200|400|405"),
    ("TRACE", [head("TRACE /health HTTP/1.1")], "405"),
    ("upgrade to HTTP/2", [head("GET /health HTTP/1.1", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")], "200"),
    ("upgrade to a web socket", [head("GET /health HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==") + GET], "200 200|200"),
    ("an absolute address", [head("GET http://localhost/health HTTP/1.1")], "404"),
    ("the address of another host", [head("GET http://evil.example/health HTTP/1.1")], "404"),
    ("an asterisk", [head("OPTIONS * HTTP/1.1")], "404|405"),
    ("bytes beyond ASCII in the target", [b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n"], "400"),
    ("percent codes that are no UTF-8", [head("GET /%ff%00%0d%0a HTTP/1.1")], "404"),
    ("dots", [head("GET /../../etc/passwd HTTP/1.1")], "404"),
    ("encoded dots", [head("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1")], "404"),
    ("a slash at the end", [post(f"Content-Length: {len(BODY)}", path="/embed/") + BODY], "404"),
    # hosts
    ("no host", [head("GET /health HTTP/1.1", host="")], "400"),
    ("two hosts", [head("GET /health HTTP/1.1", "Host: localhost")], "400"),
    ("another host", [head("GET /health HTTP/1.1", host="Host: evil.example")], "403"),
    ("an empty host", [head("GET /health HTTP/1.1", host="Host:")], "403|400"),
    ("a host with a path", [post("Content-Length: 2", host="Host: localhost:1/v1/embeddings?") + b"[]"], "400"),
    ("a host with a bracket", [post("Content-Length: 2", host="Host: [localhost") + b"[]"], "400"),
    ("a host with a user", [post("Content-Length: 2", host="Host: localhost:80@evil.example") + b"[]"], "400"),
    ("a host with a port that is none", [head("GET /health HTTP/1.1", host="Host: localhost:99999999")], "200|400"),
    # other protocols, and ends in the middle
    ("TLS", [TLS], "408|400"),
    ("TLS with a line end", [TLS + b"\r\n\r\n"], "400"),
    ("zeros", [bytes(100_000)], "431"),
    ("binary", [bytes(range(256)) * 4], "400"),
    ("garbage behind a good request", [GOOD + b"\x00\x01garbage\r\n\r\n"], "200 400"),
    ("a smuggled line behind a good request", [GOOD + b"X: y\r\n\r\n" + HIDDEN], "200 400"),
    ("a half-closed header", [GET[:-2], HALF], ""),
    ("a half-closed body", [post("Content-Length: 17") + BODY[:5], HALF], "400|"),
    ("half-closed and silent", [HALF], ""),
    ("a reset in the header", [GET[:-2], RESET], ""),
    ("a reset in the body", [post("Content-Length: 17") + BODY[:5], RESET], ""),
    ("a reset behind the request", [GOOD, RESET], ""),
    ("a reset behind many", [GOOD * 50, RESET], ""),
    # bodies
    ("asked to go on, no body", [post("Content-Length: 17", "Expect: 100-continue"), 0.2], "100 408"),
    ("asked to go on, not wanted", [head("POST /embed HTTP/1.1", "Content-Length: 17", "Expect: 100-continue"), 0.2], "415"),
    ("no JSON and no body", [head("POST /embed HTTP/1.1", "Content-Length: 17")], "415"),
    ("20 MB that are too many", [post("Content-Length: 20000000"), *[b"a" * 100_000] * 200], "413"),
    ("20 MB to where nothing is", [post("Content-Length: 20000000", path="/nothing"), *[b"a" * 100_000] * 200], "404"),
    ("a number of a million digits", [post("Content-Length: 1000011") + b'{"inputs":' + b"9" * 1_000_000 + b"}"], "400|422"),
    ("a million brackets", [post("Content-Length: 1000000") + b"[" * 1_000_000], "400"),
    ("a million values", [post("Content-Length: 1999999") + b"[" + b"1," * 999_998 + b"1]"], "400"),
    ("not UTF-8", [post("Content-Length: 14") + b'{"inputs":"\xff"}'], "400"),
    ("half a pair", [post("Content-Length: 19") + b'{"inputs":"\\ud800"}'], "400|422"),
    ("NaN", [post("Content-Length: 26") + b'{"inputs":"a","depth":NaN}'], "400"),
    ("a mark of byte order", [post("Content-Length: 20") + b"\xef\xbb\xbf" + BODY], "400"),
    ("many ranges of a page", [head("GET / HTTP/1.1", "Range: bytes=" + ",".join(f"{n}-{n + 9}" for n in range(1200)))], "200|206|416|400"),
]  # fmt: skip


def send(
    port: int, steps: Sequence[Any], wait: float = CLOSE_SECONDS
) -> tuple[list[int], float | None]:
    """Send step by step; return the statuses that came, and the seconds until the server closed, if it did.

    Raises:
        ValueError: what came is no HTTP.
    """
    parts: list[bytes] = []
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as sock:
        start = time.monotonic()
        try:
            for step in steps:
                if isinstance(step, float):
                    time.sleep(step)
                elif step == HALF:
                    sock.shutdown(socket.SHUT_WR)
                elif step == RESET:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return [], 0.0
                else:
                    sock.sendall(step)
        except TimeoutError:
            return [], None
        except ConnectionError:
            pass  # closed before the end: what it said is read all the same
        while True:
            left = start + wait - time.monotonic()
            if left <= 0:
                return statuses(b"".join(parts)), None
            sock.settimeout(left)
            try:
                part = sock.recv(1 << 16)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            if not part:
                break
            parts.append(part)
        return statuses(b"".join(parts)), time.monotonic() - start


def statuses(data: bytes) -> list[int]:
    """Return the statuses of answers that stand one behind the other.

    Raises:
        ValueError: they do not.
    """
    found: list[int] = []
    while data:
        match = re.match(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n", data)
        if match is None:
            raise ValueError(f"no answer: {data[:100]!r}")
        found.append(int(match[1]))
        size = re.search(rb"(?im)^content-length: (\d+)", match[2])
        data = data[match.end() + (int(size[1]) if size else 0) :]
    return found


async def malformed(root: Path) -> dict[str, Any]:
    """Send every row while ordinary clients go on."""
    folders = make_models(root)
    server = Server(
        *(f"{k}={v}" for k, v in folders.items()),
        "--set",
        "header_seconds=1",
        "--set",
        "watch=false",
    )
    rows: dict[str, Any] = {}
    hung = wrong = 0
    try:
        asked = await learn(server.port, questions())
        async with beside(server.port, asked, clients=2, pause=0.02) as alone:
            await asyncio.sleep(5)
        async with beside(server.port, asked, clients=2, pause=0.02) as tally:
            for name, steps, expected in ROWS:
                try:
                    came, seconds = await asyncio.to_thread(send, server.port, steps)
                except ValueError as error:
                    came, seconds = [], 0.0
                    tally.note(f"{name}: {error}")
                    wrong += 1
                told = " ".join(map(str, came))
                is_right = told in expected.split("|")
                wrong += not is_right
                hung += seconds is None
                rows[name] = {
                    "came": told,
                    "closed_after": None if seconds is None else round(seconds, 2),
                }
                if not is_right:
                    rows[name]["expected"] = expected
        code = server.end()
    finally:
        server.kill()
    return {
        "requests": len(ROWS), "wrong": wrong, "hung": hung, "exit_code": code,
        "clients_before": alone.summary(), "clients_beside": tally.summary(), "rows": rows,
        "tracebacks": sum("Traceback" in line for line in server.lines),
    }  # fmt: skip
