"""The engine without its process: frames in, frames out."""

from __future__ import annotations

import json
import queue
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.runtime import Session
from litebert.serve.engine.channel import Frame, FrameReader
from litebert.serve.engine.loop import EngineLoop

from .conftest import Open

SAME = 1e-5
"""Float32 sums in another order."""
EMBED = {"normalize": True, "dimensions": None, "pooling": "mean", "form": "rows", "truncate": True,
         "keep": "head"}  # fmt: skip
PREDICT = {"raw_scores": False, "top_k": None, "nested": False, "truncate": True}

Asked = tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], dict[str, Any]]


def ask(
    session: Session, asked: Sequence[Asked], *extra: Frame, **options: Any
) -> dict[int, Frame]:
    """Give all requests to a loop, let it end, and return the answers by number."""
    frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
    for number, (operation, args, *rest) in enumerate(asked):
        header = {"id": number, "op": operation, "args": args, "client": f"c{number % 3}"}
        frames.put(Frame(header | (rest[0] if rest else {})))
    for frame in (*extra, Frame({"stop": True})):
        frames.put(frame)
    reader, found = FrameReader(), {}
    limits = {"batch_tokens": 64, "max_wait": 0.0, "max_request_tokens": 1000} | options

    def send(data: bytes) -> None:
        for frame in reader.feed(data):
            if "id" in frame.header:
                assert frame.header["id"] not in found
                found[frame.header["id"]] = frame

    EngineLoop(session, frames, send, **limits).run()
    return found


def body(frame: Frame) -> Any:
    assert "error" not in frame.header, frame.header
    return json.loads(frame.payload)


texts = st.lists(st.text("the lampfine chair 日é", max_size=60), min_size=1, max_size=5)


@settings(max_examples=25)
@given(st.lists(texts, min_size=1, max_size=6), st.integers(1, 200))
def test_an_answer_does_not_depend_on_its_company(
    open_session: Open, inputs: list[list[str]], budget: int
) -> None:
    session = open_session("classify")
    asked: list[Asked] = []
    for part in inputs:
        asked.append(("embed", EMBED | {"inputs": part}))
        asked.append(("predict", PREDICT | {"inputs": part}, {"depth": 1}))
        asked.append(("predict", PREDICT | {"inputs": part}))
    together = ask(session, asked, batch_tokens=budget)
    assert len(together) == len(asked)
    for number, request in enumerate(asked):
        (alone,) = ask(session, [request]).values()
        np.testing.assert_allclose(
            numbers(body(together[number])), numbers(body(alone)), atol=SAME, rtol=0
        )


def numbers(value: Any) -> Any:
    """Vectors as they are, labels by name."""
    if isinstance(value[0][0], dict):
        return [
            [item["score"] for item in sorted(row, key=lambda item: item["label"])] for row in value
        ]
    return value


def test_vectors_are_those_of_the_session(open_session: Open) -> None:
    session, inputs = open_session("embed"), ["the lamp", "", "a chair " * 40]
    (frame,) = ask(session, [("embed", EMBED | {"inputs": inputs})]).values()
    expected = session.embed(inputs)
    np.testing.assert_allclose(body(frame), expected, atol=SAME, rtol=0)
    (frame,) = ask(session, [("embed", EMBED | {"inputs": inputs, "dimensions": 8})]).values()
    short = expected[:, :8] / np.linalg.norm(expected[:, :8], axis=1, keepdims=True)
    np.testing.assert_allclose(body(frame), short, atol=SAME, rtol=0)
    assert frame.header["tokens"] == sum(
        min(64, len(session.tokenizer.encode(text).ids)) for text in inputs
    )


def test_predictions_are_those_of_the_session(open_session: Open) -> None:
    for kind in ("classify", "many", "score", "pair"):
        session = open_session(kind)
        inputs = (
            ["the lamp", "chair is fine"] if kind != "pair" else [["the lamp", "fine"], ["a", "b"]]
        )
        asked = [("predict", PREDICT | {"inputs": inputs})]
        (frame,) = ask(session, asked).values()
        pairs = [tuple(item) if isinstance(item, list) else item for item in inputs]
        for row, prediction in zip(body(frame), session.predict(pairs), strict=True):
            if kind == "score":
                assert row == [
                    {"label": "label", "score": pytest.approx(prediction.score, abs=1e-4)}
                ]
            else:
                assert {item["label"]: item["score"] for item in row} == pytest.approx(
                    prediction.scores, abs=SAME
                )
                assert [item["score"] for item in row] == sorted(
                    (item["score"] for item in row), reverse=True
                )


