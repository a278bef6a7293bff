from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from litebert.serve.engine.channel import FrameReader, pack

values = st.dictionaries(
    st.text(max_size=5), st.text(max_size=20) | st.integers() | st.none(), max_size=4
)


@given(st.lists(st.tuples(values, st.binary(max_size=50)), max_size=8), st.integers(1, 30))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(
    frames: list[tuple[dict[str, Any], bytes]], size: int
) -> None:
    stream = b"".join(pack(header, payload) for header, payload in frames)
    reader = FrameReader()
    found = [
        (frame.header, frame.payload)
        for start in range(0, len(stream), size)
        for frame in reader.feed(stream[start : start + size])
    ]
    assert found == frames


def test_text_that_utf8_cannot_hold_travels() -> None:
    (frame,) = FrameReader().feed(pack({"text": "a\ud800b\x00"}))
    assert frame.header == {"text": "a\ud800b\x00"}
