from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.serve.header_rules import HeaderFault, check_header

GOOD = b"POST /embed HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}"
REFUSED = {
    "both lengths": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    "length twice": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
    "length twice in a line": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2, 2\r\n\r\n",
    "length with sign": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\n",
    "length in hex": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x2\r\n\r\n",
    "length of other digits": "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ٢\r\n\r\n".encode(),
    "coding unknown": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
    "coding twice": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
    "coding hidden": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "coding in a list": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity, chunked\r\n\r\n",
    "coding in HTTP/1.0": b"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
    "blank before colon": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 2\r\n\r\n",
    "blank before name": b"POST / HTTP/1.1\r\n Host: h\r\n\r\n",
    "folded line": b"POST / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
    "bare line feed": b"POST / HTTP/1.1\nHost: h\n\n",
    "bare line feed between": b"POST / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
    "bare carriage return": b"POST / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
    "control character": b"POST / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n",
    "no colon": b"POST / HTTP/1.1\r\nHost h\r\n\r\n",
    "no version": b"POST /\r\nHost: h\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\n",
    "two blanks": b"POST  / HTTP/1.1\r\nHost: h\r\n\r\n",
    "host twice": b"POST / HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n",
    "host with a bracket": b"POST / HTTP/1.1\r\nHost: [localhost\r\n\r\n",
    "host with a path": b"POST / HTTP/1.1\r\nHost: localhost/v1\r\n\r\n",
    "host with a query": b"POST / HTTP/1.1\r\nHost: localhost:80?\r\n\r\n",
    "host with a user": b"POST / HTTP/1.1\r\nHost: a@localhost\r\n\r\n",
    "host with a port that is none": b"POST / HTTP/1.1\r\nHost: localhost:http\r\n\r\n",
    "empty first line": b"\r\nPOST / HTTP/1.1\r\nHost: h\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_two_readings_is_refused(name: str) -> None:
    with pytest.raises(HeaderFault) as caught:
        check_header(REFUSED[name], 16_384)
    assert caught.value.status == 400


def test_a_usual_header_passes() -> None:
    assert check_header(GOOD, 16_384)
    assert check_header(GOOD.replace(b"Content-Length: 2", b"Transfer-Encoding: Chunked"), 16_384)


@pytest.mark.parametrize(
    "host", ["", "localhost", "a_b-c.example:8080", "127.0.0.1:1", "[::1]", "[::1]:80"]
)
def test_names_of_hosts_pass(host: str) -> None:
    assert check_header(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), 16_384)


@given(st.integers(0, len(GOOD) - 3))
def test_a_part_of_it_is_waited_for(size: int) -> None:
    assert not check_header(GOOD[:size], 16_384)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nX: " + b"a" * 2000,
        b"GET / HTTP/1.1\r\nX: " + b"a" * 2000 + b"\r\n\r\n",
        b"GET /" + b"a" * 2000,
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n",
    ],
)
def test_what_is_too_long_has_a_status_of_its_own(data: bytes) -> None:
    with pytest.raises(HeaderFault) as caught:
        check_header(data, 1024)
    assert caught.value.status == 431


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_waited_for_but_never_break_it(data: bytes) -> None:
    try:
        check_header(data, 200)
    except HeaderFault as fault:
        assert fault.status in (400, 431)
