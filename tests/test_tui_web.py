"""The dashboard in a browser: who gets in, what comes through the websocket, what a headless Chromium draws."""

import asyncio
import base64
import contextlib
import io
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pilots import training_tree
from processes import wait_until

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

ROOT = Path(__file__).parent.parent


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with training_tree(tmp_path, monkeypatch) as folder:
        yield folder


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[str]:
    """The address that a server prints, token included."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(ROOT / "rlvrtui.py"), "--web", "--port", str(port), *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@contextlib.asynccontextmanager
async def visitor() -> AsyncIterator["aiohttp.ClientSession"]:
    jar = aiohttp.CookieJar(unsafe=True)  # of a number instead of a name
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield session


async def test_nobody_gets_in_without_the_token(tree: Path):
    with served(tree) as address:
        place, _, token = address.partition("?token=")
        assert place.startswith("http://127.0.0.1:") and len(token) >= 32
        async with visitor() as stranger:
            for path in ("", "?token=x", "static/css/xterm.css"):
                async with stranger.get(place + path) as answer:
                    assert answer.status == 403, path
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await stranger.ws_connect(place + "ws")
            assert refused.value.status == 403


async def test_the_dashboard_comes_through_the_websocket_and_takes_keys(tree: Path):
    with served(tree, "--model", "demo") as address:
        async with visitor() as browser:
            async with browser.get(address) as page:
                assert page.status == 200 and page.url.query_string == "" and "ws://127.0.0.1" in await page.text()
            place = address.partition("?")[0]
            async with browser.ws_connect(place + "ws?width=120&height=35") as terminal:
                seen = b""
                while b"Runs of demo" not in seen or b"pending" not in seen:
                    message = await terminal.receive(timeout=240)
                    assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), message
                    seen += message.data if isinstance(message.data, bytes) else message.data.encode()
                await terminal.send_json(["stdin", "4"])
                while b"Presets" not in seen.rpartition(b"gemma4-e2b")[0]:
                    message = await terminal.receive(timeout=240)
                    seen += message.data if isinstance(message.data, bytes) else message.data.encode()


@pytest.mark.parametrize(
    ("options", "why"),
    [(["--host", "0.0.0.0"], "--token"), (["--host", "0.0.0.0", "--token", "abc"], "at least 16")],
)
def test_another_address_is_refused_without_a_good_token(tree: Path, options: list[str], why: str):
    command = [sys.executable, str(ROOT / "rlvrtui.py"), "--web", *options]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and why in done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# A real browser


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[str]:
    """The address of a headless browser's debugging protocol."""
    assert CHROMIUM
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
    flags += ("--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--window-size=1200,700")
    flags += ("--disable-dev-shm-usage",)  # it is small in a container
    command = [CHROMIUM, *flags, f"--user-data-dir={profile}", "about:blank"]
    said = profile.with_suffix(".log")  # a pipe that nobody reads would fill up
    with said.open("w") as log, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log) as process:
        try:

            def found() -> re.Match[str] | None:
                return re.search(r"ws://(127\.0\.0\.1:\d+)/", said.read_text(errors="replace"))

            wait_until(lambda: found() or process.poll() is not None, 240)
            place = found()
            assert place, said.read_text(errors="replace")
            yield f"http://{place[1]}"
        finally:
            process.kill()


class Tab:
    """A tab of the browser, over the debugging protocol."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse"):
        self.socket = socket
        self.number = 0

    async def call(self, method: str, **parameters: object) -> dict:
        self.number += 1
        await self.socket.send_json({"id": self.number, "method": method, "params": parameters})
        while True:
            answer = await self.socket.receive_json(timeout=240)
            if answer.get("id") == self.number:
                return answer["result"]

    async def picture(self) -> Image.Image:
        data = base64.b64decode((await self.call("Page.captureScreenshot"))["data"])
        return Image.open(io.BytesIO(data)).convert("RGB")

    async def picture_that(self, wanted: Callable[[Image.Image], bool]) -> Image.Image:
        """A picture for which something is so, once it is."""
        end = time.monotonic() + 240
        while not wanted(picture := await self.picture()):
            assert time.monotonic() < end, "it was never drawn"
            await asyncio.sleep(0.3)
        return picture


def num_colors(picture: Image.Image) -> int:
    return len(picture.getcolors(2**24) or ())


def share_changed(one: Image.Image, other: Image.Image) -> float:
    return float(np.any(np.asarray(one) != np.asarray(other), axis=2).mean())


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
async def test_a_browser_draws_the_dashboard_and_its_keys_work(tree: Path, tmp_path: Path):
    with served(tree, "--model", "demo") as address, browser(tmp_path / "profile") as debugging:
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{debugging}/json/new?{address}") as answer:
                target = await answer.json(content_type=None)
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                # The smoothed edges of letters and graphs have many colours; the page that loads has few.
                runs = await tab.picture_that(lambda picture: num_colors(picture) > 800)
                where = await tab.call("Runtime.evaluate", expression="location.href")
                assert "token" not in where["result"]["value"]  # it is not left in the address line
                await tab.call("Runtime.evaluate", expression="document.querySelector('textarea')?.focus()")
                for kind in ("keyDown", "keyUp"):
                    key = {"text": "4"} if kind == "keyDown" else {}
                    await tab.call(
                        "Input.dispatchKeyEvent", type=kind, key="4", code="Digit4", windowsVirtualKeyCode=52, **key
                    )
                presets = await tab.picture_that(lambda picture: share_changed(runs, picture) > 0.03)
                assert num_colors(presets) > 200
