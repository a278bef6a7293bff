from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from litebert.train.stop import STOP_SIGNALS, StopRequest, stop_on_signals


def test_the_first_request_counts() -> None:
    stop = StopRequest()
    assert not stop.is_requested
    stop.request()
    stop.request(15)
    assert stop.is_requested and stop.signal == 0


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_becomes_a_request_and_the_handlers_come_back(number: int) -> None:
    before = [signal.getsignal(n) for n in STOP_SIGNALS]
    with stop_on_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.signal == number
    assert [signal.getsignal(n) for n in STOP_SIGNALS] == before


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_requested
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_nothing_is_caught() -> None:
    before = [signal.getsignal(n) for n in STOP_SIGNALS]
    seen: list[bool] = []

    def run() -> None:
        with stop_on_signals() as stop:
            seen.append([signal.getsignal(n) for n in STOP_SIGNALS] == before)
            stop.request()
            seen.append(stop.is_requested)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [True, True]


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_the_second_signal_ends_the_process_at_once(number: int) -> None:
    script = (
        "import time\nfrom litebert.train.stop import stop_on_signals\n"
        "with stop_on_signals() as stop:\n"
        "    print('ready', flush=True)\n"
        "    while not stop.is_requested: time.sleep(0.01)\n"
        "    print('asked', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for word in ("ready", "asked"):
        assert process.stdout.readline() == word + "\n"
        process.send_signal(number)
    start = time.monotonic()
    process.communicate(timeout=20)
    assert process.returncode == -number
    assert time.monotonic() - start < 10


def test_under_a_launcher_further_signals_change_nothing() -> None:
    """A scheduler and a launcher both pass the same signal on, while the state is being saved."""
    with stop_on_signals(has_launcher=True) as stop:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        assert stop.signal == signal.SIGTERM
