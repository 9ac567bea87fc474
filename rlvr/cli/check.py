"""The command doctor: is this machine ready, and why does a run not learn. The rules of the second are in
`rlvr/diagnosis.py`, what they mean in docs/doctor.md.
"""

import argparse
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from rlvr import cycles, machine
from rlvr.cli import Command, terminal
from rlvr.config import TrainConfig, keys, read_layer
from rlvr.cycles import Run, RunFiles
from rlvr.diagnosis import Finding, conclusion, diagnose
from rlvr.errors import RlvrError
from rlvr.records import Completion, Step, Tail, TextTail
from rlvr.status import read_status

DISTRIBUTION = "oeis-rlvr"
ROOT = Path(__file__).parent.parent.parent

LOW_DISK_GIB, LITTLE_DISK_GIB = 1, 10
"""An adapter with its optimizer takes some hundred MiB, twice or three times; a base model some GiB."""

LOW_MEMORY_GIB, LITTLE_MEMORY_GIB = 1, 4
"""The tiny model with torch takes 0.7 GiB; a model of 135 million parameters 3."""

METRICS_BYTES, TRACE_BYTES = 4 * 2**20, 32 * 2**20
"""So much of the end of metrics and trace holds more than the steps that the rules look at."""

LOG_LINES = 15
COLAB_TIMEOUT_S = 20
COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}

State = Literal["ok", "note", "problem"]

# ---------------------------------------------------------------------------------------------------------------------
# doctor: the machine


class Looked(NamedTuple):
    """One thing looked at; a note works with a limit, a problem makes something fail. `change` says what to do."""

    name: str
    state: State
    what: str
    change: str = ""


class Needs(NamedTuple):
    """What the project was tried with, as requirement specifiers."""

    python: str
    packages: tuple[str, ...]
    gpu_packages: tuple[str, ...]


