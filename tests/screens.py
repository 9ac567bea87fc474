"""Pictures of every screen of rlvrviz and rlvrtui, in three sizes, dark and light, for looking at them.

    python tests/screens.py OUT [NAME ...]        # OUT/NAME-80x24-dark.png ...; all screens, or those named

What `tests/shot.py` needs is needed here. Nothing is compared; that is `tests/test_snapshots.py`.
"""

import sys
import tempfile
from pathlib import Path

from shot import ROOT, SIZES, shoot
from training_tree import make_training_tree

TUI, VIZ = ("rlvrtui.py", "--model", "demo"), ("rlvrviz.py", "demo/002")

SCREENS: dict[str, tuple[tuple[str, ...], str, list[str], str]] = {
    "tui-runs": (TUI, "Runs of", [], "reward"),
    "tui-models": (TUI, "Runs of", ["2"], "other"),
    "tui-config": (TUI, "Runs of", ["3"], "environment"),
    "tui-presets": (TUI, "Runs of", ["4"], "gemma4-e2b"),
    "tui-eval": (TUI, "Runs of", ["5"], "003/evals/base"),
    "tui-auto": (TUI, "Runs of", ["6"], "auto/001"),
    "tui-compare": (TUI, "Runs of", ["7"], "Cycles"),
    "tui-corpus": (TUI, "Runs of", ["8"], "chosen"),
    "tui-colab": (TUI, "Runs of", ["9"], "VMs"),
    "tui-run": (TUI, "Runs of", ["Enter"], "Completions"),
    "tui-kill": (TUI, "Runs of", ["K"], "checkpoint"),
    "tui-new": (TUI, "Runs of", ["n"], "Start"),
    "tui-palette": (TUI, "Runs of", [":"], "Search"),
    "tui-help": (TUI, "Runs of", ["?"], "Cursor"),
    "viz": (VIZ, "reward", [], "reward"),
    "viz-crosshair": (VIZ, "reward", ["x"], "step"),
    "viz-full": (VIZ, "reward", ["Enter"], "reward"),
    "viz-completion": (VIZ, "reward", ["Tab", "Enter"], "expected"),
    "viz-runs": (VIZ, "reward", ["f"], "003"),
    "viz-help": (VIZ, "reward", ["?"], "Smooth"),
}
"""Picture -> program, a word that tells it is up, keys, a word that tells the screen is there."""

THEMES = {"dark": "textual-dark", "light": "textual-light"}


def main() -> int:
    out, names = Path(sys.argv[1]), sys.argv[2:] or list(SCREENS)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        make_training_tree(tree)
        for name in names:
            program, ready, keys, then = SCREENS[name]
            command = [sys.executable, str(ROOT / program[0]), *program[1:]]
            for size in SIZES:
                for look, theme in THEMES.items():
                    env = {"TEXTUAL_THEME": theme, "XDG_CONFIG_HOME": folder}
                    picture = out / f"{name}-{size}-{look}.png"
                    try:
                        shoot(command, tree, size, keys, ready, picture, env, then)
                        print(picture)
                    except TimeoutError as error:
                        print(f"{picture}: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
