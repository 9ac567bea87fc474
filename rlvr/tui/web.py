"""The dashboard in a browser, through textual-serve: every visitor gets a dashboard process of their own.

Whoever reaches it can start and kill runs. So it listens on this machine only unless it is told otherwise, and nobody
gets in without the token in the address that it prints: no other user of this machine, no other page in the browser.
"""

import hmac
import ipaddress
import secrets
import shlex
import socket
import sys
from pathlib import Path

from rlvr.errors import RlvrError

COOKIE = "rlvrtui"
MIN_TOKEN = 16


def is_loopback(host: str) -> bool:
    """Does only this machine reach that address?"""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_token(host: str, token: str) -> str:
    """The token to ask for: the one that was given, or a new one.

    Raises:
        RlvrError: for an address that others reach without a token of one's own, or one that is easily guessed.
    """
    if token and len(token) < MIN_TOKEN:
        raise RlvrError(f"--token has {len(token)} characters: give at least {MIN_TOKEN}, others will try to guess it")
    if not token and not is_loopback(host):
        raise RlvrError(
            f"--host {host} lets others start and kill runs here: say who may with --token, or leave --host out and "
            "use an SSH tunnel"
        )
    return token or secrets.token_urlsafe(24)


def serve(host: str, port: int, token: str, arguments: list[str]) -> int:
    """Serve the dashboard until Ctrl-C; `arguments` are those of rlvrtui.py for each visitor.

    Raises:
        RlvrError: when textual-serve is missing, the port is taken, or the address is refused.
    """
    token = choose_token(host, token)
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError as error:
        how = "pip install 'textual-serve>=1.1,<2'"
        raise RlvrError(f"--web needs textual-serve ({error.name} is missing): {how}") from None
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass
    except OSError as error:
        raise RlvrError(f"{host} port {port}: {error.strerror}: choose another one with --port") from None
    program = Path(__file__).resolve().parent.parent.parent / "rlvrtui.py"

    class Guarded(Server):
        """textual-serve behind the token."""

        async def _make_app(self) -> web.Application:
            app = await super()._make_app()
            app.middlewares.append(self.guard)
            return app

        @web.middleware
        async def guard(self, request: web.Request, handler) -> web.StreamResponse:
            if same(request.query.get("token", ""), token) and request.path == "/":
                welcome = web.HTTPFound("/")
                # Strict: no other page can use it, not even to open the websocket.
                welcome.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
                raise welcome
            if not same(request.cookies.get(COOKIE, ""), token):
                raise web.HTTPForbidden(text="Open the address that rlvrtui.py --web has printed.\n")
            self.public_url = f"{request.scheme}://{request.host}"  # the page names its websocket by it
            return await handler(request)

        async def on_startup(self, app: web.Application) -> None:
            """Without the banner."""

    def announce(*lines: str) -> None:
        place = f"[{host}]" if ":" in host else host
        print(f"http://{place}:{port}/?token={token}", flush=True)
        print("Ctrl-C ends it; runs go on.", file=sys.stderr)

    command = shlex.join([sys.executable, str(program), *arguments])
    guarded = Guarded(command, host=host, port=port, title="rlvrtui")
    # Not its own `serve`, which says nothing when it listens and sets up logging.
    web.run_app(guarded._make_app(), host=host, port=port, print=announce, access_log=None)
    return 0


def same(given: str, token: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(given.encode(), token.encode())
