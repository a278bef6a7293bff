from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from litebert.serve.engine.process import EngineSettings
from litebert.serve.metrics import Metrics
from litebert.serve.served import ServedModel


def test_a_change_that_is_being_read_is_not_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = tmp_path / "model.onnx"

    async def run() -> list[str]:
        model, done = ServedModel("m", EngineSettings(source=str(graph)), Metrics()), list[str]()

        async def reload() -> bool:
            done.append("reload")
            return True

        monkeypatch.setattr(model, "reload", reload)
        await model.reload_if_changed()  # there is nothing
        graph.write_bytes(b"graph")
        async with model._swap:
            await model.reload_if_changed()
        assert not done
        await model.reload_if_changed()
        return done

    assert asyncio.run(run()) == ["reload"]
