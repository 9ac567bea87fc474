"""The line of keys at the bottom: what works where one is, as much as fits, help and quit always."""

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.color import Color
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from rlvr.tui.contrast import readable

FIRST = ("help", "close", "quit")
"""Actions that are shown however narrow the screen is."""


class KeyBar(Widget):
    """A footer that leaves out what does not fit instead of cutting it off; a click on a key presses it."""

    DEFAULT_CSS = """
    KeyBar { dock: bottom; height: 1; background: $footer-background; color: $footer-foreground; }
    """
    can_focus = False

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda screen: self.refresh())

    def entries(self) -> list[tuple[str, str, str, bool]]:
        """(key to press, key as shown, word, enabled) of what works now, the most important first.

        Those of FIRST, those of the screen and the application, those of the widget that has the focus.
        """
        found: dict[str, tuple[int, tuple[str, str, str, bool]]] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.show and binding.description and binding.action not in found:
                key = self.app.get_key_display(binding)
                rank = 0 if binding.action in FIRST else 1 if isinstance(active.node, Screen | App) else 2
                found[binding.action] = rank, (binding.key, key, binding.description, active.enabled)
        return [entry for _, entry in sorted(found.values(), key=lambda each: each[0])]

    def fitting(self) -> list[tuple[int, str, str, str, bool]]:
        """The entries that fit, each with the column where it begins."""
        column, result = 1, []
        for press, key, word, enabled in self.entries():
            size = len(key) + 1 + len(word)
            if column + size > self.size.width:
                break
            result.append((column, press, key, word, enabled))
            column += size + 2
        return result

    def render_line(self, y: int) -> Strip:
        accent, foreground = self._color("footer-key-foreground"), self._color("footer-description-foreground")
        background = Color.parse(self.app.theme_variables["footer-background"]).rich_color
        plain = Style(color=foreground, bgcolor=background)
        strong = Style(color=accent, bgcolor=background, bold=True)
        faint = Style(color=foreground, bgcolor=background, dim=True)
        segments, at = [], 0
        for column, _, key, word, enabled in self.fitting():
            segments.append(Segment(" " * (column - at), plain))
            segments += [Segment(key, strong if enabled else faint), Segment(f" {word}", plain if enabled else faint)]
            at = column + len(key) + 1 + len(word)
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def _color(self, name: str) -> RichColor:
        """A colour of the theme, so that it can be read here; one that the terminal chooses is left to it."""
        color, background = (Color.parse(self.app.theme_variables[each]) for each in (name, "footer-background"))
        known = color.ansi is None and background.ansi is None
        return (readable(color, background) if known else color).rich_color

    async def on_click(self, event: events.Click) -> None:
        for column, press, key, word, enabled in self.fitting():
            if enabled and column <= event.x < column + len(key) + 1 + len(word):
                self.app.simulate_key(press)
