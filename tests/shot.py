"""Pictures of a terminal program, made in a real terminal: for looking at them, not for comparing.

    python tests/shot.py --tree /tmp/t --size 120x35 --keys "x" --out /tmp/viz.png -- rlvrviz.py demo/003

Starts the program in a tmux session of its own, with a made-up training tree as its folder, types the keys, waits till
the screen holds what is given, and writes OUT.ansi and OUT.png. Needs tmux, and pyte and Pillow, which the project
itself does not. `--all` makes the picture in the three sizes that are tested, dark and light.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZES = ("80x24", "120x35", "200x60")
FONTS = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
    "/usr/share/fonts/dejavu-sans-mono-fonts/DejaVuSansMono.ttf",
)
CELL = 9, 18


class Terminal:
    """A program in a tmux session of its own, on a server of its own."""

    def __init__(self, command: list[str], folder: Path, columns: int, rows: int, env: dict[str, str] | None = None):
        self.socket = f"shot-{os.getpid()}-{time.monotonic_ns()}"
        settings = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **(env or {})}
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
        line = f"env -u NO_COLOR -u TEXTUAL_THEME -u COLUMNS -u LINES {words} {shlex.join(command)}"
        # A shell stays behind, so that what the program leaves of the terminal can be seen.
        shell = f'{line}; echo "ended with $?"; exec sh'
        self.tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder), shell
        )

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-L", self.socket, *arguments]  # UTF-8 whatever the locale
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        return done.stdout

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def ansi(self) -> str:
        return self.tmux("capture-pane", "-e", "-p", "-N")

    def keys(self, *keys: str) -> None:
        """Type keys by tmux's names: `Enter`, `Escape`, `C-p`, `x`."""
        for key in keys:
            self.tmux("send-keys", key)
            time.sleep(0.05)

    def wait(self, word: str, timeout_s: float = 120.0) -> str:
        """Wait until the screen holds the word; returns the screen.

        Raises:
            TimeoutError: with the screen as it is, when it never does.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            text = self.text()
            if word in text:
                return text
            time.sleep(0.05)
        raise TimeoutError(f"{word!r} never appeared:\n{self.text()}")

    def wait_for(self, pattern: str, timeout_s: float = 120.0) -> None:
        """Wait until a regular expression is found in the screen.

        Raises:
            TimeoutError: with the screen as it is, when it never is.
        """
        end = time.monotonic() + timeout_s
        while not re.search(pattern, self.text()):
            if time.monotonic() > end:
                raise TimeoutError(f"{pattern!r} never appeared:\n{self.text()}")
            time.sleep(0.05)

    def press(self, key: str, timeout_s: float = 5.0) -> None:
        """Type a key, and wait until something on the screen is another; there are keys that change nothing."""
        before, end = self.ansi(), time.monotonic() + timeout_s
        self.keys(key)
        while self.ansi() == before and time.monotonic() < end:
            time.sleep(0.05)

    def settle(self) -> None:
        """Wait until nothing changes for a while; a clock on the screen is not waited for."""
        before, same = "", 0
        for _ in range(60):
            time.sleep(0.2)
            text = self.ansi()
            same = same + 1 if text == before else 0
            if same == 5:
                return
            before = text

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)


def draw(ansi: str, columns: int, rows: int, png: Path) -> None:
    """Draw a captured screen cell by cell; braille and blocks as shapes, whatever the font has."""
    import pyte
    from PIL import Image, ImageDraw, ImageFont

    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(ansi.rstrip("\n").replace("\n", "\r\n"))
    font_file = next((file for file in FONTS if Path(file).exists()), None)
    font = ImageFont.truetype(font_file, 14) if font_file else ImageFont.load_default()
    width, height = CELL
    image = Image.new("RGB", (columns * width, rows * height), "#121212")
    pen = ImageDraw.Draw(image)

    def color(name: str, default: str) -> str:
        if name == "default":
            return default
        return f"#{name}" if len(name) == 6 and all(digit in "0123456789abcdef" for digit in name) else name

    for y in range(rows):
        for x in range(columns):
            cell = screen.buffer[y][x]
            front, back = color(cell.fg, "#e0e0e0"), color(cell.bg, "#121212")
            if cell.reverse:
                front, back = back, front
            left, top = x * width, y * height
            pen.rectangle([left, top, left + width - 1, top + height - 1], fill=back)
            code = ord(cell.data[0]) if cell.data else 32
            if 0x2800 <= code <= 0x28FF:
                places = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
                for bit, (dx, dy) in enumerate(places):
                    if code - 0x2800 >> bit & 1:
                        middle_x, middle_y = left + (dx + 0.5) * width / 2, top + (dy + 0.5) * height / 4
                        pen.ellipse([middle_x - 1.5, middle_y - 1.5, middle_x + 1.5, middle_y + 1.5], fill=front)
            elif 0x2581 <= code <= 0x2588:
                size = height * (code - 0x2580) / 8
                pen.rectangle([left, top + height - size, left + width - 1, top + height - 1], fill=front)
            elif cell.data.strip():
                pen.text((left, top), cell.data, font=font, fill=front)
    image.save(png)


def shoot(
    command: list[str],
    folder: Path,
    size: str,
    keys: list[str],
    wait: str,
    out: Path,
    env: dict[str, str] | None = None,
    then: str = "",
) -> str:
    """Make one picture; returns the text of the screen. `wait` and `then` are regular expressions."""
    columns, rows = map(int, size.split("x"))
    terminal = Terminal(command, folder, columns, rows, env)
    try:
        terminal.wait_for(wait)
        terminal.settle()
        for key in keys:
            terminal.press(key)
        terminal.wait_for(then)
        terminal.settle()
        ansi = terminal.ansi()
        out.with_suffix(".ansi").write_text(ansi, encoding="utf-8")
        draw(ansi, columns, rows, out)
        return terminal.text()
    finally:
        terminal.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Pictures of a terminal program.")
    parser.add_argument("program", help="rlvrviz.py or rlvrtui.py, then its arguments")
    parser.add_argument("arguments", nargs="*", help="after --")
    parser.add_argument(
        "--tree", type=Path, required=True, help="folder with training/ in it; made when it is not there"
    )
    parser.add_argument("--size", default="120x35")
    parser.add_argument("--all", action="store_true", help="the three sizes, dark and light")
    parser.add_argument("--keys", default="", help="tmux's names of keys, parted by blanks")
    parser.add_argument("--wait", default="reward", help="a regular expression that tells that it is up")
    parser.add_argument("--then", default="", help="a regular expression to wait for after the keys")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if not shutil.which("tmux"):
        print("error: tmux is missing: install it", file=sys.stderr)
        return 2
    if not (args.tree / "training").exists():
        from training_tree import make_training_tree

        make_training_tree(args.tree, num_steps=300)
    command = [sys.executable, str(ROOT / args.program), *args.arguments]
    env = dict(pair.split("=", 1) for pair in args.env)
    sizes = SIZES if args.all else (args.size,)
    for size in sizes:
        for theme in ("textual-dark", "textual-light") if args.all else (None,):
            name = f"{args.out.stem}-{size}-{theme}.png" if args.all else args.out.name
            more = {"TEXTUAL_THEME": theme} if theme else {}
            shoot(
                command,
                args.tree,
                size,
                args.keys.split(),
                args.wait,
                args.out.with_name(name),
                {**env, **more},
                args.then,
            )
            print(args.out.with_name(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
