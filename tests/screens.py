"""Pictures of every screen of rlvrviz and rlvrtui, in three sizes, dark and light, for looking at them.

    python tests/screens.py OUT [NAME ...]        # OUT/NAME-80x24-dark.png ...; all screens, or those named: tui-run

What `tests/shot.py` needs is needed here. Nothing is compared; that is `tests/test_snapshots.py`.
"""

import sys
import tempfile
from pathlib import Path

from shot import ROOT, SIZES, shoot
from training_tree import make_training_tree

OTHER = ("rlvrtui.py", "--model", "other")
"""A model whose next cycle has a plan: the adapters of demo are made up and would be refused."""

TUI, VIZ = ("rlvrtui.py", "--model", "demo"), ("rlvrviz.py", "demo/002")

UP = "Runs of demo(.|\\n)*running(.|\\n)*[⠁-⣿]"
"""The first screen, with its graphs."""

PLOT = "[⠁-⣿]"

SCREENS: dict[str, tuple[tuple[str, ...], str, list[str], str]] = {
    "tui-runs": (TUI, UP, [], UP),
    "tui-models": (TUI, UP, ["2"], "Models in (.|\\n)*other"),
    "tui-config": (TUI, UP, ["3"], "all saved"),
    "tui-presets": (TUI, UP, ["4"], "built in(.|\\n)* = "),
    "tui-eval": (TUI, UP, ["5"], "New evaluation(.|\\n)*base: the model"),
    "tui-auto": (TUI, UP, ["6"], "New auto run(.|\\n)*002/evals/base"),
    "tui-compare": (TUI, UP, ["7"], f"space marks(.|\\n)*{PLOT}|{PLOT}(.|\\n)*space marks"),
    "tui-corpus": (TUI, UP, ["8"], "chosen for(.|\\n)*shown in the prompt"),
    "tui-colab": (TUI, UP, ["9"], "VMs that cost money"),
    "tui-run": (TUI, UP, ["Enter"], f"Doctor(.|\\n)*{PLOT}"),
    "tui-completions": (TUI, UP, ["Enter", "."], "Doctor(.|\\n)*A0"),
    "tui-snapshot": (TUI, UP, ["Enter", ".", ".", "."], "Doctor(.|\\n)*base_model"),
    "tui-doctor": (TUI, UP, ["Enter", ",", ","], "Doctor(.|\\n)*[Nn]othing|Doctor(.|\\n)*→"),
    "tui-result": (TUI, UP, ["/", *"base", "Enter", "Enter"], "12 held-out(.|\\n)*points"),
    "tui-tasks": (TUI, UP, ["/", *"base", "Enter", "Enter", "."], "Better(.|\\n)*% terms"),
    "tui-pass": (TUI, UP, ["/", *"base", "Enter", "Enter", ".", "."], f"pass@k(.|\\n)*{PLOT}"),
    "tui-marked": (TUI, UP, ["Space"], "◆"),
    "tui-kill": (TUI, UP, ["K"], "Kill 003"),
    "tui-new": (OTHER, f"Runs of other(.|\\n)*{PLOT}", ["n"], "Next cycle(.|\\n)*cold start"),
    "tui-palette": (TUI, UP, [":"], "Search for"),
    "tui-help": (TUI, UP, ["?"], "This screen"),
    "viz": (VIZ, PLOT, [], PLOT),
    "viz-crosshair": (VIZ, PLOT, ["x"], PLOT),
    "viz-full": (VIZ, PLOT, ["Enter"], PLOT),
    "viz-completion": (VIZ, PLOT, ["Tab", "Enter"], "expected"),
    "viz-runs": (VIZ, PLOT, ["f"], "other/001"),
    "viz-help": (VIZ, PLOT, ["?"], "esc closes"),
}
"""Picture -> program, what tells that it is up, keys, what only the screen that is wanted holds."""

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
