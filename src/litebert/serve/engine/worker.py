"""The process of an engine: `python -m litebert.serve.engine.worker`, frames on stdin and stdout.

Signals are the server's business: a terminal or a service manager sends them to the whole group, and
requests that run must end. When the server is gone, reading ends and so does this process.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any, Final

from litebert.errors import LitebertError
from litebert.serve.engine.channel import Frame, FrameReader, pack

__all__ = ["main"]

_CHUNK: Final = 1 << 18
_IGNORED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def main(arguments: str) -> int:
    """Load a model, prove that it works, and answer until told to stop.

    Args:
        arguments: JSON object with source, precision, threads, batch_tokens, max_wait and
            max_request_tokens.

    Returns:
        Exit code: 0, or that of the error for which the model cannot be served.
    """
    for name in _IGNORED:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    # Whatever a library prints must not come between the frames.
    out = os.dup(1)
    os.dup2(2, 1)
    frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(frames,), daemon=True).start()

    def send(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(out, view) :]

    try:
        return _serve(json.loads(arguments), frames, send)
    except BrokenPipeError:  # the server is gone
        return 0


def _serve(values: dict[str, Any], frames: queue.SimpleQueue[Frame | None], send: Any) -> int:
    try:
        from litebert.runtime.session import Session
        from litebert.serve.engine.describe import describe, self_test
        from litebert.serve.engine.loop import EngineLoop

        session = Session(
            values["source"], precision=values["precision"], threads=values["threads"]
        )
        self_test(session)
        loop = EngineLoop(
            session,
            frames,
            send,
            batch_tokens=values["batch_tokens"],
            max_wait=values["max_wait"],
            max_request_tokens=values["max_request_tokens"],
        )
    except (LitebertError, OSError) as error:
        code = error.exit_code if isinstance(error, LitebertError) else 74
        send(pack({"failed": str(error), "exit_code": code}))
        return code
    send(pack({"ready": describe(session)}))
    loop.run()
    return 0


def _read(frames: queue.SimpleQueue[Frame | None]) -> None:
    reader = FrameReader()
    while data := os.read(0, _CHUNK):
        for frame in reader.feed(data):
            frames.put(frame)
    frames.put(None)


if __name__ == "__main__":
    code = main(sys.argv[1])
    # Straight out: threads of the runtime must not keep a process alive that nobody talks to.
    os._exit(code)
