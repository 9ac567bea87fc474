"""A viewer that is ended from outside: by SIGTERM, or by SIGHUP when its terminal is closed."""

import asyncio
import os
import signal
import threading

from textual.app import App

GRACE_S = 5.0
"""For an orderly end, which restores the terminal. A terminal that is gone can hold it up for ever."""


def end_on_signals(app: App) -> None:
    """End the application on SIGTERM and SIGHUP, in order or else hard; call it once its event loop runs."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, app, 128 + number)


def end(app: App, code: int) -> None:
    """Leave with this exit code, and hard when leaving takes too long: nothing is lost, runs do not depend on it."""
    watchdog = threading.Timer(GRACE_S, os._exit, (code,))
    watchdog.daemon = True
    watchdog.start()
    app.exit(return_code=code)
