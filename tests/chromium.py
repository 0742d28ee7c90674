"""A headless Chromium, driven over a pipe (chrome --remote-debugging-pipe)."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OPTIONS = (
    "--headless",
    "--no-sandbox",  # it refuses to run as root with one
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)
_LOADED = "Page.loadEventFired"


class Browser:
    """One page of a browser.

    Attributes:
        problems: what the console printed as an error or warning, and uncaught exceptions.
        requests: addresses that the page asked for.
    """

    def __init__(self, commands: int, events: int) -> None:
        self._commands, self._events = commands, events
        self._number = 0
        self._session = ""
        self._buffer = b""
        self._seen: list[str] = []
        self.problems: list[str] = []
        self.requests: list[str] = []

    def attach(self) -> "Browser":
        """Open an empty page."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command; return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, page: Path, width: int = 1_200, height: int = 900) -> None:
        """Show a file, and wait until it is loaded and drawn."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self._seen.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while _LOADED not in self._seen:
            self._next()
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click the first element that a selector matches, near its upper edge."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.left + b.width / 2, b.top + Math.min(8, b.height / 2)]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key, named as in KeyboardEvent.key."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._events, 1 << 16)
            assert chunk, "Chromium has ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning"):
                self.problems.append(str(parameters["args"]))
            case "Runtime.exceptionThrown":
                self.problems.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.problems.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case str(method):
                self._seen.append(method)
        return message


@contextmanager
def running_browser(profile: Path) -> Iterator[Browser]:
    """Run Chromium with an empty profile; yield its only page."""
    commands_read, commands = os.pipe()
    events, events_write = os.pipe()
    program = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    # The numbers of both pipes are fixed: 3 and 4. Each descriptor first gets a number above those.
    script = f'exec 8<&{commands_read} 9>&{events_write}; exec 3<&8 4>&9 8<&- 9>&-; exec "$0" "$@"'
    process = subprocess.Popen(
        ["bash", "-c", script, program, *_OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(commands_read, events_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands_read)
    os.close(events_write)
    browser = Browser(commands, events)
    try:
        yield browser.attach()
        browser._session = ""
        browser.ask("Browser.close")
    finally:
        os.close(commands)
        os.close(events)
        process.kill()
        process.wait()
