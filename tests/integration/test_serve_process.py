"""Servers whose engine dies, whose model changes, and which are told to end, with clients all the while."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve_process import ServeProcess
from tests.serve_folders import make_folder

from litebert.runtime import Session

pytest.importorskip("fastapi")
pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

SAME = 1e-5
"""Float32 sums in another order."""
TEXTS = ["", "lamp", "the lamp is fine", "a chair near anna", "book " * 9, "radio " * 70]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two models of different weights."""
    root = tmp_path_factory.mktemp("serve")
    return [make_folder("embed", root / f"models-{seed}", seed=seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def folder(versions: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is served; its content may be exchanged."""
    path = tmp_path_factory.mktemp("served") / "model"
    shutil.copytree(versions[0], path)
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Generator[ServeProcess]:
    process = ServeProcess(folder, "--set", "max_concurrent_requests=40").wait_until_serving()
    yield process
    process.kill()


def exchange(folder: Path, other: Path) -> None:
    """Put another export in place of the one that is there, as `export --overwrite` does."""
    fresh = folder.parent / "fresh"
    shutil.copytree(other, fresh)
    old = folder.parent / "old"
    folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old)


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class Callers:
    """Threads that ask without a pause, and count what they get."""

    def __init__(self, server: ServeProcess, count: int, **options: Any) -> None:
        self._server, self._options = server, options
        self._is_over = threading.Event()
        self.statuses: list[int] = []
        self.lost: list[str] = []
        self.vectors: list[Any] = []
        self._threads = [threading.Thread(target=self._call) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _call(self) -> None:
        while not self._is_over.is_set():
            try:
                status, answer, _ = self._server.ask(
                    "/embed", {"inputs": "the lamp"}, **self._options
                )
            except ConnectionRefusedError:
                return  # the door is closed: nothing was taken
            except Exception as error:  # whatever it is, a request was lost
                self.lost.append(repr(error))
                return
            self.statuses.append(status)
            if status == 200:
                self.vectors.append(answer[0])

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()


def test_many_clients_at_once_get_what_each_would_get_alone(
    server: ServeProcess, versions: list[Path]
) -> None:
    expected = Session(versions[0], threads=1).embed(TEXTS)

    def ask(number: int) -> None:
        places = [number % len(TEXTS), (3 * number + 1) % len(TEXTS)]
        status, answer, _ = server.ask("/embed", {"inputs": [TEXTS[place] for place in places]})
        assert status == 200
        np.testing.assert_allclose(answer, expected[places], atol=SAME, rtol=0)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(96)))
    steps = server.metric("litebert_step_tokens_count")
    assert server.metric("litebert_step_sequences_sum") > steps  # some shared a step


def test_an_engine_that_stands_still_and_dies(server: ServeProcess, versions: list[Path]) -> None:
    (engine,) = server.engines()
    os.kill(engine, signal.SIGSTOP)
    with ThreadPoolExecutor(40) as pool:
        flood: list[Future[Any]] = [
            pool.submit(server.ask, "/embed", {"inputs": "the lamp"}) for _ in range(30)
        ]
        until(lambda: server.metric("litebert_requests_in_flight") == 30)
        # Full for this client, at once; another one still finds a place; and the server lives.
        start = time.monotonic()
        status, answer, headers = server.ask("/embed", {"inputs": "the lamp"})
        seconds = time.monotonic() - start
        assert (status, answer["error_type"]) == (429, "Overloaded")
        assert 1 <= int(headers["retry-after"]) <= 60
        assert seconds < 2.0  # 50 ms on a machine that does nothing else
        other = pool.submit(server.ask, "/embed", {"inputs": "the lamp"}, source="127.0.0.2")
        until(lambda: server.metric("litebert_requests_in_flight") == 31)
        start = time.monotonic()
        late = server.ask(
            "/embed", {"inputs": "a"}, headers={"x-request-timeout": "0.2"}, source="127.0.0.3"
        )
        assert late[0] == 504
        assert time.monotonic() - start < 5
        assert server.ask("/health")[0] == 200
        os.kill(engine, signal.SIGKILL)
        answers = [item.result() for item in (*flood, other)]
    assert {status for status, _, _ in answers} == {503}
    assert all(headers["retry-after"] == "1" for _, _, headers in answers)
    server.wait_until_ready()
    assert server.engines() != [engine]
    assert server.metric("litebert_engine_restarts_total") == 1
    status, answer, _ = server.ask("/embed", {"inputs": TEXTS})
    assert status == 200
    np.testing.assert_allclose(answer, Session(versions[0], threads=1).embed(TEXTS), atol=SAME)


def test_a_client_with_little_does_not_wait_for_one_with_much(server: ServeProcess) -> None:
    (engine,) = server.engines()
    os.kill(engine, signal.SIGSTOP)
    order: list[str] = []
    much = {"inputs": ["radio " * 70] * 32}

    def ask(source: str, body: Any) -> None:
        status, _, _ = server.ask("/embed", body, source=source)
        order.append(source)
        assert status == 200

    with ThreadPoolExecutor(32) as pool:
        asked = [pool.submit(ask, "127.0.0.1", much) for _ in range(20)]
        until(lambda: server.metric("litebert_requests_in_flight") == 20)
        asked.append(pool.submit(ask, "127.0.0.2", {"inputs": "lamp"}))
        until(lambda: server.metric("litebert_requests_in_flight") == 21)
        os.kill(engine, signal.SIGCONT)
        for item in asked:
            item.result()
    assert order.index("127.0.0.2") < 10


def test_a_model_is_exchanged_without_a_gap_and_a_broken_one_is_not(
    server: ServeProcess, folder: Path, versions: list[Path]
) -> None:
    old, new = (Session(path, threads=1).embed("the lamp")[0] for path in versions)
    callers = Callers(server, 3)
    exchange(folder, versions[1])  # seen by itself
    until(lambda: server.metric("litebert_reloads_total") == 1)
    until(lambda: np.allclose(server.ask("/embed", {"inputs": "the lamp"})[1], new, atol=SAME))
    graph = folder / "onnx" / "litebert.onnx"
    graph.write_bytes(graph.read_bytes()[:-9])
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("not reloaded, the old one serves on")
    callers.end()
    assert set(callers.statuses) == {200}
    assert not callers.lost
    for vector in callers.vectors:
        assert np.allclose(vector, old, atol=SAME) or np.allclose(vector, new, atol=SAME)
    assert server.ask("/ready")[0] == 200
    until(lambda: len(server.engines()) == 1)


def test_keys_probes_and_an_end_that_loses_nothing(versions: list[Path], tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("first-secret\n")
    server = ServeProcess(
        versions[0], "--api-key-file", keys, "--host", "0.0.0.0", "--json-logs", "--set", "watch=false"  # noqa: S104
    ).wait_until_serving()  # fmt: skip
    try:
        known = {"authorization": "Bearer first-secret"}
        assert server.ask("/embed", {"inputs": "a"})[0] == 401
        assert server.ask("/metrics")[0] == 401
        assert server.ask("/info", headers={"authorization": "Bearer wrong-secret"})[0] == 401
        for path in ("/health", "/ping", "/ready"):
            assert server.ask(path)[0] == 200
        assert server.ask("/embed", {"inputs": "a"}, headers=known)[0] == 200
        keys.write_text("other-secret\n")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: server.ask("/info", headers=known)[0] == 401)
        known = {"authorization": "Bearer other-secret"}
        callers = Callers(server, 6, headers=known)
        until(lambda: len(callers.statuses) > 20)
        code = server.end()
        callers.end()
    finally:
        server.kill()
    assert code == 0
    assert not callers.lost
    assert set(callers.statuses) == {200}
    assert "secret" not in server.log


def test_a_request_that_runs_is_answered_after_the_server_was_told_to_end(
    versions: list[Path],
) -> None:
    server = ServeProcess(versions[0], "--set", "watch=false").wait_until_serving()
    try:
        (engine,) = server.engines()
        os.kill(engine, signal.SIGSTOP)
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(server.ask, "/embed", {"inputs": "the lamp"}) for _ in range(4)]
            until(lambda: server.metric("litebert_requests_in_flight") == 4)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for("ending: 4 requests")
            assert server.ask("/ready")[1]["status"] == "draining"
            time.sleep(1.0)  # the door is closed by now
            with pytest.raises(ConnectionRefusedError):
                server.ask("/health")
            os.kill(engine, signal.SIGCONT)
            assert [item.result()[0] for item in asked] == [200] * 4
        assert server.process.wait(60) == 0
    finally:
        server.kill()


def test_what_cannot_be_served_ends_with_its_code(versions: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(versions[0], broken)
    graph = broken / "onnx" / "litebert.onnx"
    graph.write_bytes(graph.read_bytes()[:-9])
    server = ServeProcess(broken)
    assert server.process.wait(120) == 65
    server.kill()
    assert "error: " in server.log
    assert "Traceback" not in server.log
