"""A screen with a chosen run: which verbs work on that run as it stands, and what they do."""

from rlvr.listing import Row
from rlvr.status import LIVING
from rlvr.tui.page import Page

MOST_COMPARED = 8
"""Cycles: there are so many colours."""


class ChosenRunPage(Page):
    """The chosen run is the one under the cursor of its table."""

    needs_run: tuple[str, ...] = ("kill", "resume")
    """Actions that are grey without a run that they work on."""

    @property
    def chosen(self) -> Row | None:
        return self.board.row(self.table.selected)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return can(action, self.chosen) if action in self.needs_run and self.ready else True

    def action_open(self) -> None:
        if row := self.chosen:
            self.board.open_run(row)

    def action_kill(self) -> None:
        if row := self.chosen:
            self.board.ask_to_kill(row)

    def action_resume(self) -> None:
        if row := self.chosen:
            self.board.resume_run(row)


def can(action: str, row: Row | None) -> bool | None:
    """Does this verb work on a run as it stands? None greys it out, as Textual wants it."""
    if row is None:
        return None
    works = {
        "kill": row.state in LIVING,
        "resume": row.state not in (*LIVING, "done"),
        "remove": row.state not in LIVING,
        "mark": row.kind == "train",
    }
    return works.get(action, True) or None
