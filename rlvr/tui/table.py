"""A table whose rows are changed in place by key, so that cursor and scroll position stay where they are.

`table.show({"003": (Text("003"), "running"), ...})` adds, removes and changes only what differs.
"""

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual.binding import Binding
from textual.widgets import DataTable

Cell = Text | str


class KeyedTable(DataTable[Cell]):
    """Rows by key, in the order they are given; the first column of a row says its key or is unique too.

    Args:
        columns: the titles, which are the keys of the columns too.
    """

    BINDINGS = [  # noqa: RUF012
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "scroll_top", "Top", show=False),
        Binding("G", "scroll_bottom", "Bottom", show=False),
    ]

    def __init__(self, *columns: str, id: str | None = None, classes: str | None = None):
        super().__init__(id=id, classes=classes, cursor_type="row", zebra_stripes=False)
        self.titles = columns
        self.cells: dict[str, tuple[Cell, ...]] = {}
        for title in columns:
            self.add_column(title, key=title)

    def watch_virtual_size(self) -> None:
        """The columns have another width: what was drawn with the old one, and kept, would stay cut off."""
        self._clear_caches()
        self.refresh()

    def retitle(self, *columns: str) -> None:
        """Have other columns; the rows go."""
        if columns != self.titles:
            self.clear(columns=True)
            self.cells = {}
            self.titles = columns
            for title in columns:
                self.add_column(title, key=title)

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        if not self.row_count:
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def select(self, key: str) -> None:
        """Move the cursor to a row, if it is there."""
        if key in self.cells:
            self.move_cursor(row=self.get_row_index(key))

    def show(self, rows: Mapping[str, Sequence[Cell]]) -> None:
        """Make the table hold these rows in this order."""
        before = self.selected
        for key in [key for key in self.cells if key not in rows]:
            self.remove_row(key)
            del self.cells[key]
        for key, cells in rows.items():
            cells = tuple(cells)
            old = self.cells.get(key)
            if old is None:
                self.add_row(*cells, key=key)
            elif old != cells:
                for title, was, now in zip(self.titles, old, cells, strict=True):
                    if was != now:
                        self.update_cell(key, title, now, update_width=True)
            self.cells[key] = cells
        order = {str(cells[0]): index for index, cells in enumerate(rows.values())}
        if list(self.cells) != list(rows):
            self.sort(self.titles[0], key=lambda cell: order[str(cell)])
            self.cells = {key: tuple(cells) for key, cells in rows.items()}
            if before is not None and before in rows:
                self.move_cursor(row=self.get_row_index(before))
