"""Text that can be read on its background, in any theme."""

from textual.color import Color

LEAST_CONTRAST = 4.5
"""Between a text and what is behind it, as WCAG counts it."""


def luminance(color: Color) -> float:
    """As WCAG defines it: 0 black, 1 white."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Color, other: Color) -> float:
    """From 1, the same, to 21, black on white."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(color: Color, background: Color) -> Color:
    """The colour itself, or so much nearer to black or white that it can be read on this background."""
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    far = max(black, white, key=lambda end: contrast(end, background))
    for share in range(0, 100, 5):
        nearer = color.blend(far, share / 100)
        if contrast(nearer, background) >= LEAST_CONTRAST:
            return nearer
    return far
