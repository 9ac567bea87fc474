"""The keys of the dashboard, once: what the footer, the help, the palette and docs/rlvrtui.md show.

    python -m rlvr.tui.verbs         # the table of docs/rlvrtui.md

`bindings("kill", "resume")` gives the Textual bindings of a screen. Keys of the graphs are in `keys.py`.
"""

from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True)
class Verb:
    """One thing to do: `keys` separated by commas, the word of the footer, a sentence of help."""

    keys: str
    action: str
    label: str
    help: str
    show: bool = True


SCREENS = {
    "runs": "Runs",
    "models": "Models",
    "config": "Config",
    "presets": "Presets",
    "evals": "Eval",
    "auto": "Auto",
    "compare": "Compare",
    "corpus": "Corpus",
    "colab": "Colab",
}
"""The screens in the order of their number keys: name -> what the title line says."""

SCREEN_VERBS = {
    name: Verb(str(number), f"page('{name}')", label, f"Go to the screen {label}.", show=False)
    for number, (name, label) in enumerate(SCREENS.items(), 1)
}

VERBS: dict[str, Verb] = {
    **SCREEN_VERBS,
    "help": Verb("question_mark", "help", "Help", "Show the keys that work here."),
    "quit": Verb("q", "quit", "Quit", "Leave the dashboard; runs go on."),
    "palette": Verb("colon", "app.command_palette", "Palette", "Find a command, a run, a screen or a graph by name."),
    "back": Verb("escape", "back", "Back", "Go back."),
    "copy": Verb("y", "copy", "Copy", "Copy what is selected to the clipboard."),
    "open": Verb("enter", "open", "Open", "Open the selected run: graphs, completions, log, config."),
    "new": Verb("n", "new", "New cycle", "Start the next cycle: see the plan first, set keys for it."),
    "resume": Verb("r", "resume", "Resume", "Go on with an interrupted run from its last checkpoint."),
    "kill": Verb("K,delete", "kill", "Kill", "Stop the selected run; asks first."),
    "remove": Verb("d", "remove", "Remove", "Move the selected run to the trash; asks first."),
    "label": Verb("L", "label", "Label", "Give the selected run a short label.", show=False),
    "note": Verb("N", "note", "Note", "Write a note about the selected run.", show=False),
    "mark": Verb("space", "mark", "Mark", "Mark the selected cycle for comparison."),
    "compare_marked": Verb("c", "compare", "Compare", "Compare the marked cycles, else the newest two."),
    "filter": Verb("slash", "filter", "Filter", "Show only the rows that hold a text; escape clears."),
    "next_tab": Verb("full_stop", "next_tab", "Pane", "Go to the next pane."),
    "previous_tab": Verb("comma", "previous_tab", "Previous pane", "Go to the pane before.", show=False),
    "new_model": Verb("n", "new_model", "New model", "Make a model from a preset."),
    "choose": Verb("enter", "choose", "Choose", "Work with the selected model."),
    "save": Verb("ctrl+s,w", "save", "Save", "Write the changes of all layers into their files."),
    "reset": Verb("u", "reset", "Unset", "Take the selected key out of this layer."),
    "revert": Verb("z", "revert", "Revert", "Forget the unsaved change of the selected key."),
    "jump": Verb("s", "jump", "Shadowing", "Go to the layer that overrides this value."),
    "only": Verb("o", "only", "Show", "Show all keys, those set here, those unlike the last run, or unsaved ones."),
    "edit": Verb("enter", "edit", "Edit", "Edit the selected key."),
    "apply": Verb("enter", "apply", "Apply", "Set the keys of this preset in a layer of the model."),
    "save_preset": Verb("n", "save_preset", "Save as", "Save what this model sets as a preset of your own."),
    "start": Verb("ctrl+r", "start", "Start", "Start what the form says."),
    "give_back": Verb("K,delete", "give_back", "Give back", "Give the selected VM back; asks first."),
    "refresh": Verb("f5", "refresh", "Refresh", "Read it again.", show=False),
}


def bindings(*names: str) -> list[BindingType]:
    """The bindings of these verbs, in that order."""
    return [
        Binding(verb.keys, verb.action, verb.label, show=verb.show, tooltip=verb.help, id=name)
        for name in names
        for verb in (VERBS[name],)
    ]


PANES = ("next_tab", "previous_tab")
"""Verbs of a screen with panes."""

COMMON = ("help", "quit", "palette", "copy", "back", "refresh")
"""Verbs of every screen."""


def page_bindings(*names: str) -> list[BindingType]:
    """The bindings of a screen: its own verbs, the most important first, then those of every screen."""
    return bindings(*names, *COMMON)


NAMES = {"question_mark": "?", "slash": "/", "full_stop": ".", "comma": ",", "escape": "esc", "colon": ": or ctrl+p"}


def as_markdown() -> str:
    """All verbs as a table."""
    rows = [
        f"| {', '.join(f'`{NAMES.get(key, key)}`' for key in verb.keys.split(','))} | `{name}` | {verb.help} |"
        for name, verb in VERBS.items()
    ]
    return "\n".join(["| key | verb | |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    print(as_markdown(), end="")
