"""Train, evaluate, look at the outcome, again: one detached run that goes on until a goal, a limit, or no more gain.

    python -m rlvr.auto training/m/auto/001        (what `rlvrctl.py auto` runs in the background)

Each round is a cycle and an evaluation like any other, each with a supervisor of its own: when this process dies they
go on, and `resume` takes up the round where it stands. `rounds.jsonl` holds a line per finished round.
"""

import signal
import sys
import time

from rlvr import records, runs, supervisor
from rlvr.cycles import Run, find_run
from rlvr.errors import RlvrError
from rlvr.records import Evaluation, Launch, Round
from rlvr.status import LIVING, StatusFile, is_alive


class Ended(Exception):
    """An auto run has come to its end: `state` is done, failed or killed, the message says why."""

    def __init__(self, state: str, message: str):
        super().__init__(message)
        self.state = state
        self.message = message


def auto(run: Run) -> int:
    """Run the rounds of an auto run that are still to come."""
    launch = records.read(run.files.launch, Launch)
    options = launch.auto
    status = StatusFile(run.files.status, supervisor.status_of(run))
    in_flight = status.status.waiting_for
    status.write(state="running", started=status.status.started or time.time(), max_steps=options["rounds"])
    stop = [0]

    def receive(number: int, frame: object) -> None:
        stop[0] = number

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, receive)
    try:
        history = list(records.read_lines(run.files.rounds, Round)) if run.files.rounds.exists() else []
        for number in range(len(history) + 1, options["rounds"] + 1):
            finished = play_round(run, number, options, history, in_flight, status, stop)
            in_flight = ""
            history.append(finished)
            records.append(run.files.rounds, finished)
            status.write(step=number, solved=finished.solved, waiting_for="")
            print(sentence(finished), flush=True)
            judge(history, options)
        raise Ended("done", f"{options['rounds']} rounds were run")
    except Ended as end:
        state, message = end.state, end.message
    except RlvrError as error:
        state, message = "failed", str(error)
    code = {"done": 0, "killed": 143}.get(state, 1)
    print(f"{state}: {message}", flush=True)
    status.write(state=state, finished=time.time(), exit_code=code, message=message)
    return code


def play_round(
    run: Run,
    number: int,
    options: dict,
    history: list[Round],
    in_flight: str,
    status: StatusFile,
    stop: list[int],
) -> Round:
    """One cycle and its evaluation against the base; `in_flight` is what an interrupted round was doing."""
    if "/evals/" in in_flight:
        cycle, evaluation = in_flight.partition("/")[0], find_run(in_flight, run.model)
    else:
        begun = find_run(in_flight, run.model) if in_flight else None
        if begun is None or supervisor.status_of(begun).state == "failed":
            begun = runs.begin_cycle(run.model, options["train"])
        finish(begun, status, stop)
        cycle = begun.name
        evaluation = runs.begin_eval(run.model, ["base", cycle], options["eval"])
    finish(evaluation, status, stop)
    result = records.read(evaluation.files.evaluation, Evaluation)
    newest = next(person for person in result.participants if person.name == cycle)
    base = next(person for person in result.participants if person.name == "base")
    metric, _ = runs.parse_goal(options["until"]) or ("solved", 1.0)
    values = {"solved": newest.solved, "mean_holdout_match": newest.mean_holdout_match}
    values |= {f"pass@{k}": interval for k, interval in newest.pass_at.items()}
    if metric not in values:
        raise RlvrError(f"goal {options['until']!r}: the evaluation has {', '.join(values)}: sample more (-k)")
    difference = next(each.difference for each in result.differences if each.metric == "solved")
    best = max([before.solved for before in history if before.solved is not None], default=base.solved.estimate)
    return Round(
        round=number,
        cycle=cycle,
        evaluation=evaluation.name,
        time=time.time(),
        solved=newest.solved.estimate,
        goal=values[metric].estimate,
        difference=difference.estimate,
        low=difference.low,
        high=difference.high,
        improved=newest.solved.estimate > best,
    )


def finish(run: Run, status: StatusFile, stop: list[int]) -> None:
    """Wait for a run of this round to be done; start it again when it was interrupted and nobody stopped this one.

    Raises:
        Ended: when it failed, or at SIGTERM, which is passed on to it.
    """
    status.write(waiting_for=run.name)
    if supervisor.status_of(run).state in ("killed", "lost"):
        print(f"{run} goes on {supervisor.resume(run)}", flush=True)
    asked = False
    while (now := supervisor.status_of(run)).state in LIVING:
        if stop[0] and not asked:
            supervisor.kill(run)
            asked = True
        if now.state == "pending" and not is_alive(now):
            supervisor.start_waiting()
        time.sleep(supervisor.POLL_S)
    if stop[0]:
        raise Ended("killed", f"stopped with {run.name}")
    if now.state != "done":
        raise Ended("failed", f"{run.name} is {now.state}: {now.message}")


def judge(history: list[Round], options: dict) -> None:
    """End the rounds when the goal is reached, or when nothing has improved for too long.

    Raises:
        Ended: saying which.
    """
    newest = history[-1]
    goal = runs.parse_goal(options["until"])
    if goal and newest.goal is not None and newest.goal >= goal[1]:
        raise Ended("done", f"the goal {options['until']} is reached: {newest.goal:.3f} after round {newest.round}")
    patience = options["patience"]
    if len(history) >= patience and not any(each.improved for each in history[-patience:]):
        best = max(each.solved or 0.0 for each in history)
        raise Ended("done", f"no improvement for {patience} rounds: solved stays at {best:.3f} or below")


def sentence(finished: Round) -> str:
    """What a person wants to know of a round."""
    return (
        f"round {finished.round}: {finished.cycle} solves {100 * (finished.solved or 0):.1f} % of the held-out tasks, "
        f"{100 * (finished.difference or 0):+.1f} points against base "
        f"[{100 * (finished.low or 0):+.1f}, {100 * (finished.high or 0):+.1f}]"
    )


if __name__ == "__main__":
    sys.exit(supervisor.main(auto))
