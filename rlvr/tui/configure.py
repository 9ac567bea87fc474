"""The form of a model's config: a tab a layer, a row a key, an editor that checks while one types.

A row says what the layer sets, what is effective and from where, and what the last run had. Nothing is written before
`ctrl+s`; then all layers are, with `layers.py`, so that comments in the files stay.
"""

from collections.abc import Callable, Iterable
from typing import Any

from rich.text import Text
from textual import on
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static, Tab, Tabs

from rlvr.layer_files import toml_text
from rlvr.tui.drafts import PLACES, Drafts, Place, keys_of, read_drafts
from rlvr.tui.editor import Editor
from rlvr.tui.filtered import FilteredPage
from rlvr.tui.table import Cell, KeyedTable
from rlvr.tui.verbs import PANES, page_bindings
from rlvr.tui.words import shorten

WIDTH = 22
"""Characters of a value in the table; the editor shows all of it."""

COLUMNS = ("Key", "Here", "Effective", "From", "Last run")

ONLY = ("all keys", "set here", "unlike the last run", "unsaved")


class ConfigPage(FilteredPage):
    """The layers of the chosen model."""

    key = "config"
    BINDINGS = page_bindings("edit", "save", "reset", "revert", "jump", "only", "filter", *PANES)
    always_load = True

    def __init__(self) -> None:
        super().__init__()
        self.drafts: Drafts | None = None
        self.only = 0
        self.wanted: str | None = None
        """The key to go to when the tab has turned."""

    def body(self) -> Iterable[Widget]:
        yield Tabs(*(Tab(place.title, id=f"layer-{index}") for index, place in enumerate(PLACES)), id="layers")
        with Horizontal(id="split"):
            with Vertical(id="list", classes="pane"):
                yield Input(placeholder="show only keys with ...", id="filter", classes="hidden", compact=True)
                yield Static("", id="trouble", classes="trouble hidden", markup=False)
                yield KeyedTable(*COLUMNS, id="keys", drop=("Last run",), elastic=("Here", "Effective", "Last run"))
            yield Editor(id="editor", classes="pane")

    @property
    def place(self) -> Place:
        """The layer whose tab is up."""
        active = self.query_one("#layers", Tabs).active
        return PLACES[int(active.removeprefix("layer-") or 0)] if active else PLACES[0]

    # -----------------------------------------------------------------------------------------------------------------
    # Reading and showing

    def load(self) -> None:
        if self.drafts is None or self.drafts.model != self.board.model:
            self.drafts = None
            self.table.show({})
        model = self.board.model
        self.read(lambda: read_drafts(model), self.take, self.refuse)

    def take(self, drafts: Drafts) -> None:
        if drafts.model == self.board.model:
            if self.drafts is not None:
                drafts.take_over(self.drafts.changes)  # as they are now: one types on while the files are read
            self.drafts = drafts
            self.query_one("#trouble", Static).add_class("hidden")
            self.show()

    def refuse(self, error: Exception) -> None:
        """A file is broken: say so where the keys would be, until it is put right."""
        self.drafts = None
        self.table.show({})
        self.refresh_editor()
        trouble = self.query_one("#trouble", Static)
        trouble.update(f"{error}\n\nEdit the file, then press F5.")
        trouble.remove_class("hidden")

    @on(Input.Changed, "#filter")
    def show(self) -> None:
        """Bring table, editor and counts up to date."""
        drafts = self.drafts
        if drafts is None:
            return
        place = self.place
        rows = {
            name: self.cells(drafts, place, name)
            for name, key in keys_of(place).items()
            if self.is_wanted(drafts, place, name) and self.lets(f"{name} {key.help}")
        }
        self.table.show(rows)
        if self.wanted:
            self.table.select(self.wanted)
            self.wanted = None
        self.board.unsaved = len(drafts.changes)
        pane = self.query_one("#list")
        pane.border_title = f"{drafts.model}/{place.where}"
        unsaved = f"{len(drafts.changes)} unsaved: ctrl+s writes them" if drafts.changes else "all saved"
        pane.border_subtitle = f"{ONLY[self.only]} · {unsaved}" if self.only else unsaved
        for index, each in enumerate(PLACES):
            count = sum(where == each for where, _ in drafts.changes)
            self.query_one(f"#layer-{index}", Tab).label = each.title + (f" *{count}" if count else "")  # type: ignore[assignment]
        self.refresh_editor()
        self.refresh_bindings()

    def is_wanted(self, drafts: Drafts, place: Place, name: str) -> bool:
        if self.only == 1:
            return drafts.here(place, name) is not None or drafts.is_changed(place, name)
        if self.only == 2:
            return any(self.differs(drafts, name, target) for target in drafts.targets(place, name))
        return self.only == 0 or drafts.is_changed(place, name)

    def differs(self, drafts: Drafts, name: str, target: Any) -> bool:
        last = drafts.last_value(name, target)
        return last is not None and last != drafts.value(name, target)[0]

    def cells(self, drafts: Drafts, place: Place, name: str) -> tuple[Cell, ...]:
        muted, accent, warning = map(self.color, ("text-muted", "text-accent", "text-warning"))
        changed = drafts.is_changed(place, name)
        here = drafts.here(place, name)
        shown = "" if here is None else shorten(toml_text(here), WIDTH)
        if changed:
            shown = f"* {shown or '(unset)'}"
        targets = drafts.targets(place, name)
        values = [drafts.value(name, target) for target in targets]
        effective = shorten(toml_text(values[0][0]), WIDTH)
        winner = values[0][1]
        origin = winner.title if winner else "default"
        if len(values) == 2 and values[0][0] != values[1][0]:
            effective += f" / {shorten(toml_text(values[1][0]), WIDTH)}"
            origin = "training / eval"
        shadowed = drafts.shadowed_by(place, name)
        origin_look = warning if shadowed else muted if winner is None else accent
        lasts = [
            shorten(toml_text(drafts.last_value(name, target)), WIDTH)
            for target in targets
            if self.differs(drafts, name, target)
        ]
        return (
            name,
            Text.assemble((shown, warning if changed else self.color("text-success"))),
            effective,
            Text.assemble((("↑ " if shadowed else "") + origin, origin_look)),
            " / ".join(dict.fromkeys(lasts)),
        )

    def refresh_editor(self) -> None:
        name = self.table.selected
        self.query_one(Editor).show(self.drafts, self.place, name)

    # -----------------------------------------------------------------------------------------------------------------
    # What happens

    @on(Tabs.TabActivated, "#layers")
    def turned(self) -> None:
        self.wanted = self.wanted or self.table.selected
        self.show()

    @on(DataTable.RowHighlighted, "#keys")
    def selected(self) -> None:
        self.refresh_editor()
        self.refresh_bindings()

    @on(DataTable.RowSelected, "#keys")
    def pressed(self) -> None:
        self.action_edit()

    def on_editor_changed(self) -> None:
        self.show()

    def on_editor_left(self) -> None:
        self.table.focus()

    def turn(self, go: Callable[[Tabs], None]) -> None:
        go(self.query_one("#layers", Tabs))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action not in ("edit", "save", "reset", "revert", "jump") or not self.ready or self.drafts is None:
            return True
        name = self.table.selected
        if action == "save":
            return bool(self.drafts.changes) or None
        if name is None:
            return None
        works = {
            "edit": True,
            "reset": self.drafts.here(self.place, name) is not None,
            "revert": self.drafts.is_changed(self.place, name),
            "jump": self.drafts.shadowed_by(self.place, name) is not None,
        }
        return works[action] or None

    def action_edit(self) -> None:
        self.query_one(Editor).focus_field()

    def action_reset(self) -> None:
        if self.drafts and (name := self.table.selected):
            self.drafts.unset(self.place, name)
            self.show()

    def action_revert(self) -> None:
        if self.drafts and (name := self.table.selected):
            self.drafts.revert(self.place, name)
            self.show()

    def action_jump(self) -> None:
        name = self.table.selected
        if self.drafts and name and (above := self.drafts.shadowed_by(self.place, name)):
            self.wanted = name
            self.query_one("#layers", Tabs).active = f"layer-{PLACES.index(above)}"

    def action_only(self) -> None:
        self.only = (self.only + 1) % len(ONLY)
        self.show()

    def action_save(self) -> None:
        if self.drafts and self.drafts.changes:
            drafts = self.drafts
            self.board.perform(lambda: save(drafts), self.say)

    def action_back(self) -> None:
        if self.query_one(Editor).has_focus_within:
            self.table.focus()
        else:
            super().action_back()

    def copied(self) -> str:
        name = self.table.selected
        if not self.drafts or not name:
            return ""
        target = self.drafts.targets(self.place, name)[0]
        return f"{name} = {toml_text(self.drafts.value(name, target)[0])}"


def save(drafts: Drafts) -> str:
    """Write the changes of all layers; returns what was done in words."""
    changes = drafts.save()
    files = ", ".join(dict.fromkeys(change.file for change in changes))
    return f"Saved {len(changes)} key{'s' if len(changes) != 1 else ''} in {files}."
