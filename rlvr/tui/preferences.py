"""What the dashboard remembers of a person: theme and own keys, in `tui.toml` of their config folder.

theme = "nord"
[keys]              # verb = keys; the verbs are in docs/rlvrtui.md
kill = "K"
"""

import contextlib
import tomllib
from pathlib import Path
from typing import Any

import platformdirs
import tomli_w


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
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(tomli_w.dumps({**read_preferences(), name: value}), encoding="utf-8")
