"""A headless Chromium that tests drive through a pair of pipes, by the DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sanitized import without_sanitizer

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser for as long as the context lasts; skip the test where there is none."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory(prefix="passlib-browser-") as folder:
        made = Browser(path, folder)
        try:
            made.start()
            yield made
        finally:
            made.close()


class Browser:
    """One page of a browser.

    Attributes
    ----------
    errors : list of str
        What the page threw, or wrote to the console as an error.
    requests : list of str
        Addresses that it asked for.
    """

    def __init__(self, path: str, folder: str) -> None:
        to_browser, own_write = os.pipe()
        own_read, from_browser = os.pipe()
        # The browser reads commands from descriptor 3 and writes to 4.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        options = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
            *("--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"),
            f"--user-data-dir={folder}",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "browser", path, *options],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=without_sanitizer(),  # it hangs
        )
        os.close(to_browser)
        os.close(from_browser)
        self._write, self._read = own_write, own_read
        self._left = b""
        self._count = 0
        self._session = ""
        self._loaded = False
        self.errors: list[str] = []
        self.requests: list[str] = []

    def start(self) -> None:
        """Wait for the browser, and open an empty page."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path, *, dark: bool = False, size: tuple[int, int] = (1400, 900)) -> None:
        """Open a file and wait until it has loaded."""
        self.errors, self.requests, self._loaded = [], [], False
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        wide, high = size
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=wide,
            height=high,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + 60
        while not self._loaded:
            assert time.monotonic() < deadline, "the page did not load in 60 s"
            self._receive(1)

    def run(self, expression: str) -> Any:
        """Evaluate an expression of JavaScript in the page."""
        found = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"]["exception"].get("description", found))
        return found["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 60) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(expression):
            assert time.monotonic() < deadline, f"not true in {seconds} s: {expression}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def type(self, text: str) -> None:
        """Write text where the cursor is."""
        self._call("Input.insertText", text=text)

    def click(self, x: float, y: float) -> None:
        """Click at a place of the page."""
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self) -> bytes:
        """Return a screenshot as PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def print(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"])

    @contextlib.contextmanager
    def printed(self) -> Iterator[None]:
        """Style the page as for print."""
        self._call("Emulation.setEmulatedMedia", media="print")
        yield
        self._call("Emulation.setEmulatedMedia", media="")

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(OSError, AssertionError):
            self._session = ""
            self._call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _call(self, method: str, **parameters: Any) -> Any:
        self._count += 1
        own = self._count
        message: dict[str, Any] = {"id": own, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline, f"no answer to {method} in 60 s"
            answer = self._receive(5)
            if answer is not None and answer.get("id") == own:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message, after noting what it tells of the page."""
        while b"\0" not in self._left:
            if not select.select([self._read], [], [], seconds)[0]:
                return None
            data = os.read(self._read, 1 << 20)
            assert data, "the browser ended"
            self._left += data
        text, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        facts = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown":
                self.errors.append(str(facts["exceptionDetails"]))
            case "Log.entryAdded" if facts["entry"]["level"] == "error":
                self.errors.append(str(facts["entry"]))
            case "Network.requestWillBeSent":
                self.requests.append(facts["request"]["url"])
        return message