def test_a_request_that_fails_fails_alone(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session("classify")
    poison = session.tokenizer.encode("ladder").ids
    whole = type(session).pooled

    def fragile(self: Session, examples: Any, *args: Any, **kwargs: Any) -> Any:
        if any(example.ids.tolist() == poison for example in examples):
            raise RuntimeError("the ladder breaks")
        return whole(self, examples, *args, **kwargs)

    monkeypatch.setattr(Session, "pooled", fragile)
    inputs = ["the lamp", "a chair", "ladder", "radio", "book"]
    found = ask(
        session, [("embed", EMBED | {"inputs": [text]}) for text in inputs], batch_tokens=500
    )
    assert [number for number, frame in sorted(found.items()) if "error" in frame.header] == [2]
    assert found[2].header["error"] == "the engine failed (RuntimeError)"
    assert found[2].header["kind"] == "backend"
    np.testing.assert_allclose(body(found[4])[0], session.embed("book")[0], atol=SAME)


def test_numbers_that_are_none_are_told_and_never_sent(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session("classify")
    whole = type(session).outputs

    def spoiled(self: Session, examples: Any, **kwargs: Any) -> Any:
        found = whole(self, examples, **kwargs)
        return [found[0] * np.nan, *found[1:]]

    monkeypatch.setattr(Session, "outputs", spoiled)
    asked = [("predict", PREDICT | {"inputs": text}) for text in ("the lamp", "a chair")]
    found = ask(session, asked, batch_tokens=500)
    assert found[0].header["kind"] == "backend"
    assert "NaN" in found[0].header["error"]
    assert "error" not in found[1].header


@pytest.mark.parametrize(
    ("kind", "asked", "message"),
    [
        ("embed", ("predict", PREDICT | {"inputs": "a"}), "has no labels for texts"),
        ("embed", ("ner", {"texts": ["a"], "single": True}), "needs a model that tags words"),
        ("embed", ("fill_mask", {"text": "[MASK]", "top_k": 1}), "needs a model that predicts words"),
        ("words", ("fill_mask", {"text": "lamp", "top_k": 1}), r"no \[MASK\] in the text"),
        ("words", ("fill_mask", {"text": "the " * 99 + "[MASK]", "top_k": 1}), "too far behind"),
        ("embed", ("embed", EMBED | {"inputs": "a", "dimensions": 99}), "vectors have 32 numbers"),
        ("embed", ("embed", EMBED | {"inputs": ["a", "lamp " * 99], "truncate": False}), "input 1 has"),
        ("classify", ("predict", PREDICT | {"inputs": "lamp " * 99, "truncate": False}), "input 0 has"),
        ("classify", ("predict", PREDICT | {"inputs": [["a", "b"]]}), "leave the second text out"),
        ("classify", ("predict", PREDICT | {"inputs": "a"}, {"depth": 9}), "depth is 9"),
        ("classify", ("predict", PREDICT | {"inputs": "a"}, {"exit": "soon"}), "exit"),
        ("classify", ("decode", {"ids": [[9999]], "skip_special_tokens": True}), "outside the vocabulary"),
        ("classify", ("embed", EMBED | {"inputs": ["lamp " * 99] * 20}), "1280 tokens; allowed: 1000"),
        ("classify", ("rerank", EMBED | {"query": "a", "texts": ["b"]}), "puts no texts in order"),
        ("ner", ("ner", {"texts": [" "], "single": True}), "the text is empty"),
        ("choice", ("choice", {"items": [{"question": "q", "context": "", "choices": ["a", " "]}],
                               "single": True}), "choice B: is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(
    open_session: Open, kind: str, asked: Asked, message: str
) -> None:
    import re

    (frame,) = ask(open_session(kind), [asked]).values()
    assert frame.header["kind"] == "validation"
    assert re.search(message, frame.header["error"])


def test_every_other_operation_answers(open_session: Open) -> None:
    session = open_session("ner")
    (frame,) = ask(session, [("ner", {"texts": ["anna near berlin"], "single": False})]).values()
    for entity in body(frame)[0]:
        assert "anna near berlin"[entity["start"] : entity["end"]] == entity["word"]
    item = {"question": "who", "context": "anna near berlin"}
    asked: list[Asked] = [
        ("qa", {"items": [item], "single": True, "top_k": top}) for top in (None, 2)
    ]
    found = ask(open_session("qa"), asked)
    first = body(found[0])
    assert item["context"][first["start"] : first["end"]] == first["answer"]
    assert body(found[1])[0] == first
    item = {"question": "the lamp is _", "context": "", "choices": ["fine", "a chair"]}
    (frame,) = ask(open_session("choice"), [("choice", {"items": [item], "single": True})]).values()
    assert body(frame)["choice"] in item["choices"]
    words = open_session("words")
    asked = [
        ("fill_mask", {"text": text, "top_k": 2}) for text in ("a [MASK]", "[MASK] [MASK] lamp")
    ]
    found = ask(words, asked)
    assert [round(w["score"], 5) for w in body(found[0])] == [
        round(w.probability, 5) for w in words.fill_mask("a [MASK]", top=2)[0]
    ]
    assert [len(row) for row in body(found[1])] == [2, 2]
    assert body(found[1])[1][0]["sequence"].startswith("[MASK] ")
    pair = open_session("pair")
    args = EMBED | {
        "query": "lamp",
        "texts": ["chair", "lamp"],
        "return_text": True,
        "raw_scores": False,
    }
    (frame,) = ask(pair, [("rerank", args)]).values()
    by_index = {row["index"]: row["score"] for row in body(frame)}
    expected = [p.scores["yes"] for p in pair.predict([("lamp", "chair"), ("lamp", "lamp")])]
    assert [by_index[0], by_index[1]] == pytest.approx(expected, abs=SAME)
    embed = open_session("embed")
    (frame,) = ask(embed, [("rerank", args)]).values()
    assert body(frame)[0] == {"index": 1, "score": pytest.approx(1, abs=SAME), "text": "lamp"}
    args = EMBED | {"source": "lamp", "sentences": ["chair", "lamp"]}
    (frame,) = ask(embed, [("similarity", args)]).values()
    vectors = embed.embed(["lamp", "chair", "lamp"])
    assert body(frame) == pytest.approx((vectors[1:] @ vectors[0]).tolist(), abs=SAME)


def test_pieces_and_their_text(open_session: Open) -> None:
    text = "the lamp"
    asked: list[Asked] = [
        ("tokenize", {"inputs": [text], "add_special_tokens": whole}) for whole in (True, False)
    ]
    found = ask(open_session("embed"), asked)
    (whole,), (bare,) = body(found[0]), body(found[1])
    assert whole[1:-1] == bare
    assert [piece["special"] for piece in whole] == [True, *[False] * len(bare), True]
    assert "".join(text[piece["start"] : piece["stop"]] for piece in bare) == text.replace(" ", "")
    ids = [piece["id"] for piece in whole]
    asked = [("decode", {"ids": [ids], "skip_special_tokens": skip}) for skip in (True, False)]
    found = ask(open_session("embed"), asked)
    assert body(found[0]) == [text]
    assert body(found[1])[0].startswith("[CLS]")


def test_a_request_that_was_given_up_is_not_answered(open_session: Open) -> None:
    session = open_session("embed")
    asked = [("embed", EMBED | {"inputs": [f"lamp {n}" for n in range(20)]}) for _ in range(3)]
    found = ask(session, asked, Frame({"cancel": 1}), Frame({"cancel": 77}), batch_tokens=1)
    assert sorted(found) == [0, 2]


def test_the_loop_ends_when_the_server_is_gone(open_session: Open) -> None:
    frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
    frames.put(None)
    sent: list[bytes] = []
    EngineLoop(
        open_session("embed"), frames, sent.append, batch_tokens=9, max_wait=1, max_request_tokens=9
    ).run()
    assert not sent
