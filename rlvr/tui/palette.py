"""The colour numbers of a picture as colours of the theme of the moment."""

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip

from rlvr.braille import AXIS, CURSOR, FIRST_COLOR, GUIDE, TEXT, Cells
from rlvr.tui.contrast import readable
from rlvr.tui.figure import HEX, HUES_DARK, HUES_LIGHT, KIND_NAMES, KINDS, TITLE


def plain_colors(variables: Mapping[str, str], dark: bool) -> tuple[Color, Color]:
    """Background and foreground of a theme; black and white for one that leaves them to the terminal."""
    background, foreground = Color.parse(variables["background"]), Color.parse(variables["foreground"])
    if background.ansi is not None or foreground.ansi is not None:
        return (Color(0, 0, 0), Color(255, 255, 255)) if dark else (Color(255, 255, 255), Color(0, 0, 0))
    return background, foreground


def kind_color(name: str, background: Color) -> str:
    """The colour of an outcome as text."""
    return readable(Color.parse(HEX.get(name, "#888888")), background).hex


class Palette:
    """Colour numbers -> styles, in the theme of the moment."""

    def __init__(self, background: Color, foreground: Color, dark: bool):
        def faded(color: Color, share: float) -> str:
            return background.blend(color, share).hex

        self._styles: dict[tuple[int, int], Style] = {}
        self._colors: dict[int, str] = {
            AXIS: readable(Color.parse(faded(foreground, 0.6)), background).hex,
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
        self._text = {KINDS + index: kind_color(name, background) for index, name in enumerate(KIND_NAMES)}
        self._text |= {
            color: readable(Color.parse(self._colors[color]), background).hex for color in range(FIRST_COLOR, KINDS, 2)
        }
        self._background = background.hex

    def style(self, color: int, background: int, *, text: bool = False) -> Style:
        """The style of a run of cells; `text` makes colours readable."""
        key = (color if not text else -color, background)
        if key not in self._styles:
            name = self._colors.get(color, self._colors[TEXT])
            if text:
                name = self._text.get(color, name)
            on = self._colors[background] if background else self._background
            self._styles[key] = Style(color=name, bgcolor=on, bold=color == TITLE)
        return self._styles[key]

    def strips(self, cells: Cells, title: int) -> list[Strip]:
        """The picture as lines; the first `title` of them are text."""
        return [
            Strip(
                [Segment(text, self.style(*colors, text=row < title)) for text, *colors in cells.runs(row)],
                cells.width,
            )
            for row in range(cells.height)
        ]
