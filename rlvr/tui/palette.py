"""The colour numbers of a picture as colours of the theme of the moment."""

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip

from rlvr.braille import AXIS, CURSOR, FIRST_COLOR, GUIDE, TEXT, Cells
from rlvr.tui.figure import HEX, KIND_NAMES, KINDS, TITLE

HUES_DARK = ("#58a6ff", "#56d364", "#e3b341", "#ff7b72", "#bc8cff", "#ffa657", "#39c5cf", "#f778ba")
HUES_LIGHT = ("#0969da", "#1a7f37", "#9a6700", "#cf222e", "#8250df", "#bc4c00", "#1b7c83", "#bf3989")


def kind_color(name: str, dark: bool) -> str:
    """The colour of an outcome as text: readable on a light background too."""
    color = Color.parse(HEX.get(name, "#888888"))
    return color.hex if dark else color.darken(0.25).hex


class Palette:
    """Colour numbers -> styles, in the theme of the moment."""

    def __init__(self, background: Color, foreground: Color, dark: bool):
        def faded(color: Color, share: float) -> str:
            return background.blend(color, share).hex

        self._styles: dict[tuple[int, int], Style] = {}
        self._colors: dict[int, str] = {
            AXIS: faded(foreground, 0.6),
            TEXT: foreground.hex,
            GUIDE: faded(foreground, 0.16),
            CURSOR: foreground.hex,
            TITLE: foreground.hex,
        }
        for hue, text in enumerate(HUES_DARK if dark else HUES_LIGHT):
            color = Color.parse(text)
            self._colors[FIRST_COLOR + 2 * hue] = text
            self._colors[FIRST_COLOR + 2 * hue + 1] = faded(color, 0.42)
        for index, name in enumerate(KIND_NAMES):
            self._colors[KINDS + index] = HEX[name]
        self._text = {KINDS + index: kind_color(name, dark) for index, name in enumerate(KIND_NAMES)}
        self._background = background.hex

    def style(self, color: int, background: int, *, text: bool = False) -> Style:
        """The style of a run of cells; `text` makes outcome colours readable on a light background."""
        key = (color if not text else -color, background)
        if key not in self._styles:
            name = self._colors.get(color, self._colors[TEXT])
            if text:
                name = self._text.get(color, name)
            on = self._colors[background] if background else self._background
            self._styles[key] = Style(color=name, bgcolor=on, bold=color == TITLE)
        return self._styles[key]

    def strips(self, cells: Cells) -> list[Strip]:
        return [
            Strip(
                [Segment(text, self.style(*colors, text=row == 0)) for text, *colors in cells.runs(row)], cells.width
            )
            for row in range(cells.height)
        ]