def needs() -> Needs:
    """From the pyproject.toml beside the programs, else from the installed distribution.

    Raises:
        RlvrError: when there is neither.
    """
    file = ROOT / "pyproject.toml"
    if file.is_file():
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        gpu = project["optional-dependencies"]["gpu"]
        return Needs(project["requires-python"], tuple(project["dependencies"]), tuple(gpu))
    try:
        about = importlib.metadata.metadata(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise RlvrError(f"{file}: no such file, and {DISTRIBUTION} is not installed: install it with pip") from None
    listed = importlib.metadata.requires(DISTRIBUTION) or []
    return Needs(
        about["Requires-Python"],
        tuple(each for each in listed if "extra ==" not in each),
        tuple(each.partition(";")[0] for each in listed if "gpu" in each.partition("extra ==")[2]),
    )


def look_at_python(wanted: Needs) -> Looked:
    from packaging.specifiers import SpecifierSet

    found = platform.python_version()
    if SpecifierSet(wanted.python).contains(found, prereleases=True):
        return Looked("python", "ok", f"{found} ({sys.executable})")
    return Looked(
        "python", "problem", f"{found}, and {wanted.python} is needed", "make an environment with a newer one"
    )


def look_at_packages(wanted: Needs, has_gpu: bool) -> Iterator[Looked]:
    """A line for each package that is missing or outside the range that was tried, and one for all others."""
    from packaging.requirements import Requirement

    fine = []
    for text in wanted.packages + (wanted.gpu_packages if has_gpu else ()):
        package = Requirement(text)
        version = installed_version(package.name)
        if version is None:
            yield Looked("packages", "problem", f"{package.name} is not installed", f'pip install "{text}"')
        elif not package.specifier.contains(version, prereleases=True):
            tried = f"{package.name} {version} is outside the range that was tried, {package.specifier}"
            yield Looked("packages", "problem", tried, f'pip install "{text}"')
        else:
            fine.append(f"{package.name} {version}")
    yield Looked("packages", "ok", f"{len(fine)} within the ranges that were tried: {', '.join(fine)}")


def installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def look_at_gpus(gpus: Sequence[machine.Gpu]) -> Iterator[Looked]:
    if not gpus:
        yield Looked(
            "gpu",
            "note",
            "none that nvidia-smi knows of",
            "the tiny model trains here in minutes, others of up to about 500 million parameters in hours; a larger "
            "one needs a GPU, such as a rented one (docs/colab.md)",
        )
    for gpu in gpus:
        what = f"{gpu.name}, {gpu.free_mib / 1024:.1f} of {gpu.total_mib / 1024:.1f} GiB free, driver {gpu.driver}"
        if gpu.free_mib < gpu.total_mib / 2:
            yield Looked("gpu", "note", what, "another program holds the rest: nvidia-smi names it")
        else:
            yield Looked("gpu", "ok", what)
    torch = installed_version("torch") or ""
    if gpus and torch.endswith("+cpu"):
        yield Looked(
            "gpu", "problem", f"torch {torch} is built without CUDA", "pip install torch from the usual index"
        )


def look_at_memory() -> Looked:
    total, available = machine.memory_gib()
    what = f"{machine.usable_cores()} cores, {available:.1f} of {total:.1f} GiB memory available"
    if available < LOW_MEMORY_GIB:
        return Looked("memory", "problem", what, "end other programs: loading the tiny model takes about 1 GiB")
    if available < LITTLE_MEMORY_GIB:
        return Looked("memory", "note", what, "enough for the tiny model")
    return Looked("memory", "ok", what)


def look_at_disk() -> Looked:
    folder = cycles.TRAINING_DIR.absolute()
    there = machine.nearest_folder(folder)
    free = machine.disk_free_gib(folder)
    what = f"{free:.1f} GiB free for {folder}"
    if not os.access(there, os.W_OK):
        return Looked("disk", "problem", f"{there} cannot be written", "work in another folder, or change its rights")
    if free < LOW_DISK_GIB:
        return Looked("disk", "problem", what, "free some space: a checkpoint in the making needs it")
    if free < LITTLE_DISK_GIB:
        return Looked("disk", "note", what, "enough for adapters of small models; keep_checkpoints = 1 takes less")
    return Looked("disk", "ok", what)


def look_at_sandbox() -> Looked:
    """Start a real worker and try in it what no candidate may do."""
    from rlvr.sandbox.grader import Sandbox

    try:
        with Sandbox(workers=1) as sandbox:
            refused = sandbox.self_test()
            level = sandbox.isolation
    except RlvrError as error:
        return Looked("sandbox", "problem", str(error), "see docs/sandbox.md")
    what = f"isolation {level}: {sum(refused.values())} of {len(refused)} forbidden things tried, all refused"
    if level == "full":
        return Looked("sandbox", "ok", what)
    lacking = {
        "no-namespaces": "user namespaces",
        "seccomp-only": "Landlock (Linux 5.13) and user namespaces",
    }[level]
    return Looked("sandbox", "note", what, f"safe to use; this kernel or container lacks {lacking}")


def look_at_corpus() -> Looked:
    from rlvr import corpus

    notices: list[str] = []
    try:
        found = corpus.open_corpus(notice=notices.append, progress=sys.stderr.isatty())
    except RlvrError as error:
        return Looked("corpus", "problem", str(error), "rlvrctl.py corpus fetch")
    what = f"{found.num_files:,} files in {found.path}"
    if found.is_sample:
        return Looked("corpus", "note", f"the bundled sample: {what}", "rlvrctl.py corpus fetch gets all of them")
    if notices:
        return Looked("corpus", "note", f"{what}; {notices[0]}", "rlvrctl.py corpus status says more")
    return Looked("corpus", "ok", what)


def look_at_colab() -> Looked:
    program = shutil.which("colab")
    if program is None:
        return Looked("colab", "note", "no client", "only needed to rent a GPU: uv tool install google-colab-cli")
    try:
        done = subprocess.run(
            [program, "version"], capture_output=True, text=True, timeout=COLAB_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Looked("colab", "problem", f"{program} does not answer: {error}", "install google-colab-cli again")
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return Looked("colab", "note", f"{program}, which does not tell its version", "install it again if it fails")
    return Looked("colab", "ok", f"google-colab-cli {lines[0].removeprefix('Version:').strip()} ({program})")


def look_at_all() -> Iterator[Looked]:
    """Every line in turn, as soon as it is known."""
    wanted = needs()
    gpus = machine.find_gpus()
    yield look_at_python(wanted)
    yield from look_at_packages(wanted, has_gpu=bool(gpus))
    yield from look_at_gpus(gpus)
    one_each: tuple[Callable[[], Looked], ...] = (
        *(look_at_memory, look_at_disk, look_at_sandbox, look_at_corpus, look_at_colab),
    )
    for look in one_each:
        yield look()


def doctor_machine(as_json: bool) -> int:
    looked = []
    for each in look_at_all():
        looked.append(each)
        if not as_json:
            mark = painted(f"{each.state:<7}", COLOURS[each.state])
            print(f"{mark}  {each.name:<8}  {each.what}" + (f"\n{'':19}-> {each.change}" if each.change else ""))
    problems = sum(each.state == "problem" for each in looked)
    if as_json:
        print_json([each._asdict() for each in looked])
    else:
        print(f"\n{problems} problem{'s' if problems > 1 else ''}" if problems else "\nNo problem found.")
    return int(problems > 0)


# ---------------------------------------------------------------------------------------------------------------------
# doctor RUN


class Examination(NamedTuple):
    """What a run's records say; no steps when it failed before the first one."""

    steps: list[Step]
    findings: list[Finding]
    config: TrainConfig


def examine(files: RunFiles) -> Examination:
    """Read a training run and diagnose it; without a config of its own, the defaults stand for it.

    Raises:
        RlvrError: for a config that cannot be read.
    """
    config = TrainConfig(**read_layer(files.config, TrainConfig)[1]) if files.config.is_file() else TrainConfig()
    steps = Tail(files.metrics, Step, last_bytes=METRICS_BYTES).read(METRICS_BYTES)
    completions = Tail(files.trace, Completion, last_bytes=TRACE_BYTES).read(TRACE_BYTES)
    return Examination(steps, diagnose(steps, completions, config), config)


def find_files(text: str, model: str | None) -> tuple[RunFiles, Run | None]:
    """The files of the training run that `text` means: a run's name, a folder, or a metrics.jsonl.

    Raises:
        RlvrError: for an unknown run, and one that is no training.
    """
    folder = Path(text).parent if Path(text).is_file() else Path(text)
    run = cycles.run_at(folder) if folder.is_dir() else cycles.find_run(text, model)
    if run is not None and run.kind != "train":
        raise RlvrError(f"{run} is no training: give one of the cycles, such as 003; rlvrctl.py ps -a lists them")
    # A numbered folder elsewhere belongs to no model here.
    if run is not None and (cycles.TRAINING_DIR / run.model / run.name).resolve() == run.folder.resolve():
        return run.files, run
    files = RunFiles(run.folder if run else folder)
    if run is None and not files.metrics.is_file():
        raise RlvrError(
            f"{folder}: no {files.metrics.name} in it: give a cycle, the folder of a training, or that file"
        )
    return files, None


def command_for(finding: Finding, run: Run | None, files: RunFiles) -> str:
    """The command line that makes the change; "" where none does, or its key is frozen by the adapter that exists."""
    known = keys(TrainConfig)
    has_adapter = run is not None and cycles.first_adapter(run.model) is not None
    settings = [text for text in finding.settings if not (has_adapter and known[text.partition("=")[0]].frozen)]
    if not settings:
        return ""
    if run is not None:
        return f"rlvrctl.py config set --model {run.model} --scope permanent {' '.join(settings)}"
    flags = " ".join(f"--{text.partition('=')[0].replace('_', '-')} {text.partition('=')[2]}" for text in settings)
    return f"gemma4_oeis_rlvr.py --config {files.config} {flags}"


def doctor_run(text: str, model: str | None, as_json: bool) -> int:
    files, run = find_files(text, model)
    seen = examine(files)
    name = str(run or files.folder)
    if not seen.steps:
        return doctor_unborn(name, files, as_json)
    findings = [(finding, command_for(finding, run, files)) for finding in seen.findings]
    verdict = conclusion(seen.steps, seen.findings)
    if as_json:
        listed = [{**vars(finding), "command": command} for finding, command in findings]
        print_json({"run": name, "step": seen.steps[-1].step, "conclusion": verdict, "findings": listed})
        return int(bool(findings))
    print(f"{name}, step {seen.steps[-1].step} of {seen.steps[-1].max_steps}: {verdict}")
    for finding, command in findings:
        style = "red" if finding.severity == "dead" else "yellow"
        print(f"\n{painted(finding.severity, style)}: {finding.title}\n  {finding.what}")
        print(f"  -> {finding.change}" + (f"\n     {command}" if command else ""))
    return int(bool(findings))


def doctor_unborn(name: str, files: RunFiles, as_json: bool) -> int:
    """A run without steps: not begun yet, or failed; then its last words say why."""
    status = read_status(files.status)
    state = status.state if status else "failed"
    log = TextTail(files.log, last_bytes=2**16)
    lines = [line for line in log.read() if line.strip()][-LOG_LINES:]
    began = state in ("pending", "running")
    verdict = "no step yet" if began else f"{state} before its first step"
    message = status.message if status else "it has no status.json"
    if as_json:
        print_json({"run": name, "step": 0, "conclusion": verdict, "findings": [], "message": message, "log": lines})
    else:
        print(f"{name}: {verdict}" + (f": {message}" if message else ""))
        if lines:
            print(f"The end of {files.log}:")
            print("\n".join(f"  | {line}" for line in lines))
    return 0 if began else 1


def painted(text: str, colour: str) -> str:
    return terminal.coloured(text, colour if terminal.has_colours() else "")


def print_json(value: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


# ---------------------------------------------------------------------------------------------------------------------
# The command


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="a cycle (003, latest, live), a folder, a metrics.jsonl")
    parser.add_argument("--json", action="store_true", help="a list of objects, or of a RUN one object")


def doctor(args: argparse.Namespace) -> int:
    if args.run:
        return doctor_run(args.run, args.model, args.json)
    return doctor_machine(args.json)


COMMANDS = {
    "doctor": Command(
        doctor_arguments,
        doctor,
        examples=("rlvrctl.py doctor", "rlvrctl.py doctor latest", "rlvrctl.py doctor 003 --json"),
        description="Look at this machine, or at a run: why does it not learn, and what to change. Exit code 1 when "
        "a problem or a finding is there, else 0. docs/doctor.md has the table of findings.",
    )
}
