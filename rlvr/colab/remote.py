"""The supervisor on the VM: install, fetch the corpus, run the trainer; and what has grown since it was last fetched.

    python remote.py BASE          (uploaded and started by rlvr/colab/supervisor.py; standard library only)

BASE holds spec.json (what to do), code/ (the project), run/ (the cycle's folder), parent/ (the adapter of a warm
start). `pack` is called by code that the local side executes: it keeps no state, the other side says what it has.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from importlib import metadata

STATE_FILE = "state.json"
PIECE_FILE = "piece.tar.gz"
CHECKPOINT_DONE = "trainer_state.json"
"""The file that a checkpoint ends with."""

LOG_FILE = "vm.log"
"""What was printed on the VM; the other side adds it to run.log, where its own words stand too."""

LOCAL_FILES = {"run.log", "status.json", "launch.json", "colab.json", "label.txt", "notes.md", ".lock"}
"""Files of a run that the local side writes itself."""


def write_state(base, **state):
    """Replace the state file; `phase` is installing, fetching the corpus, training or ended."""
    path = os.path.join(base, STATE_FILE)
    with open(path + ".tmp", "w") as file:
        json.dump({**state, "time": time.time(), "pid": os.getpid()}, file)
    os.replace(path + ".tmp", path)


def read_state(base):
    try:
        with open(os.path.join(base, STATE_FILE)) as file:
            return json.load(file)
    except OSError:
        return {"phase": "starting"}


def run(base, command, **options):
    """Run a step with its output in the log; its exit code."""
    with open(os.path.join(base, "run", LOG_FILE), "ab") as log:
        log.write(("$ " + " ".join(command) + "\n").encode())
        log.flush()
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options).returncode


def missing(requirements):
    """Those pinned requirements ("name==version") that are not installed at just that version."""

    def installed(requirement):
        name, _, version = requirement.partition("==")
        try:
            return not version or metadata.version(name) == version
        except metadata.PackageNotFoundError:
            return False

    return [requirement for requirement in requirements if not installed(requirement)]


def supervise(base):
    """Do what spec.json says; the exit code of the trainer, or of the step that failed, ends up in the state file."""
    with open(os.path.join(base, "spec.json")) as file:
        spec = json.load(file)
    code = os.path.join(base, "code")
    program = []
    stopped = []

    def stop(number, frame):
        stopped.append(number)
        if program:
            program[0].send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    requirements = spec["requirements"] + (spec["gpu_requirements"] if shutil.which("nvidia-smi") else [])
    wanted = missing(requirements)
    if wanted:
        write_state(base, phase="installing packages")
        failure = run(base, [sys.executable, "-m", "pip", "install", "-q", *wanted])
        if failure:
            return write_state(base, phase="ended", code=failure, error="pip could not install " + " ".join(wanted))
    if spec["fetch_corpus"]:
        write_state(base, phase="fetching the OEIS corpus")
        failure = run(base, [sys.executable, "rlvrctl.py", "corpus", "fetch"], cwd=code)
        if failure:
            return write_state(base, phase="ended", code=failure, error="the OEIS corpus could not be fetched")
    if stopped:
        return write_state(base, phase="ended", code=143, error="")
    write_state(base, phase="training")
    command = [sys.executable, "-u", "gemma4_oeis_rlvr.py", *spec["arguments"]]
    with open(os.path.join(base, "run", LOG_FILE), "ab") as log:
        log.write(("$ " + " ".join(command) + "\n").encode())
        log.flush()
        program.append(subprocess.Popen(command, cwd=code, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        if stopped:
            program[0].send_signal(signal.SIGTERM)
        result = program[0].wait()
    return write_state(base, phase="ended", code=result if result >= 0 else 128 - result, error="")


# ---------------------------------------------------------------------------------------------------------------------
# What has grown


def prefix_sha256(path, size):
    """The hash of the first `size` bytes of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while size > 0 and (block := file.read(min(size, 2**20))):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


def whole_checkpoints(folder):
    """The names of the checkpoints that are complete."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if os.path.exists(os.path.join(folder, name, CHECKPOINT_DONE)))


def pack(base, have, have_checkpoints, with_adapter):
    """Write what is new in the run's folder into one archive, and return the state and what is in it.

    `have` maps a file's name to [bytes, hash of them] on the other side: of a file that begins with just those, only
    the rest is packed, of any other the whole. `have_checkpoints` names those of the other side, None asks for none.
    `with_adapter` asks for the adapter, once the run has ended.
    """
    state = read_state(base)
    folder = os.path.join(base, "run")
    manifest = {"files": {}, "checkpoints": [], "adapter": False}
    piece = os.path.join(base, PIECE_FILE)
    with tarfile.open(piece + ".tmp", "w:gz", compresslevel=1) as archive:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name in LOCAL_FILES or name.endswith(".tmp") or os.path.islink(path) or not os.path.isfile(path):
                continue
            size = os.path.getsize(path)
            known, digest = have.get(name, [0, ""])
            same = 0 < known <= size and prefix_sha256(path, known) == digest
            offset = known if same else 0
            if same and size == known:
                continue
            part = tarfile.TarInfo("files/" + name)
            part.size, part.mtime = size - offset, int(os.path.getmtime(path))
            with open(path, "rb") as file:
                file.seek(offset)
                archive.addfile(part, file)
            manifest["files"][name] = offset
        checkpoints = os.path.join(folder, "checkpoints")
        for name in whole_checkpoints(checkpoints) if have_checkpoints is not None else ():
            if name not in have_checkpoints:
                archive.add(os.path.join(checkpoints, name), "checkpoints/" + name)
                manifest["checkpoints"].append(name)
        adapter = os.path.join(folder, "adapter")
        if with_adapter and state["phase"] == "ended" and os.path.isdir(adapter):
            archive.add(adapter, "adapter")
            manifest["adapter"] = True
    os.replace(piece + ".tmp", piece)
    empty = not (manifest["files"] or manifest["checkpoints"] or manifest["adapter"])
    kept = whole_checkpoints(os.path.join(folder, "checkpoints"))
    return {"state": state, "manifest": None if empty else manifest, "kept_checkpoints": kept}


if __name__ == "__main__":
    supervise(sys.argv[1])
