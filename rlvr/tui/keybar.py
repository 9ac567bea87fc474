"""The line of keys at the bottom: what works where one is, as much as fits, help and quit always."""

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

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
        """(key to press, key as shown, word, enabled) of what works now, the most important first."""
        found: dict[str, tuple[str, str, str, bool]] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.show and binding.description and binding.action not in found:
                key = self.app.get_key_display(binding)
                found[binding.action] = (binding.key, key, binding.description, active.enabled)
        return [
            *(entry for action, entry in found.items() if action in FIRST),
            *(entry for action, entry in found.items() if action not in FIRST),
        ]

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
        background, foreground = self.rich_style.bgcolor, self.rich_style.color
        accent = Color.parse(self.app.theme_variables["footer-key-foreground"])
        plain = Style(color=foreground, bgcolor=background)
        strong = Style(color=accent.rich_color, bgcolor=background, bold=True)
        faint = Style(color=foreground, bgcolor=background, dim=True)
        segments, at = [], 0
        for column, _, key, word, enabled in self.fitting():
            segments.append(Segment(" " * (column - at), plain))
            segments += [Segment(key, strong if enabled else faint), Segment(f" {word}", plain if enabled else faint)]
            at = column + len(key) + 1 + len(word)
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    async def on_click(self, event: events.Click) -> None:
        for column, press, key, word, enabled in self.fitting():
            if enabled and column <= event.x < column + len(key) + 1 + len(word):
                self.app.simulate_key(press)
