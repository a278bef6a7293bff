"""A real headless Chromium, driven over a pipe with the DevTools protocol: no driver, no package.

Messages are JSON with a NUL behind each, on file descriptors 3 (to the browser) and 4 (from it).
"""

from __future__ import annotations

import base64
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0
"""For a machine that does other things as well."""
MISSING = "no Chromium: install the Debian package chromium (apt-get install chromium)"
_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-default-apps", "--disable-dev-shm-usage", "--mute-audio",
    "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe", "--disable-features=Translate",
)  # fmt: skip
_LAUNCH = """
import fcntl, os, sys
here, there = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(here, 3), os.dup2(there, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the ends of two pipes where the browser looks for them."""


def find_chromium() -> str | None:
    """Return the program; None where there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class BrowserError(AssertionError):
    """The browser refused a command, or a script of the page failed."""


class Browser:
    """One process; every page has a context of its own, without cookies or cache of the others."""

    def __init__(self, profile: Path) -> None:
        program = find_chromium()
        assert program is not None
        down_read, self._write = os.pipe()
        self._read, up_write = os.pipe()
        for number in (down_read, up_write):
            os.set_inheritable(number, True)
        self._log = (profile.parent / "chromium.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(down_read), str(up_write), program, *_FLAGS,
             f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, pass_fds=(down_read, up_write),
        )  # fmt: skip
        os.close(down_read)
        os.close(up_write)
        self._number = 0
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number, answer = self.send(method, session, **parameters)
        try:
            found = answer.get(timeout=PATIENCE_SECONDS)
        except queue.Empty as error:
            raise BrowserError(f"{method}: no answer") from error
        finally:
            self._answers.pop(number, None)
        if "error" in found:
            raise BrowserError(f"{method}: {found['error'].get('message')}")
        return found.get("result", {})

    def send(
        self, method: str, session: str | None = None, **parameters: Any
    ) -> tuple[int, queue.SimpleQueue[dict[str, Any]]]:
        """Send a command; its result comes later."""
        self._number += 1
        message: dict[str, Any] = {
            "id": self._number,
            "method": method,
            "params": parameters,
        }
        if session is not None:
            message["sessionId"] = session
        answer = self._answers[self._number] = queue.SimpleQueue()
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._number, answer

    def open(self, url: str = "about:blank", *, downloads: Path | None = None) -> Page:
        """Open a page in a context of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        if downloads is not None:
            self.call(
                "Browser.setDownloadBehavior",
                behavior="allow",
                browserContextId=context,
                downloadPath=str(downloads),
                eventsEnabled=True,
            )
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, session["sessionId"])
        self._pages[page.session] = page
        page.watch(page.session)
        page.call("Page.enable")
        if url != "about:blank":
            page.goto(url)
        return page

    def close(self) -> None:
        """End the browser."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._write)
        self._reader.join(10)
        os.close(self._read)
        self._log.close()

    def _listen(self) -> None:
        rest = b""
        while data := os.read(self._read, 1 << 16):
            *messages, rest = (rest + data).split(b"\0")
            for raw in messages:
                message = json.loads(raw)
                if "id" in message:
                    answer = self._answers.get(message["id"])
                    if answer is not None:
                        answer.put(message)
                elif (page := self._pages.get(message.get("sessionId", ""))) is not None:
                    page.on_event(message["method"], message["params"])

    def adopt(self, session: str, page: Page) -> None:
        """Have the events of a worker go to its page."""
        self._pages[session] = page


class Page:
    """A tab, and what it asked for and complained about.

    Attributes:
        requests: addresses of all requests, those of workers too.
        complaints: errors of the console, of the network and of scripts.
        posted: bodies that were sent, as `(path, value)`.
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self.session = browser, session
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.posted: list[tuple[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to the tab."""
        return self._browser.call(method, self.session, **parameters)

    def watch(self, session: str) -> None:
        """Listen to the console and the network of a tab or worker."""
        for domain in ("Runtime", "Log", "Network"):
            self._browser.send(f"{domain}.enable", session)
        self._browser.send(
            "Target.setAutoAttach",
            session,
            autoAttach=True,
            waitForDebuggerOnStart=False,
            flatten=True,
        )

    def on_event(self, method: str, values: dict[str, Any]) -> None:
        """Take one event; runs in the reader's thread, so it must not wait for answers."""
        if method == "Network.requestWillBeSent":
            request = values["request"]
            self.requests.append(request["url"])
            if request["method"] == "POST" and "postData" in request:
                path = "/" + request["url"].split("/", 3)[3]
                self.posted.append((path, json.loads(request["postData"])))
        elif method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.complaints.append(
                str(details.get("exception", {}).get("description", details["text"]))
            )
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "assert"):
            self.complaints.append(str([item.get("value") for item in values["args"]]))
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            entry = values["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
        elif method == "Target.attachedToTarget":
            self._browser.adopt(values["sessionId"], self)
            self.watch(values["sessionId"])

    def goto(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        self.call("Page.navigate", url=url)
        self.wait(
            f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'"
        )

    def js(self, script: str) -> Any:
        """Return the value of an expression, of a promise what it becomes."""
        found = self.call(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise BrowserError(str(details.get("exception", {}).get("description", details)))
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = PATIENCE_SECONDS) -> Any:
        """Return the first value of an expression that is true."""
        end = time.monotonic() + seconds
        while True:
            try:
                if value := self.js(f"((value) => value instanceof Node || value)({condition})"):
                    return value
            except BrowserError:  # the page is being exchanged
                if time.monotonic() > end:
                    raise
            if time.monotonic() > end:
                shown = self.js("document.body.innerText")
                raise BrowserError(
                    f"never true: {condition}\n{self.complaints}\n{str(shown)[:2000]}"
                )
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click the middle of an element, as a person does."""
        box = self.js(
            f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
            node.scrollIntoView({{block: "center"}});
            const box = node.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def type(self, selector: str, text: str) -> None:
        """Put text in place of what is in a field, as if pasted."""
        self.js(
            f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
            node.focus();
            node.select?.(); }})()"""
        )
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int = 0, modifiers: int = 0) -> None:
        """Press a key: `ArrowRight` (39), `Tab` (9), `Enter` (13); 2 as modifier is Ctrl, 8 Shift."""
        extra = {"text": "\r"} if key == "Enter" and not modifiers else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=modifiers,
                windowsVirtualKeyCode=code, **(extra if kind == "keyDown" else {}),
            )  # fmt: skip

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a select."""
        self.js(
            f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
            node.value = {json.dumps(value)};
            node.dispatchEvent(new Event("input", {{bubbles: true}}));
            node.dispatchEvent(new Event("change", {{bubbles: true}})); }})()"""
        )

    def drop(self, selector: str, path: Path) -> None:
        """Drop a file on an element."""
        x, y = self.js(
            f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
            node.scrollIntoView({{block: "center"}});
            const box = node.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + 8]; }})()"""
        )
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def show(self, width: int, height: int, *, dark: bool = False, reduced: bool = False) -> None:
        """Set the size and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(data["data"]))

    def close(self) -> None:
        """Close the tab."""
        self.call("Page.close")
