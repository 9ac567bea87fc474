"""The rented Colab VMs: what each costs money for, the balance, and giving one back."""

from collections.abc import Iterable
from typing import NamedTuple

from textual import work
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from rlvr.colab import client, vms
from rlvr.tui.page import Page
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import page_bindings

HOW_TO_RENT = "rlvrctl.py train --on-colab rents one for a cycle, rlvrctl.py colab up one for several."


class ColabPage(Page):
    """Every VM of the account, read when the screen comes up and at F5: each look takes the client some seconds."""

    key = "colab"
    BINDINGS = page_bindings("give_back")

    def __init__(self) -> None:
        super().__init__()
        self.found = Found("", [])

    def body(self) -> Iterable[Widget]:
        yield Static("", id="counts", markup=False)
        with Vertical(id="list", classes="pane") as pane:
            pane.border_title = "VMs that cost money"
            yield KeyedTable("Endpoint", "Session", "GPU", "What for", id="vms")

    def load(self) -> None:
        self.query_one("#counts", Static).update("asking Colab ...")
        self.read(read_vms, self.show, self.refuse)

    def refuse(self, error: Exception) -> None:
        self.query_one("#counts", Static).update(str(error))

    def show(self, found: "Found") -> None:
        self.found = found
        self.query_one("#counts", Static).update(found.account)
        self.table.show({vm.endpoint: (vm.endpoint, vm.name, vm.gpu, vm.what) for vm in found.vms})
        self.query_one("#list").border_subtitle = f"{len(found.vms)} rented"

    @property
    def chosen(self) -> "Vm | None":
        return next((vm for vm in self.found.vms if vm.endpoint == self.table.selected), None)

    @work
    async def action_give_back(self) -> None:
        from rlvr.tui.dialogs import Confirm

        vm = self.chosen
        if vm is None:
            return
        text = f"What for: {vm.what}.\n\nWhat was not fetched from it is lost."
        if await self.app.push_screen_wait(
            Confirm(f"Give {vm.endpoint} back", text, [("stop", "Give it back", "error")])
        ):
            self.board.perform(lambda: give_back(vm), self.say)

    def copied(self) -> str:
        return self.table.selected or ""


class Vm(NamedTuple):
    """A VM, and what it is there for in words."""

    endpoint: str
    name: str
    gpu: str
    what: str


class Found(NamedTuple):
    """The account in words, and its VMs."""

    account: str
    vms: list[Vm]


def read_vms() -> Found:
    """Ask Colab for the account and its VMs.

    Raises:
        RlvrError: without a client, a login or a network.
    """
    sessions, usage, users = client.sessions(), client.usage(), vms.users_of_vms()
    account = f"{usage.balance:g} compute units left, {usage.per_hour:g} an hour now."
    if usage.per_hour:
        account += f" They last {usage.balance / usage.per_hour:.1f} h."
    found = [
        Vm(
            each.endpoint,
            each.name,
            each.hardware,
            vms.user_of(each, users).what or "nothing of this folder runs on it",
        )
        for each in sessions
    ]
    return Found(account if found else f"{account}\nNo VM is rented. {HOW_TO_RENT}", found)


def give_back(vm: Vm) -> str:
    """Give a VM back that no run uses.

    Raises:
        RlvrError: when one does, or Colab still lists it.
    """
    session = client.Session(vm.name, vm.endpoint, vm.gpu)
    vms.refuse_used(session)
    return f"{vm.endpoint} {vms.give_back(session)}"
