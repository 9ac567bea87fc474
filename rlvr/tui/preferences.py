"""What the viewers remember of a person: theme, own keys and more, in `tui.toml` of their config folder.

theme = "nord"
[keys]              # verb = keys; the verbs are in docs/rlvrtui.md and docs/rlvrviz.md
kill = "K"
"""

import contextlib
import os
import tomllib
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import platformdirs
import tomli_w
from textual.app import App


def preferences_file() -> Path:
    return Path(platformdirs.user_config_dir("oeis-rlvr")) / "tui.toml"


def read_preferences() -> dict[str, Any]:
    """What was remembered; {} when there is nothing, or nothing that can be read."""
    try:
        return tomllib.loads(preferences_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def remember(name: str, value: Any) -> None:
    """Keep one preference; a folder that cannot be written is no reason to trouble anybody."""
    file = preferences_file()
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(tomli_w.dumps({**read_preferences(), name: value}), encoding="utf-8")
        os.replace(temporary, file)


def own_keys(kept: Mapping[str, Any], known: Container[str]) -> dict[str, str]:
    """The keys a person chose for what is known here, as `App.set_keymap` wants them; {} when `keys` is no table."""
    keys = kept.get("keys")
    return {name: str(each) for name, each in keys.items() if name in known} if isinstance(keys, dict) else {}


def choose_theme(app: App, wanted: str | None, kept: Mapping[str, Any]) -> bool:
    """Set the theme asked for, else that of TEXTUAL_THEME, else the one remembered; remember what is chosen later.

    Returns False, and has the application end, when there is no theme of the name asked for.
    """
    remembered = "" if "TEXTUAL_THEME" in os.environ else str(kept.get("theme"))
    name = wanted or remembered
    if name in app.available_themes:
        app.theme = name
    elif wanted:
        names = ", ".join(sorted(app.available_themes))
        app.exit(return_code=2, message=f"error: no theme {wanted!r}: one of {names}")
        return False
    app.theme_changed_signal.subscribe(app, lambda chosen: remember("theme", chosen.name))
    return True
