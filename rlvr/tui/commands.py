"""The runs in the command palette of the viewer."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from rlvr.tui.choose import runs_to_show

if TYPE_CHECKING:
    from rlvr.tui.viz import VizApp


class RunCommands(Provider):
    """`Open run NAME` for every run; the folders are looked through in a thread, once for each palette."""

    async def startup(self) -> None:
        self.runs = [run for run, _ in await asyncio.to_thread(runs_to_show)]

    async def discover(self) -> Hits:
        for run in self.runs:
            words = f"Open run {run}"
            yield DiscoveryHit(
                words, partial(cast("VizApp", self.app).open_runs, [run]), help=f"show this {run.kind} run"
            )

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for run in self.runs:
            words = f"Open run {run}"
            if (score := matcher.match(words)) > 0:
                open_it = partial(cast("VizApp", self.app).open_runs, [run])
                yield Hit(score, matcher.highlight(words), open_it, help=f"show this {run.kind} run")
