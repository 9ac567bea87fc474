"""A screen whose table shows only the rows that hold some words: `/` asks for them, escape shows all rows again."""

from collections.abc import Sequence

from textual import on
from textual.widgets import Input

from rlvr.tui.page import Page


class FilteredPage(Page):
    """Its `body` has a field `#filter` with the class "hidden"; when that changes, it shows what it `lets` through."""

    def lets(self, text: str) -> bool:
        """Does the text hold all the words of the field?"""
        return holds(text, self.filter_words)

    @property
    def filter_field(self) -> Input:
        return self.query_one("#filter", Input)

    @property
    def filter_words(self) -> list[str]:
        return self.filter_field.value.casefold().split()

    def action_filter(self) -> None:
        self.filter_field.remove_class("hidden")
        self.filter_field.focus()

    @on(Input.Submitted, "#filter")
    def done_typing(self) -> None:
        self.table.focus()

    def show_all(self) -> None:
        self.filter_field.value = ""
        self.filter_field.add_class("hidden")
        self.table.focus()

    def action_back(self) -> None:
        if self.filter_field.value or self.filter_field.has_focus:
            self.show_all()
        else:
            super().action_back()


def holds(text: str, words: Sequence[str]) -> bool:
    """Are all these words, in lower case, in the text?"""
    text = text.casefold()
    return all(word in text for word in words)
