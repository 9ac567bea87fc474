"""The dashboard as an application: the model that is chosen, its runs kept up to date, the screens, the palette.

`rlvrtui.py` runs it. It only looks at files and calls what `rlvrctl.py` calls; nothing here outlives it.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from textual import work
from textual.app import App, SystemCommand
from textual.css.query import NoMatches
from textual.screen import Screen

from rlvr import cycles
from rlvr.errors import RlvrError
from rlvr.listing import Row, is_forgotten, newest_first, read_row, run_of
from rlvr.tui.ending import end_on_signals
from rlvr.tui.keys import KEYS
from rlvr.tui.page import Page, screens_here
from rlvr.tui.preferences import choose_theme, own_keys, read_preferences
from rlvr.tui.verbs import NAMES, SCREEN_VERBS, VERBS, bindings
from rlvr.tui.words import progress_text

Result = TypeVar("Result")

LOOK_S = 1.0
"""Between two looks at the runs of the model."""

# ---------------------------------------------------------------------------------------------------------------------
# The screens; each is imported when it is first gone to


def runs_page() -> Screen:
    from rlvr.tui.dashboard import RunsPage

    return RunsPage()


def models_page() -> Screen:
    from rlvr.tui.models import ModelsPage

    return ModelsPage()


def config_page() -> Screen:
    from rlvr.tui.configure import ConfigPage

    return ConfigPage()


def presets_page() -> Screen:
    from rlvr.tui.bundles import PresetsPage

    return PresetsPage()


def evals_page() -> Screen:
    from rlvr.tui.evaluations import EvalsPage

    return EvalsPage()


def auto_page() -> Screen:
    from rlvr.tui.auto import AutoPage

    return AutoPage()


def compare_page() -> Screen:
    from rlvr.tui.compare import ComparePage

    return ComparePage()


def corpus_page() -> Screen:
    from rlvr.tui.corpus import CorpusPage

    return CorpusPage()


def colab_page() -> Screen:
    from rlvr.tui.colab import ColabPage

    return ColabPage()


PAGES: dict[str, Callable[[], Screen]] = {
    "runs": runs_page,
    "models": models_page,
    "config": config_page,
    "presets": presets_page,
    "evals": evals_page,
    "auto": auto_page,
    "compare": compare_page,
    "corpus": corpus_page,
    "colab": colab_page,
}


ENDINGS = {
    "train": (
        "Stop with a checkpoint",
        "Stopping ends it after the step in progress; killing it loses what came after the last checkpoint.",
    ),
    "eval": ("Stop", "Either way it ends at once, and what was graded stays in its completions.jsonl."),
    "auto": ("Stop", "Stopping ends it with what it has started, the gentle way; killing it ends both at once."),
}
"""Kind of a run -> the words for ending it gently, and what either way means."""


class Dashboard(App[None]):
    """The application. `model` is "" while there is none; `rows` are its runs, live ones first."""

    CSS_PATH = ["windows.tcss", "dashboard.tcss"]  # noqa: RUF012
    TITLE = "RLVR"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-medium"), (160, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012
    BINDINGS = bindings(*SCREEN_VERBS)
    MODES = PAGES  # type: ignore[assignment]

    def __init__(self, model: str | None = None, theme: str | None = None):
        super().__init__()
        self.model = model or ""
        self.rows: list[Row] = []
        self.models: list[str] = []
        """All models, when they were last looked at."""
        self.marked: list[str] = []
        """Names of runs to compare, in the order they were marked."""
        self.unsaved = 0
        """Changed keys that would be lost."""
        self.own_keys: dict[str, str] = {}
        """Keys that the user chose: verb -> keys."""
        self.wanted_theme = theme

    def on_mount(self) -> None:
        end_on_signals(self)
        self.set_class(self.no_color, "no-color")
        kept = read_preferences()
        if not choose_theme(self, self.wanted_theme, kept):
            return
        self.own_keys = own_keys(kept, {*VERBS, *(key.id for key in KEYS)})
        self.set_keymap(self.own_keys)
        if not self.model:
            try:
                self.model = cycles.choose_model(None)
            except RlvrError:
                self.model = ""
        self.switch_mode("runs" if self.model else "models")
        self.watch_runs()

    # -----------------------------------------------------------------------------------------------------------------
    # Reading

    @work(group="watch", exclusive=True)
    async def watch_runs(self) -> None:
        """Keep `rows` up to date and hand them to the screen that is up."""
        trouble = ""
        while True:
            model = self.model
            if model:
                try:
                    rows, now = await asyncio.to_thread(read_rows, model), ""
                    self.models = await asyncio.to_thread(cycles.model_names)
                except (RlvrError, OSError) as error:
                    rows, now = [], str(error)
                    if now != trouble:  # once, not every second
                        self.complain(error)
                trouble = now
                if model == self.model:
                    self.rows = rows
                    self.hand_on()
            await asyncio.sleep(LOOK_S)

    def hand_on(self) -> None:
        """Show the rows on the screens of this mode; while the application closes, their widgets go."""
        for screen in self.screen_stack:
            if isinstance(screen, Page):
                with contextlib.suppress(NoMatches):
                    screen.take_rows(self.rows)

    def row(self, run: str | None) -> Row | None:
        """The row of a run of the model."""
        return next((row for row in self.rows if row.run == run), None)

    def look_now(self) -> None:
        """Look at the runs at once instead of in a moment."""
        self.watch_runs()

    def choose(self, model: str) -> None:
        """Work with another model from now on."""
        if model != self.model:
            self.model, self.rows, self.marked = model, [], []
        cycles.remember_model(model)
        self.look_now()

    # -----------------------------------------------------------------------------------------------------------------
    # Doing

    def complain(self, error: Exception) -> None:
        self.notify(str(error), severity="error", timeout=12, markup=False)

    @work(group="perform")
    async def perform(self, job: Callable[[], Result], then: Callable[[Result], object] | None = None) -> None:
        """Do something to runs or files in a thread, say what is wrong with it, look at the runs again."""
        try:
            result = await asyncio.to_thread(job)
        except (RlvrError, OSError) as error:
            self.complain(error)
            return
        if then:
            then(result)
        self.look_now()

    def notice(self, words: str) -> None:
        """Say something from a thread."""
        self.call_from_thread(self.notify, words, markup=False)

    def say_of(self, name: str) -> Callable[[str], None]:
        """What tells the outcome of something that was done to a run."""
        return lambda words: self.notify(f"{name}: {words}", markup=False)

    @work
    async def ask_to_kill(self, row: Row) -> None:
        """End a run, once the user has said how."""
        from rlvr import control
        from rlvr.tui.dialogs import Choice, Confirm

        gentle, consequence = ENDINGS[row.kind]
        choices: list[Choice] = [("stop", gentle, "warning"), ("force", "Kill at once", "error")]
        text = f"{row.run} is {row.state}: {progress_text(row).strip() or 'no step yet'}.\n\n{consequence}"
        if row.state == "pending":
            choices = [("stop", "Take it out of the queue", "error")]
            text = f"{row.run} waits for its turn."
        answer = await self.push_screen_wait(Confirm(f"Kill {row.run}", text, choices))
        if answer:
            self.perform(lambda: control.kill(run_of(row), force=answer == "force"), self.say_of(row.run))

    def resume_run(self, row: Row) -> None:
        from rlvr import control

        self.perform(lambda: f"goes on {control.resume(run_of(row))}", self.say_of(row.run))

    # -----------------------------------------------------------------------------------------------------------------
    # Going somewhere

    def action_page(self, name: str) -> None:
        """Go to a screen by its name; a window that asks something has to be answered first."""
        if self.screen.is_modal:
            return
        if not self.model and name != "models":
            self.notify("There is no model yet: make one here first.", severity="warning")
            name = "models"
        if name == self.current_mode:
            while len(self.screen_stack) > 1:
                self.pop_screen()
        else:
            self.switch_mode(name)

    async def action_quit(self) -> None:
        self.leave()

    @work
    async def leave(self) -> None:
        """Quit, unless there are unsaved changes and the user wants to keep them."""
        if self.unsaved:
            from rlvr.tui.dialogs import Confirm

            count = self.unsaved
            changes = f"{count} changed key{'s are' if count > 1 else ' is'} not saved."
            asked = Confirm("Leave", changes, [("leave", "Leave without saving", "error")])
            if await self.push_screen_wait(asked) != "leave":
                return
        self.exit()

    def key_row(self, name: str) -> tuple[str, str]:
        """The keys of a verb as a person knows them, and what it does."""
        keys = self.own_keys.get(name, VERBS[name].keys)
        return " ".join(NAMES.get(key, key) for key in keys.split(",")), VERBS[name].help

    def open_run(self, row: Row, step: int | None = None) -> None:
        """Look at one run closely, or at its completions of a step."""
        from rlvr.tui.monitor import MonitorPage

        self.push_screen(MonitorPage(run_of(row), step))

    def get_system_commands(self, screen: Screen) -> Iterable[SystemCommand]:
        # Textual's list of keys names those of the scroll bars first, and takes a third of the screen.
        yield from (command for command in super().get_system_commands(screen) if command.title != "Keys")
        if isinstance(screen, Page):
            yield SystemCommand("Keys", VERBS["help"].help, screen.action_help)
        for name, label in screens_here().items():
            yield SystemCommand(f"Go to {label}", VERBS[name].help, lambda name=name: self.action_page(name))
        for row in self.rows:
            yield SystemCommand(
                f"Open run {row.run}", f"{row.state} {row.label}".strip(), lambda row=row: self.open_run(row)
            )
        yield from self.graph_commands(screen)
        for name in self.models:
            if name != self.model:
                yield SystemCommand(f"Work with model {name}", "choose it", lambda name=name: self.change_model(name))

    def graph_commands(self, screen: Screen) -> Iterable[SystemCommand]:
        """A command a graph that the screen shows."""
        if "rlvr.tui.graphs" not in sys.modules:
            return
        from rlvr.tui.graphs import RunCharts

        for charts in screen.query(RunCharts):
            for spec in charts.charts:
                yield SystemCommand(
                    f"Graph {spec.name}", spec.about, lambda charts=charts, name=spec.name: charts.select(name)
                )

    def change_model(self, name: str) -> None:
        self.choose(name)
        self.action_page("runs")
        if isinstance(self.screen, Page):
            self.screen.on_screen_resume()


def read_rows(model: str) -> list[Row]:
    """The rows of a model's runs; whoever waits without a supervisor gets a new one, as with any `rlvrctl.py ps`."""
    cycles.model_dir(model)
    rows = newest_first(read_row(run) for run in cycles.all_runs(model))
    if any(map(is_forgotten, rows)):
        from rlvr import control

        control.start_waiting()
    return rows
