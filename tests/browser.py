"""A browser without a window, driven through chromedriver's plain HTTP, and a server for a folder of static files."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
INSTALL = "apt-get install chromium chromium-driver"
MISSING = None if CHROMIUM and DRIVER else f"there is no Chromium with its driver: {INSTALL}"
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Hands out files, and says nothing of it."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is handed out."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Browser:
    """A session of the browser."""

    def __init__(self, address: str, session: str) -> None:
        self._root = f"{address}/session/{session}"

    def asked(self, method: str, path: str, **given: Any) -> Any:
        return _asked(method, f"{self._root}/{path}", given)

    def open(self, address: str) -> None:
        self.asked("POST", "url", url=address)

    def run(self, script: str, *args: Any) -> Any:
        """What a function's body of JavaScript returns, also where that comes later."""
        return self.asked("POST", "execute/sync", script=f"return (async () => {{ {script} }})();", args=list(args))

    def until(self, condition: str, seconds: float = 20) -> Any:
        """What an expression becomes when it is true."""
        end = time.monotonic() + seconds
        while not (found := self.run(f"return {condition};")):
            if time.monotonic() > end:
                problem = self.run("return document.getElementById('problem')?.textContent;")
                raise TimeoutError(f"{condition} did not become true; the page says: {problem}")
            time.sleep(0.05)
        return found

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Be a screen of so many dots, in one of the two colour schemes."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._devtools("Emulation.setEmulatedMedia", {"features": features})

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self.asked("GET", "screenshot"))

    def drag(self, points: list[tuple[float, float]]) -> None:
        """Move the mouse along points of the window while its button is held."""
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 8} for x, y in points]
        steps = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        pointer = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps}
        self.asked("POST", "actions", actions=[pointer])

    def messages(self) -> list[str]:
        """What the console was told since it was last asked."""
        return [entry["message"] for entry in self.asked("POST", "se/log", type="browser")]

    def _devtools(self, command: str, params: dict[str, Any]) -> None:
        self.asked("POST", "goog/cdp/execute", cmd=command, params=params)


# A GPU that is computed by the processor, which Chromium brings along.
WITH_GPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")


@contextmanager
def browser(*, gpu: bool = False) -> Iterator[Browser]:
    """A browser with a new profile, which goes with it; with a GPU for pages, or without."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        session = None
        arguments = [*(a for a in ARGUMENTS if a != "--disable-gpu"), *WITH_GPU] if gpu else ARGUMENTS
        try:
            _wait(address)
            options = {"binary": CHROMIUM, "args": [*arguments, f"--user-data-dir={profile}"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            found = _asked("POST", f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})
            session = found["sessionId"]
            yield Browser(address, session)
        finally:
            if session is not None:
                _asked("DELETE", f"{address}/session/{session}", {})
            driver.terminate()
            driver.wait(20)


def _wait(address: str) -> None:
    for _ in range(200):
        try:
            if _asked("GET", f"{address}/status", {})["ready"]:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError("chromedriver does not answer")


def _asked(method: str, address: str, given: dict[str, Any]) -> Any:
    data = json.dumps(given).encode() if method == "POST" else None
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this machine alone is asked
    try:
        with opener.open(request, timeout=120) as answer:
            return json.loads(answer.read())["value"]
    except urllib.error.HTTPError as error:
        said = json.loads(error.read())["value"]
        raise RuntimeError(f"{said['error']}: {said['message'].splitlines()[0]}") from None
