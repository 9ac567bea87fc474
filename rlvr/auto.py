"""Train, evaluate, look at the outcome, again: one detached run that goes on until a goal, a limit, or no more gain.

    python -m rlvr.auto training/m/auto/001        (what `rlvrctl.py auto` runs in the background)

Each round is a cycle and an evaluation like any other, each with a supervisor of its own: when this process dies they
go on, and `resume` takes up the round where it stands: each says in its `launch.json` to which round it belongs.
`rounds.jsonl` holds a line per finished round.
"""

import contextlib
import signal
import sys
import time

from rlvr import control, records, runs, supervisor
from rlvr.cycles import BASE, Run, cycle_runs, eval_runs
from rlvr.errors import RlvrError
from rlvr.records import Evaluation, Launch, Participant, Round
from rlvr.status import LIVING, StatusFile


class Ended(Exception):
    """An auto run has come to its end: `state` is done, failed or killed, the message says why."""

    def __init__(self, state: str, message: str):
        super().__init__(message)
        self.state = state
        self.message = message


def auto(run: Run) -> int:
    """Run the rounds of an auto run that are still to come."""
    status = StatusFile(run.files.status, control.status_of(run))
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: signals.append(number))
    try:
        options = records.read(run.files.launch, Launch).auto
        started = status.status.started or time.time()
        status.write(state="running", started=started, max_steps=options["rounds"], waiting_for="", message="")
        history = list(records.read_lines(run.files.rounds, Round)) if run.files.rounds.exists() else []
        while True:
            judge(history, options)
            if signals:
                raise Ended("killed", "stopped between two rounds")
            finished = play_round(run, len(history) + 1, options, history, status, signals)
            history.append(finished)
            records.append(run.files.rounds, finished)
            status.write(step=finished.round, solved=finished.solved, waiting_for="")
            supervisor.say(sentence(finished))
    except Ended as end:
        state, message = end.state, end.message
    except (RlvrError, OSError) as error:
        state, message = "failed", str(error)
    code = {"done": 0, "killed": 143}.get(state, 1)
    supervisor.say(f"{state}: {message}")
    supervisor.write_or_say(status, state=state, finished=time.time(), exit_code=code, waiting_for="", message=message)
    return code


def play_round(
    run: Run, number: int, options: dict, history: list[Round], status: StatusFile, signals: list[int]
) -> Round:
    """One cycle and its evaluation against the base; what an interrupted round has begun is taken up."""
    mark = {"run": run.name, "round": number}
    begun = find_begun(cycle_runs(run.model), mark, status)
    if begun is None or control.status_of(begun).state == "failed":
        begun = runs.begin_cycle(run.model, options["train"], auto=mark, notice=supervisor.say)
    finish(begun, status, signals)
    cycle = begun.name
    evaluation = find_begun(eval_runs(run.model, cycle), mark, status)
    if evaluation is None:
        evaluation = runs.begin_eval(run.model, [BASE, cycle], options["eval"], auto=mark, notice=supervisor.say)
    finish(evaluation, status, signals)
    result = records.read(evaluation.files.evaluation, Evaluation)
    metric = metric_of(options)
    base, newest = (estimates(each) for each in result.participants)
    if metric not in newest:
        raise RlvrError(f"goal {options['until']!r}: the evaluation has {', '.join(newest)}: sample more (-k)")
    difference = next(each.difference for each in result.differences if each.metric == "solved")
    return Round(
        round=number,
        cycle=cycle,
        evaluation=evaluation.name,
        time=time.time(),
        solved=newest["solved"],
        goal=newest[metric],
        difference=difference.estimate,
        low=difference.low,
        high=difference.high,
        improved=is_better(newest[metric], base[metric], history),
    )


def metric_of(options: dict) -> str:
    """What the rounds go by: the metric of the goal, else what is solved."""
    goal = runs.parse_goal(options["until"])
    return goal[0] if goal else "solved"


def estimates(participant: Participant) -> dict[str, float]:
    """Every metric that may be a goal, by name."""
    found = {"solved": participant.solved, "mean_holdout_match": participant.mean_holdout_match}
    found |= {f"pass@{k}": interval for k, interval in participant.pass_at.items()}
    return {name: interval.estimate for name, interval in found.items()}


def is_better(value: float, base: float, history: list[Round]) -> bool:
    """Is a round better than base and every round before it?"""
    return value > max([base, *(each.goal for each in history if each.goal is not None)])


def find_begun(candidates: list[Run], mark: dict, status: StatusFile) -> Run | None:
    """The newest of these runs that was begun for this round of this very auto run."""
    for candidate in reversed(candidates):
        with contextlib.suppress(RlvrError):  # one that has no launch.json
            launch = records.read(candidate.files.launch, Launch)
            if launch.auto == mark and launch.ticket >= status.status.created:
                return candidate
    return None


def finish(run: Run, status: StatusFile, signals: list[int]) -> None:
    """Wait for a run of this round to be done; start it again when it was interrupted.

    Raises:
        Ended: when it failed, or at SIGTERM, which is passed on to it.
    """
    status.write(waiting_for=run.name, message=f"round {status.status.step + 1}: {run.name}")
    if control.status_of(run).state in ("failed", "killed", "lost"):
        supervisor.say(f"{run} goes on {control.resume(run)}")
    asked = 0
    while (now := control.status_of(run)).state in LIVING:
        for _ in signals[asked:]:
            asked += 1
            with contextlib.suppress(RlvrError):  # it has ended meanwhile
                control.kill(run)
        control.start_waiting()
        time.sleep(control.POLL_S)
    if signals:
        raise Ended("killed", f"stopped with {run.name}")
    if now.state != "done":
        raise Ended("failed", f"{run.name} is {now.state}: {now.message}")


def judge(history: list[Round], options: dict) -> None:
    """End the rounds when all were run, the goal is reached, or nothing has improved for too long.

    Raises:
        Ended: saying which.
    """
    if not history:
        return
    newest = history[-1]
    goal = runs.parse_goal(options["until"])
    if goal and newest.goal is not None and newest.goal >= goal[1]:
        raise Ended("done", f"the goal {options['until']} is reached: {newest.goal:.3f} after round {newest.round}")
    if len(history) >= options["rounds"]:
        raise Ended("done", f"{options['rounds']} rounds were run")
    patience = options["patience"]
    if len(history) >= patience and not any(each.improved for each in history[-patience:]):
        best = max(each.goal or 0.0 for each in history)
        raise Ended("done", f"no improvement for {patience} rounds: {metric_of(options)} stays at {best:.3f} or below")


def sentence(finished: Round) -> str:
    """What a person wants to know of a round."""
    return (
        f"round {finished.round}: {finished.cycle} solves {100 * (finished.solved or 0):.1f} % of the held-out tasks, "
        f"{100 * (finished.difference or 0):+.1f} points against base "
        f"[{100 * (finished.low or 0):+.1f}, {100 * (finished.high or 0):+.1f}]"
    )


if __name__ == "__main__":
    sys.exit(supervisor.main(auto))
