"""A table whose rows are changed in place by key, so that cursor and scroll position stay where they are.

`table.show({"003": (Text("003"), "running"), ...})` adds, removes and changes only what differs. What is too wide for
the screen gives way: `KeyedTable("Run", "When", "Label", drop=("When",), elastic=("Label",))`.
"""

from collections.abc import Collection, Mapping, Sequence

from rich.text import Text
from textual.binding import Binding
from textual.widgets import DataTable

Cell = Text | str

PADDING = 2
"""Blanks of a column beside its text."""


class KeyedTable(DataTable[Cell], inherit_bindings=False):
    """Rows by key, in the order they are given; the first column of a row says its key or is unique too.

    Enter is left to the screen, whose word for it stands in the footer.

    Args:
        columns: the titles, which are the keys of the columns too.
        drop: titles of columns that are left out where there is no room, in that order.
        elastic: titles of columns that are cut off with "…" before; all but the first, unless said otherwise.
        least: characters that those keep.
    """

    BINDINGS = [  # noqa: RUF012
        *(each for each in DataTable.BINDINGS if isinstance(each, Binding) and each.key != "enter"),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "scroll_top", "Top", show=False),
        Binding("G", "scroll_bottom", "Bottom", show=False),
    ]

    def __init__(
        self,
        *columns: str,
        id: str | None = None,
        classes: str | None = None,
        drop: Sequence[str] = (),
        elastic: Sequence[str] = (),
        least: int = 12,
    ):
        super().__init__(id=id, classes=classes, cursor_type="row", zebra_stripes=False)
        self.titles = columns
        self.drop, self.elastic, self.least = drop, elastic, least
        self.cells: dict[str, tuple[Cell, ...]] = {}
        self.shown: list[str] = []
        """The titles of the columns there is room for."""
        self.awaited: str | None = None
        """The row that the cursor goes to as soon as it is there."""
        self.set_columns(columns)

    def retitle(self, *columns: str) -> None:
        """Have other columns; the rows go."""
        if columns != self.titles:
            self.clear(columns=True)
            self.cells = {}
            self.titles, self.shown = columns, []
            self.set_columns(columns)

    def set_columns(self, wanted: Sequence[str]) -> None:
        """Have these columns, in this order; rows and cursor stay."""
        same = 0
        while same < min(len(wanted), len(self.shown)) and wanted[same] == self.shown[same]:
            same += 1
        for title in self.shown[same:]:
            self.remove_column(title)
        for title in wanted[same:]:
            self.add_column(one_line(title), key=title, default="")
            index = self.titles.index(title)
            for key, cells in self.cells.items():
                self.update_cell(key, title, one_line(cells[index]))
        self.shown = list(wanted)

    def on_resize(self) -> None:
        self.fit()

    def watch_show_vertical_scrollbar(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Give every column its width, and leave out those there is no room for."""
        room = self.scrollable_content_region.width
        if not room:
            return
        natural = {
            title: min(max((one_line(each).cell_len for each in (title, *column)), default=0), room)
            for title, column in zip(self.titles, self.columns_of_cells(), strict=True)
        }
        widths = fitting(natural, room, self.drop, self.elastic or self.titles[1:], self.least)
        if list(widths) != self.shown:
            self.set_columns(list(widths))
        columns = {key.value: column for key, column in self.columns.items()}
        if any(columns[title].auto_width or columns[title].width != width for title, width in widths.items()):
            for title, width in widths.items():
                columns[title].auto_width, columns[title].width = False, width
            self._clear_caches()  # what was drawn with the old widths would stay cut off
            self._require_update_dimensions = True
            self.check_idle()
            self.refresh()

    def columns_of_cells(self) -> Sequence[Sequence[Cell]]:
        return list(zip(*self.cells.values(), strict=True)) or [()] * len(self.titles)

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

    def select_when_there(self, key: str) -> None:
        """Move the cursor to a row that may still have to come."""
        self.awaited = key
        self.select_awaited()

    def select_awaited(self) -> None:
        if self.awaited in self.cells:
            self.move_cursor(row=self.get_row_index(self.awaited))
            self.awaited = None

    def show(self, rows: Mapping[str, Sequence[Cell]]) -> None:
        """Make the table hold these rows in this order."""
        before = self.selected
        wanted = {key: tuple(cells) for key, cells in rows.items()}
        if wanted == self.cells and list(wanted) == list(self.cells):
            return
        places = [(title, self.titles.index(title)) for title in self.shown]
        for key in [key for key in self.cells if key not in wanted]:
            self.remove_row(key)
            del self.cells[key]
        for key, cells in wanted.items():
            old = self.cells.get(key)
            if old is None:
                self.add_row(*(one_line(cells[index]) for _, index in places), key=key)
            elif old != cells:
                for title, index in places:
                    if old[index] != cells[index]:
                        self.update_cell(key, title, one_line(cells[index]))
            self.cells[key] = cells
        if list(self.cells) != list(wanted):
            order = {str(cells[0]): index for index, cells in enumerate(wanted.values())}
            self.sort(self.titles[0], key=lambda cell: order[str(cell)])
            self.cells = wanted
            if before is not None and before in wanted:
                self.move_cursor(row=self.get_row_index(before))
        self.select_awaited()
        self.fit()


def one_line(cell: Cell) -> Text:
    """A cell as it is drawn: what is too long ends with "…", and brackets are no markup."""
    text = Text(cell) if isinstance(cell, str) else cell
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def fitting(
    natural: Mapping[str, int], room: int, drop: Sequence[str], elastic: Collection[str], least: int
) -> dict[str, int]:
    """Column -> width, of those columns that fit into the room: elastic ones are squeezed, then others left out.

    >>> fitting({"Run": 4, "When": 12, "Label": 30}, 40, ["When"], ["Label"], 12)
    {'Run': 4, 'When': 12, 'Label': 18}
    >>> fitting({"Run": 4, "When": 12, "Label": 30}, 30, ["When"], ["Label"], 12)
    {'Run': 4, 'Label': 22}
    """
    widths = dict(natural)
    lowest = {title: min(width, least) if title in elastic else width for title, width in natural.items()}
    for title in drop:
        if sum(lowest[each] + PADDING for each in widths) <= room:
            break
        del widths[title]
    while sum(widths.values()) + PADDING * len(widths) > room:
        squeezed = [title for title in widths if widths[title] > lowest[title]]
        if not squeezed:
            break
        widths[max(squeezed, key=lambda title: widths[title])] -= 1
    return widths
