"""The corpus that tasks are drawn from: how many sequences, why others are left out, each one as a task."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from textual import on, work
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static

from rlvr import cycles, layers
from rlvr.config import TrainConfig
from rlvr.corpus import HOW_TO_GET, Entry, open_corpus
from rlvr.tui.filtered import FilteredPage, holds
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import page_bindings
from rlvr.tui.words import shorten

MOST = 500
"""Sequences that are listed; counts and filter are of all."""


class CorpusPage(FilteredPage):
    """The sequences that the next cycle of the chosen model would draw from."""

    key = "corpus"
    BINDINGS = page_bindings("filter")

    def __init__(self) -> None:
        super().__init__()
        self.found: Found | None = None

    def body(self) -> Iterable[Widget]:
        yield Static("", id="counts", markup=False)
        with Horizontal(id="split"):
            with Vertical(id="list", classes="pane"):
                yield Input(placeholder="A-number or words of the name", id="filter", classes="hidden", compact=True)
                yield KeyedTable("A-number", "Terms", "Name", id="entries")
            with VerticalScroll(id="detail", classes="pane"):
                yield Static("", id="task", markup=False)

    def load(self) -> None:
        self.found = None
        self.query_one("#counts", Static).update("reading the corpus ...")
        model = self.board.model
        self.read(lambda: read_corpus(model), self.show, self.refuse)

    def refuse(self, error: Exception) -> None:
        self.query_one("#counts", Static).update(str(error))

    def show(self, found: "Found") -> None:
        self.found = found
        self.query_one("#counts", Static).update(found.counts)
        self.query_one("#list").border_title = "Train split, in the order of the seed"
        self.show_entries()

    @on(Input.Changed, "#filter")
    @work(exclusive=True, group="filter")
    async def show_entries(self) -> None:
        """List the first of those that the filter lets through; of a whole corpus that takes a moment."""
        if self.found is None:
            return
        every, words = self.found.entries, self.filter_words
        found = await asyncio.to_thread(
            lambda: [entry for entry in every.values() if holds(f"{entry.anum} {entry.name}", words)]
        )
        self.table.show(
            {entry.anum: (entry.anum, str(len(entry.terms)), shorten(entry.name, 200)) for entry in found[:MOST]}
        )
        count = f"{len(found):,} of {len(every):,}" if words else f"{len(found):,}"
        self.query_one("#list").border_subtitle = f"the first {MOST} of {count}" if len(found) > MOST else count
        self.preview()

    @on(DataTable.RowHighlighted, "#entries")
    def preview(self) -> None:
        """The selected sequence as a task."""
        entry = self.found.entries.get(self.table.selected or "") if self.found else None
        self.query_one("#detail").border_title = entry.anum if entry else ""
        self.query_one("#task", Static).update(self.task_text(entry, self.found) if entry and self.found else "")

    def task_text(self, entry: Entry, found: "Found") -> str:
        shown = entry.terms[: found.n_show]
        hidden = entry.terms[found.n_show :][: found.max_eval_terms]
        lines = [entry.name, "", f"offset {entry.offset}, keywords {' '.join(sorted(entry.keywords))}", ""]
        lines += [f"shown in the prompt ({len(shown)}):", "  " + ", ".join(shorten(str(term)) for term in shown), ""]
        lines += [f"hidden, for scoring ({len(hidden)}):", "  " + ", ".join(shorten(str(term)) for term in hidden)]
        return "\n".join(lines)

    def copied(self) -> str:
        entry = self.found.entries.get(self.table.selected or "") if self.found else None
        return f"{entry.anum} {', '.join(map(str, entry.terms))}" if entry else ""


class Found(NamedTuple):
    """What stands in the corpus: counts in words, the sequences by A-number, how a task divides their terms."""

    counts: str
    entries: dict[str, Entry]
    n_show: int
    max_eval_terms: int


def read_corpus(model: str) -> Found:
    """Select what a cycle of the model would be trained on.

    Raises:
        RlvrError: when there is no corpus, or a keyword that no sequence has.
    """
    config, _ = layers.resolve_for(cycles.model_dir(model), TrainConfig)
    notices: list[str] = []
    corpus = open_corpus(config.corpus_dir or None, notice=notices.append, progress=False)
    selection = corpus.select(
        require=config.require_keywords,
        exclude=config.exclude_keywords,
        min_terms=config.min_terms,
        split="train",
        limit=config.limit,
        seed=config.seed,
    )
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in selection.dropped.items())
    counts = f"{corpus.path}: {selection.num_total:,} sequences, {len(selection.entries):,} chosen for training."
    counts = "\n".join([counts, f"Left out: {left_out}.", *notices])
    if corpus.is_sample and not notices:
        counts += f"\n`{HOW_TO_GET}` gets the full corpus."
    return Found(counts, {entry.anum: entry for entry in selection.entries}, config.n_show, config.max_eval_terms)
