"""What rented VMs cost, as far as it is known: Colab tells a balance, and a rate only while a VM is up.

The rate of each kind of GPU is remembered in `training/.colab-rates.json`; how long a cycle takes is known by the
steps of an earlier one on such a GPU.
"""

import contextlib
import time
from collections.abc import Sequence

import msgspec

from rlvr import cycles, records
from rlvr.budget import cycle_time
from rlvr.colab import client
from rlvr.config import TrainConfig
from rlvr.errors import RlvrError
from rlvr.listing import duration_text
from rlvr.records import ColabSession, Launch, Step


def check_account(gpu: str, auth: str = "") -> client.Usage:
    """Ask for the balance before anything is made, and say what is left.

    Raises:
        RlvrError: without a client, a login, a network, or compute units.
    """
    client.check_gpu(gpu)
    usage = client.usage(auth)
    if usage.balance <= 0 and gpu != "T4":
        raise RlvrError(
            f"no compute units left for one {gpu} (balance {usage.balance:g}): `colab pay` buys some; "
            "a T4 may be had without"
        )
    return usage


def cost_text(gpu: str, usage: client.Usage) -> str:
    """What an hour costs, as far as it is known: Colab tells the rate only while a VM is up, so it is remembered."""
    rate, one = known_rates().get(gpu), client.one(gpu)
    if not rate:
        return f"The rate of {one} is told, and remembered, once the first one is up: rlvrctl.py colab ps."
    left = f"what is left lasts {usage.balance / rate:.1f} h" if usage.balance > 0 else "nothing is left for it"
    return f"{one[0].upper()}{one[1:]} took {rate:g} an hour last time: {left}."


def cycle_cost(gpu: str, config: TrainConfig, steps: Sequence[Step], balance: float = float("inf")) -> str:
    """What a cycle takes of the compute units, as far as it is known, by the steps of one on such a GPU."""
    if not steps:
        return f"not known: no earlier cycle of this model ran on {client.one(gpu)}"
    seconds = cycle_time(config, steps).total_s
    rate = known_rates().get(gpu)
    if not rate:
        return f"{duration_text(seconds)} of training, at a rate that is not known"
    units = rate * seconds / 3600
    text = f"about {units:.1f} compute units" if units >= 0.1 else "less than 0.1 compute units"
    more = f", more than the {balance:g} that are left" if units > balance else ""
    return f"{text} for {duration_text(seconds)} of training{more}, and what the VM takes to get ready"


def steps_on(model: str, gpu: str) -> list[Step]:
    """The steps of the model's last cycle that ran on such a GPU of Colab."""
    steps: list[Step] = []
    for run in cycles.cycle_runs(model):
        with contextlib.suppress(RlvrError):  # one without a launch.json
            if records.read(run.files.launch, Launch).colab.get("gpu") == gpu and run.files.metrics.exists():
                steps = list(records.read_lines(run.files.metrics, Step)) or steps
    return steps


def known_rates() -> dict[str, float]:
    try:
        return msgspec.json.decode(cycles.COLAB_RATES_FILE.read_bytes(), type=dict[str, float])
    except (OSError, msgspec.MsgspecError):
        return {}


def remember_rate(gpu: str, before: client.Usage, after: client.Usage) -> float:
    """Remember what an hour of a VM takes that was rented between the two; 0 where that cannot be told."""
    rate = round(after.per_hour - before.per_hour, 2)
    if rate <= 0 or after.assignments != before.assignments + 1:  # another one came or went at the same time
        return known_rates().get(gpu, 0.0)
    cycles.COLAB_RATES_FILE.write_bytes(msgspec.json.encode({**known_rates(), gpu: rate}))
    return rate


def rate_text(rate: float, usage: client.Usage) -> str:
    """What an hour of a VM takes from now on, and of all that are up where it is not the only one."""
    if rate and abs(rate - usage.per_hour) >= 0.01:
        return f"{rate:g} compute units an hour, {usage.per_hour:g} for all {usage.assignments} VMs of the account,"
    return f"{usage.per_hour:g} compute units an hour"


def cost_of(session: ColabSession) -> str:
    hours = (time.time() - session.started) / 3600
    return f" after {hours:.1f} h, about {hours * session.per_hour:.1f} compute units" if session.per_hour else ""
