"""A real browser for tests of pages: headless Chromium, told what to do over a pipe.

The DevTools protocol without a library: JSON messages that end in a zero byte
(https://chromedevtools.github.io/devtools-protocol). What the page writes to its console, its errors and what it asks
for are kept.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def program() -> str | None:
    """Chromium's program; None where it is not installed."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """A page in a browser of its own, which ends with the context."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        """Addresses that the page asked for."""
        self.said: list[str] = []
        """What it wrote to the console, and its errors."""

    def __enter__(self) -> Browser:
        chromium = program()
        assert chromium is not None
        self._profile = tempfile.TemporaryDirectory(prefix="ccgym-browser-", ignore_cleanup_errors=True)
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        options = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
            f"--user-data-dir={self._profile.name}",
        ]
        # It reads from descriptor 3 and writes to 4.
        line = f'exec "$@" 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "browser", chromium, *options, "about:blank"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._rest, self._count, self._loaded, self._session = b"", 0, False, ""
        targets = self.tell("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.tell("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.tell(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def open(self, page: Path, width: int = 1280, height: int = 900, *, dark: bool = False, part: str = "") -> None:
        """Show a file on a screen of this size, and wait until it is loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.tell("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])
        for address in ("about:blank", page.as_uri() + part):  # else only the part may change, and nothing loads
            self._loaded = False
            self.tell("Page.navigate", url=address)
            while not self._loaded:
                self._next()
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")

    def run(self, expression: str) -> Any:
        """The value of an expression of the page, once it is there."""
        done = self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let the page draw."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.tell("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.tell("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")

    def picture(self, file: Path) -> None:
        """Write the whole page as PNG, for a person to look at."""
        size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.tell("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._read, 1 << 16)
            assert part, f"the browser ended with status {self._process.wait()}"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, found: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"].partition("#")[0])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(f"{found['type']}: {found['args']}")
        elif method == "Runtime.exceptionThrown":
            self.said.append(str(found["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(str(found["entry"]))
        elif method == "Page.loadEventFired":
            self._loaded = True
