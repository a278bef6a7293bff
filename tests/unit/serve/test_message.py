from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("h11")
import h11

from litebert.serve import message
from litebert.serve.message import MOST_CHUNKS, GuardedMessages

HEAD = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = HEAD + b"3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n"
HIDDEN = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
REFUSED = {
    "bare line feed at the end": HEAD + b"0\r\n\n" + HIDDEN,
    "bare line feed behind the size": HEAD + b"0\n\r\n\r\n",
    "trailer": HEAD + b"0\r\nX: a\r\n\r\n",
    "trailer with bare line feeds": HEAD + b"0\r\nX: a\n\n" + HIDDEN,
    "length as trailer": HEAD + b"1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n",
    "too many chunks": HEAD + b"1\r\na\r\n" * 21 + b"0\r\n\r\n",
}


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    found: list[bytes] = []
    for size in sizes:
        found.append(data[:size])
        data = data[size:]
    return [*found, data]


def read(parts: list[bytes]) -> tuple[bytes, bool]:
    """Return the body, and whether it ended."""
    messages, body, is_over = GuardedMessages(1024), bytearray(), False
    for part in parts:
        if part:
            messages.receive_data(part)
        while True:
            event = messages.next_event()
            if isinstance(event, h11.Data):
                body += event.data
            is_over = is_over or isinstance(event, h11.EndOfMessage)
            if event in (h11.NEED_DATA, h11.PAUSED):
                break
    return bytes(body), is_over


@given(st.lists(st.integers(0, 20), max_size=20))
def test_chunks_come_through_however_they_are_cut(sizes: list[int]) -> None:
    assert read(pieces(BODY, sizes)) == (b"abcd", True)
    assert read(pieces(BODY + HIDDEN, sizes)) == (b"abcd", True)
    assert read(pieces(BODY[:-1], sizes)) == (b"abcd", False)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_what_a_proxy_may_read_in_another_way_is_refused(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message, "MOST_CHUNKS", 20)
    data = REFUSED[name]
    with pytest.raises(h11.RemoteProtocolError):
        read([data[start : start + size] for start in range(0, len(data), size)])


def test_a_length_needs_no_end() -> None:
    head = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\n"
    assert read([head + b"ab\n" + HIDDEN]) == (b"ab\n", True)


def test_many_large_chunks_are_allowed() -> None:
    chunk = b"200\r\n" + b"a" * 512 + b"\r\n"
    body, is_over = read([HEAD, *[chunk * 64] * (MOST_CHUNKS // 64), b"0\r\n\r\n"])
    assert (len(body), is_over) == (MOST_CHUNKS * 512, True)
