"""The keys of the charts and the completions, once: bindings, footer, help panel and docs page are made from this.

python -m rlvr.tui.keys         # the table of docs/rlvrviz.md
"""

from dataclasses import dataclass
from typing import Literal

Where = Literal["everywhere", "charts", "completions", "completion"]

TITLES: dict[Where, str] = {
    "everywhere": "Everywhere",
    "charts": "Charts",
    "completions": "Table of completions",
    "completion": "One completion",
}


@dataclass(frozen=True)
class Key:
    """`keys` as Textual names them, the first one shown; `footer` is its word there, empty to leave it out."""

    id: str
    keys: str
    action: str
    footer: str
    about: str
    where: Where


KEYS = (
    Key("help", "question_mark", "help", "Help", "this list", "everywhere"),
    Key("quit", "q", "quit", "Quit", "end the view, as ctrl+c does; runs go on", "everywhere"),
    Key("pane", "tab", "pane('completions')", "Completions", "the other pane; 1 and 2 go to one", "everywhere"),
    Key("pane_charts", "1", "pane('charts')", "", "the charts", "everywhere"),
    Key("pane_completions", "2", "pane('completions')", "", "the completions", "everywhere"),
    Key("runs", "f", "runs", "Runs", "choose runs: space marks several to lay over each other", "everywhere"),
    Key("pause", "P", "pause", "Pause", "hold the picture still; reading goes on", "everywhere"),
    Key("palette", "ctrl+p", "command_palette", "", "every command, every run, every chart by name", "everywhere"),
    Key("filter", "slash", "filter", "Filter", "only charts whose names hold these words (* and ? too)", "charts"),
    Key("full", "enter", "full", "Full", "one chart on the whole screen, and back", "charts"),
    Key("back", "escape", "back", "", "back: full screen, crosshair, zoom, filter", "charts"),
    Key("smooth", "s", "smooth(1)", "Smooth", "smoothing 0, 0.6, 0.9, 0.99; S the other way", "charts"),
    Key("unsmooth", "S", "smooth(-1)", "", "less smoothing", "charts"),
    Key("log", "l", "log", "Log y", "logarithmic y axis of this chart; L of all", "charts"),
    Key("log_all", "L", "log_all", "", "logarithmic y axis of all charts", "charts"),
    Key("times", "t", "times", "Time", "steps or time along the x axis", "charts"),
    Key(
        "cross",
        "x",
        "cross",
        "Crosshair",
        "crosshair over all charts, values in the titles; a click sets it",
        "charts",
    ),
    Key("outliers", "o", "outliers", "", "y axis from the 1st to the 99th percentile, or all", "charts"),
    Key("zoom_in", "plus,equals_sign", "zoom(0.5)", "", "zoom in; the wheel zooms at the mouse", "charts"),
    Key("zoom_out", "minus", "zoom(2)", "", "zoom out", "charts"),
    Key("zoom_reset", "0", "zoom_reset", "", "the whole run again, following what comes", "charts"),
    Key("pan_left", "left_square_bracket", "pan(-0.25)", "", "earlier, when zoomed", "charts"),
    Key("pan_right", "right_square_bracket", "pan(0.25)", "", "later, when zoomed", "charts"),
    Key("grid", "g", "grid", "Grid", "more or fewer charts side by side", "charts"),
    Key("guides", "G", "guides", "", "guide lines on or off", "charts"),
    Key("pin", "p", "pin", "", "the next of several runs on top; bars and completions are its", "charts"),
    Key("export", "e", "export", "Export", "the chart as PNG, SVG or CSV, written beside the run", "charts"),
    Key("copy", "y", "copy", "Copy", "copy the value in the chart's title", "charts"),
    Key("step_rows", "c", "step_rows", "", "the completions of the step under the crosshair", "charts"),
    Key("left", "left,h", "left", "", "chart to the left, or the crosshair", "charts"),
    Key("right", "right", "right", "", "chart to the right, or the crosshair", "charts"),
    Key("up", "up,k", "up", "", "chart above", "charts"),
    Key("down", "down,j", "down", "", "chart below", "charts"),
    Key("page_up", "pageup", "page_up", "", "a page of charts up", "charts"),
    Key("page_down", "pagedown", "page_down", "", "a page of charts down", "charts"),
    Key("row_up", "up,k", "move(-1)", "", "row above", "completions"),
    Key("row_down", "down,j", "move(1)", "", "row below", "completions"),
    Key("rows_up", "pageup,ctrl+u", "page(-1)", "", "a page up", "completions"),
    Key("rows_down", "pagedown,ctrl+d", "page(1)", "", "a page down", "completions"),
    Key("row_first", "home,g", "edge(-1)", "", "the newest, following what comes", "completions"),
    Key("row_last", "end,G", "edge(1)", "", "the oldest", "completions"),
    Key("open", "enter", "open", "Open", "prompt, reasoning, function, terms and rewards", "completions"),
    Key("sort", "s", "sort(1)", "Sort", "sort by the next column; S by the one before", "completions"),
    Key("sort_back", "S", "sort(-1)", "", "sort by the column before", "completions"),
    Key("reverse", "r", "reverse", "Reverse", "the other way round", "completions"),
    Key("outcome", "o", "outcome(1)", "Outcome", "only one outcome: the next; O the one before", "completions"),
    Key("outcome_back", "O", "outcome(-1)", "", "the outcome before", "completions"),
    Key("search", "slash", "search", "Search", "only rows with this in task, name, outcome or step:12", "completions"),
    Key("clear", "escape", "clear", "", "all rows again, newest first", "completions"),
    Key("copy_row", "y", "copy", "Copy", "copy the function of the row", "completions"),
    Key("close", "escape,q", "close", "Close", "back to the table", "completion"),
    Key("mate_before", "left,h", "mate(-1)", "", "the answer before to the same prompt", "completion"),
    Key("mate_next", "right,l", "mate(1)", "Group-mate", "the next answer to the same prompt", "completion"),
    Key("mates", "m", "mates", "Side by side", "all answers to the prompt side by side", "completion"),
    Key("row_before", "k", "row(-1)", "", "the row above in the table", "completion"),
    Key("row_next", "j", "row(1)", "Next row", "the row below in the table", "completion"),
    Key("copy_function", "y", "copy", "Copy", "copy the function", "completion"),
    Key("copy_prompt", "p", "copy_prompt", "", "copy the prompt", "completion"),
)

NAMES = {
    "question_mark": "?",
    "slash": "/",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "escape": "esc",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "pageup": "pgup",
    "pagedown": "pgdn",
}


def shown(key: Key) -> str:
    """The keys as a person knows them."""
    return " ".join(NAMES.get(one, one) for one in key.keys.split(","))


def bindings(where: Where) -> list:
    """Textual's bindings for one place."""
    from textual.binding import Binding

    return [
        Binding(
            key.keys,
            key.action,
            key.footer or key.about.partition(";")[0],
            show=bool(key.footer),
            key_display=NAMES.get(key.keys.partition(",")[0]),
            tooltip=key.about,
            id=key.id,
        )
        for key in KEYS
        if key.where == where
    ]


def as_markdown(*places: Where) -> str:
    """The keys as tables, for the help panel and the docs page."""
    parts = []
    for where in places or TITLES:
        rows = [f"| `{shown(key)}` | {key.about} |" for key in KEYS if key.where == where]
        parts.append("\n".join((f"### {TITLES[where]}", "", "| key | |", "|---|---|", *rows)))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(as_markdown(), end="")
