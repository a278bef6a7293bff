"""The process of an engine, and what it proves before it may serve."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve_folders import make_folder
from typer.testing import CliRunner

from litebert.cli import app
from litebert.errors import CheckpointError
from litebert.runtime import Session
from litebert.serve.engine.describe import describe, self_test
from litebert.serve.engine.operations.inputs import encode
from litebert.serve.engine.process import EngineLostError, EngineProcess, EngineSettings
from litebert.serve.metrics import Metrics
from litebert.serve.served import ServedModel

from .conftest import Folder, Open

INT8_COSINE = 0.9995
"""Of a vector alone and in company, in int8; albert-base with random weights has 0.99998."""


def test_an_engine_that_takes_too_long_is_given_up(folder_of: Folder) -> None:
    async def start() -> None:
        settings = EngineSettings(str(folder_of("embed")), start_seconds=0.01)
        await EngineProcess.start(settings, lambda _: None)

    with pytest.raises(EngineLostError, match=r"was not ready after 0\.01 s"):
        asyncio.run(start())


def test_an_engine_that_says_nothing_is_replaced_and_a_given_up_request_is_forgotten(
    folder_of: Folder,
) -> None:
    args = {"inputs": "lamp", "add_special_tokens": True}

    async def ask() -> None:
        settings = EngineSettings(str(folder_of("embed")), threads=1, stall_seconds=0.4)
        engine = await EngineProcess.start(settings, lambda _: None)
        assert (await engine.ask("tokenize", args, client="a")).tokens == 0
        os.kill(engine.pid, signal.SIGSTOP)
        waiting = asyncio.create_task(engine.ask("tokenize", args, client="a"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert engine.pending == 0
        with pytest.raises(EngineLostError, match=r"said nothing for 0\.4 s"):
            await engine.ask("tokenize", args, client="a")
        with pytest.raises(EngineLostError, match="starting again"):
            await engine.ask("tokenize", args, client="a")
        await engine.kill()

    asyncio.run(ask())


async def started_with_spare(folder: Path) -> tuple[ServedModel, int, Any]:
    """A model that serves, the number of its process, and the engine that waits."""
    model = ServedModel("m", EngineSettings(str(folder), threads=1), Metrics(), has_spare=True)
    await model.start()
    assert model._spare is not None and model.pid is not None
    return model, model.pid, await model._spare


def test_a_spare_engine_takes_over_at_once(folder_of: Folder) -> None:
    args = {"inputs": "lamp", "add_special_tokens": True}

    async def serve() -> float:
        model, first, spare = await started_with_spare(folder_of("embed"))
        os.kill(first, signal.SIGKILL)
        start = time.monotonic()
        while model.pid == first:
            await asyncio.sleep(0.005)
        seconds = time.monotonic() - start
        assert model.pid == spare.pid
        assert (await model.ask("tokenize", args, client="a")).body
        await model.stop(1.0)
        return seconds

    assert asyncio.run(serve()) < 2.0


def test_a_spare_engine_that_died_unused_is_replaced(folder_of: Folder) -> None:
    async def serve() -> None:
        model, first, spare = await started_with_spare(folder_of("embed"))
        await spare.kill()
        os.kill(first, signal.SIGKILL)
        while model.pid == first or not model.is_ready:
            await asyncio.sleep(0.01)
        assert model.pid != spare.pid
        fresh = await model._spare
        assert fresh.pid not in (first, spare.pid) and not fresh.lost.is_set()
        await model.stop(1.0)

    asyncio.run(asyncio.wait_for(serve(), 60))


def test_a_model_has_to_answer_before_it_serves(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session("embed")
    self_test(session)
    whole = type(session).pooled
    monkeypatch.setattr(Session, "pooled", lambda *a, **k: whole(*a, **k) * np.nan)
    with pytest.raises(CheckpointError, match="NaN or infinity for plain texts"):
        self_test(session)
    monkeypatch.setattr(Session, "pooled", lambda *a, **k: whole(*a, **k) + len(a[1]))
    with pytest.raises(CheckpointError, match="alone and in company differs"):
        self_test(session)


def test_every_kind_names_its_routes(open_session: Open) -> None:
    expected = {
        "classify": "/predict", "pair": "/rerank", "embed": "/rerank", "ner": "/v1/ner", "qa": "/v1/qa",
        "choice": "/v1/choice", "words": "/v1/fill-mask",
    }  # fmt: skip
    for kind, route in expected.items():
        facts = describe(open_session(kind))
        assert route in facts["routes"]
        assert "/embed" in facts["routes"]
        others = set(expected.values()) - {route, "/predict", "/rerank"}
        assert not others & set(facts["routes"])


def test_in_int8_company_moves_an_answer_little(tmp_path: Path) -> None:
    session = Session(make_folder("embed", tmp_path / "models", precision="int8"), threads=1)
    texts: list[Any] = ["the lamp", "a", "chair near anna " * 9, "book", "radio is fine, she said"]
    examples = encode(session, texts, truncate=True)
    together = session.pooled(examples, "mean", batch_tokens=4096)
    for example, row in zip(examples, together, strict=True):
        (alone,) = session.pooled([example], "mean", batch_tokens=4096)
        cosine = alone @ row / np.linalg.norm(alone) / np.linalg.norm(row)
        assert cosine > INT8_COSINE


def test_a_port_that_is_taken(folder_of: Folder) -> None:
    pytest.importorskip("fastapi")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        words = ["serve", str(folder_of("embed")), "--port", str(sock.getsockname()[1])]
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 69
    assert "cannot listen on 127.0.0.1" in done.output
