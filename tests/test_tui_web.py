"""The dashboard in a browser: who gets in, and what comes through the websocket. A client speaks for the browser."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pilots import training_tree

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
                    message = await terminal.receive(timeout=60)
                    assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), message
                    seen += message.data if isinstance(message.data, bytes) else message.data.encode()
                await terminal.send_json(["stdin", "4"])
                while b"Presets" not in seen.rpartition(b"gemma4-e2b")[0]:
                    message = await terminal.receive(timeout=60)
                    seen += message.data if isinstance(message.data, bytes) else message.data.encode()


@pytest.mark.parametrize(
    ("options", "why"),
    [(["--host", "0.0.0.0"], "--token"), (["--host", "0.0.0.0", "--token", "abc"], "at least 16")],
)
def test_another_address_is_refused_without_a_good_token(tree: Path, options: list[str], why: str):
    command = [sys.executable, str(ROOT / "rlvrtui.py"), "--web", *options]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and why in done.stderr
