"""A line about the GPUs of this machine: how busy, how full, how hot. It is not there where there is no nvidia-smi."""

import asyncio
import shutil
import subprocess

from textual import work
from textual.widgets import Static

LOOK_S = 2.0
TIMEOUT_S = 5.0
"""nvidia-smi takes seconds where no driver is kept loaded; one that hangs is not waited for."""

QUERY = "--query-gpu=utilization.gpu,memory.used,memory.total,temperature.gpu"


class GpuLine(Static):
    """The line; it looks again while its screen is up."""

    DEFAULT_CSS = "GpuLine { height: 1; padding: 0 1; color: $text-muted; display: none; }"

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def on_mount(self) -> None:
        if shutil.which("nvidia-smi"):
            self.keep_looking()

    @work
    async def keep_looking(self) -> None:
        while True:
            if self.screen.is_current:
                text = await asyncio.to_thread(look)
                self.update(text)
                self.display = bool(text)
            await asyncio.sleep(LOOK_S)


def look() -> str:
    """What the line says; "" when nvidia-smi has nothing to say."""
    command = ["nvidia-smi", QUERY, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return gpu_text(done.stdout.decode(errors="replace")) if done.returncode == 0 else ""


def gpu_text(output: str) -> str:
    """What nvidia-smi prints, a line a GPU, in words; numbers it does not know, and lines cut short, are left out.

    >>> gpu_text("87, 41234, 143771, 64\\n")
    'GPU 87 %, 40.3 of 140.4 GiB, 64 °C'
    >>> gpu_text("87, 41234, 143771, 64\\n[N/A], 1024, 24576, [N/A]\\n50, 10")
    'GPU 0 87 %, 40.3 of 140.4 GiB, 64 °C   GPU 1 1.0 of 24.0 GiB'
    """
    found = [known for line in output.splitlines() if (known := numbers(line)) is not None]
    parts = []
    for index, (busy, used, total, celsius) in enumerate(found):
        words = [f"{busy:.0f} %"] if busy is not None else []
        if used is not None and total is not None:
            words.append(f"{used / 1024:.1f} of {total / 1024:.1f} GiB")
        words += [f"{celsius:.0f} °C"] if celsius is not None else []
        if words:
            parts.append(f"GPU {index} {', '.join(words)}" if len(found) > 1 else f"GPU {', '.join(words)}")
    return "   ".join(parts)


def numbers(line: str) -> list[float | None] | None:
    """The four numbers of a line, None for what is no number; None for a line that does not hold four."""
    cells = [cell.strip() for cell in line.split(",")]
    return [float(cell) if cell.isdecimal() else None for cell in cells] if len(cells) == 4 else None
