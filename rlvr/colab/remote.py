"""The supervisor on the VM: install, fetch the corpus, run the trainer; and what has grown since it was last fetched.

    python remote.py BASE          (uploaded and started by rlvr/colab/supervisor.py; standard library only)

BASE is laid out as the folder that holds training/ on the other side, so that what is printed names the same paths:
training/M/NNN/ is the cycle, training/M/PPP/ the parent that it starts from. Beside it lie spec.json (what to do),
code/ (the project) and the link run -> training/M/NNN. `pack` is called by code that the local side executes: it keeps
no state, the other side says what it has.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
from importlib import metadata

STATE_FILE = "state.json"
PIECE_FILE = "piece.tar.gz"
CHECKPOINT_DONE = "trainer_state.json"
"""The file that a checkpoint ends with."""

LOG_FILE = "vm.log"
"""What was printed on the VM; the other side adds it to run.log, where its own words stand too."""

CONFIG_FILE = "config.toml"
LOCAL_FILES = {"run.log", "status.json", "launch.json", "colab.json", "label.txt", "notes.md", ".lock", CONFIG_FILE}
"""Files of a run that the local side writes itself."""

CORPUS = "../oeisdata"
"""Where the OEIS lies: one copy for all runs of a VM, as it takes long to come and long to go."""

BLOCK_BYTES = 2**20
PACK_ATTEMPTS = 3
LEFT_ALONE = ("torch", "torchvision", "torchaudio", "triton")
"""What fits the VM's driver: pip may not replace it, where that is possible."""


def write_state(base, **state):
    """Replace the state file; `phase` is starting, installing packages, fetching the corpus, training or ended."""
    path = os.path.join(base, STATE_FILE)
    with open(path + ".tmp", "w") as file:
        json.dump({"pid": os.getpid(), **state, "time": time.time()}, file)
    os.replace(path + ".tmp", path)


def read_state(base):
    """The state; a supervisor that is gone without having said so has ended with an error."""
    with open(os.path.join(base, STATE_FILE)) as file:
        state = json.load(file)
    if state["phase"] != "ended" and not is_supervisor(state["pid"], base):
        with open(os.path.join(base, STATE_FILE)) as file:  # it may have ended between the two
            state = json.load(file)
        if state["phase"] != "ended":
            error = f"its supervisor was ended while {state['phase']}, perhaps for want of memory"
            return {**state, "phase": "ended", "code": 1, "error": error}
    return state


def is_supervisor(pid, base):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsencode(base) in file.read()
    except OSError:
        return False


class Steps:
    """The programs that run one after the other, with their output in the log; SIGTERM goes to the one at work."""

    def __init__(self, base):
        self.base = base
        self.process = None
        self.stopped = False
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, number, frame):
        self.stopped = True
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def run(self, command, **options):
        """The exit code of a program; 143 without it once a stop was asked for."""
        if self.stopped:
            return 143
        with open(os.path.join(self.base, "run", LOG_FILE), "ab") as log:
            log.write(("$ " + " ".join(command) + "\n").encode())
            log.flush()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)
            if self.stopped:  # it came while the program was being started
                self.process.send_signal(signal.SIGTERM)
            code = self.process.wait()
        return code if code >= 0 else 128 - code


def installed(name):
    """The version of a package here, "" without it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def missing(requirements):
    """Those requirements that are not installed, or pinned ("name==version") to another version."""
    wanted = []
    for requirement in requirements:
        name, _, pinned = requirement.partition("==")
        for sign in "<>=!~ [":
            name = name.partition(sign)[0]
        here = installed(name)
        if not here or (pinned and here != pinned):
            wanted.append(requirement)
    return wanted


def install(steps, spec):
    """Install what is missing; the exit code of pip.

    First at the versions of the other side. Where those cannot be had beside what else the VM needs, within the ranges
    of the project; and only when all else fails with another torch than the VM's.
    """
    on_gpu = spec["gpu_requirements"] if shutil.which("nvidia-smi") else []
    wanted = missing(spec["requirements"] + on_gpu)
    if not wanted:
        return 0
    constraints = os.path.join(steps.base, "constraints.txt")
    with open(constraints, "w") as file:
        file.writelines(f"{name}=={installed(name)}\n" for name in LEFT_ALONE if installed(name))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-input"]
    in_ranges = spec["ranges"] + on_gpu
    code = 1
    for arguments in (["-c", constraints, *wanted], ["-c", constraints, *in_ranges], in_ranges):
        code = steps.run([*pip, *arguments])
        if code == 0 or steps.stopped:
            break
    return code


def supervise(base):
    """Do what spec.json says; the exit code of the trainer, or of the step that failed, ends up in the state file."""
    steps = Steps(base)
    try:
        with open(os.path.join(base, "spec.json")) as file:
            spec = json.load(file)
        write_state(base, phase="installing packages")
        code, error = install(steps, spec), "pip could not install the packages"
        if code == 0 and spec["fetch_corpus"] is not None:
            write_state(base, phase="fetching the OEIS corpus")
            os.symlink(CORPUS, os.path.join(base, os.path.basename(CORPUS)))
            fetch = ["code/rlvrctl.py", "corpus", "fetch", "--dir", CORPUS, *spec["fetch_corpus"]]
            code = steps.run([sys.executable, "-u", *fetch], cwd=base)
            error = "the OEIS corpus could not be fetched"
        if code == 0:
            write_state(base, phase="training")
            trainer = [sys.executable, "-u", "code/gemma4_oeis_rlvr.py", *spec["arguments"]]
            code, error = steps.run(trainer, cwd=base), ""
        if steps.stopped and code:
            code, error = 143, ""
    except Exception as failure:
        code, error = 1, f"{type(failure).__name__}: {failure}"
    write_state(base, phase="ended", code=code, error=error if code else "")


# ---------------------------------------------------------------------------------------------------------------------
# What has grown


def prefix_sha256(path, size):
    """The hash of the first `size` bytes of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while size > 0 and (block := file.read(min(size, BLOCK_BYTES))):
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


def whole_lines(path, offset, ended):
    """How far the log may be sent: a secret is not to be cut in two, so no line is, until the end."""
    size = os.path.getsize(path)
    if ended or size <= offset:
        return size
    with open(path, "rb") as file:
        file.seek(offset)
        block = file.read(size - offset)
    return offset + max(block.rfind(b"\n"), block.rfind(b"\r")) + 1


def add_part(archive, path, name, offset, size):
    part = tarfile.TarInfo("files/" + name)
    part.size, part.mtime = size - offset, int(os.path.getmtime(path))
    with open(path, "rb") as file:
        file.seek(offset)
        archive.addfile(part, file)


def write_piece(base, piece, state, have, log_bytes, have_checkpoints, with_adapter):
    """Write the archive of what is new; what is in it."""
    folder = os.path.join(base, "run")
    ended = state["phase"] == "ended"
    manifest = {"files": {}, "checkpoints": [], "adapter": False, "log_bytes": log_bytes}
    with tarfile.open(piece, "w:gz", compresslevel=1) as archive:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name in LOCAL_FILES or name.endswith(".tmp") or os.path.islink(path) or not os.path.isfile(path):
                continue
            if name == LOG_FILE:
                size = whole_lines(path, log_bytes, ended)
                if size > log_bytes:
                    add_part(archive, path, name, log_bytes, size)
                    manifest["log_bytes"] = size
                continue
            size = os.path.getsize(path)
            known, digest = have.get(name, [-1, ""])
            same = 0 <= known <= size and prefix_sha256(path, known) == digest
            if same and size == known:
                continue
            offset = known if same else 0
            add_part(archive, path, name, offset, size)
            manifest["files"][name] = offset
        checkpoints = os.path.join(folder, "checkpoints")
        for name in whole_checkpoints(checkpoints) if have_checkpoints is not None else ():
            if name not in have_checkpoints:
                archive.add(os.path.join(checkpoints, name), "checkpoints/" + name)
                manifest["checkpoints"].append(name)
        adapter = os.path.join(folder, "adapter")
        if with_adapter and ended and state["code"] == 0 and os.path.isdir(adapter):
            archive.add(adapter, "adapter")
            manifest["adapter"] = True
    return manifest


def split(piece, part_bytes):
    """Cut a file into numbered parts, which take its place; how many."""
    number = 0
    with open(piece, "rb") as file:
        while block := file.read(part_bytes):
            with open(f"{piece}.{number:03d}", "wb") as part:
                part.write(block)
            number += 1
    os.remove(piece)
    return number


def pack(base, have, log_bytes, have_checkpoints, with_adapter, part_bytes):
    """Write what is new in the run's folder into one archive in parts, and return the state and what is in it.

    `have` maps a file's name to [bytes, hash of them] on the other side: of a file that begins with just those, only
    the rest is packed, of any other the whole. `log_bytes` of the log are there. `have_checkpoints` names those of
    the other side, None asks for none. `with_adapter` asks for the adapter, once the run has ended well.
    """
    state = read_state(base)
    piece = os.path.join(base, PIECE_FILE)
    for name in os.listdir(base):
        if name.startswith(PIECE_FILE):
            os.remove(os.path.join(base, name))
    for attempt in range(PACK_ATTEMPTS):
        try:
            manifest = write_piece(base, piece, state, have, log_bytes, have_checkpoints, with_adapter)
            break
        except OSError:  # the trainer has just replaced a file, or removed an old checkpoint
            if attempt == PACK_ATTEMPTS - 1:
                raise
            time.sleep(0.2)
    about = {}
    with contextlib.suppress(OSError, ValueError), open(os.path.join(base, "run", CONFIG_FILE), "rb") as file:
        about = tomllib.load(file).get("provenance", {})
        with open(os.path.join(base, "spec.json")) as spec:
            about.update(json.load(spec)["about"])
        if "corpus" in about:
            corpus, root = os.path.realpath(os.path.join(base, about["corpus"])), os.path.realpath(base)
            about["corpus"] = os.path.relpath(corpus, root).removeprefix("../")  # the other side has its like
    empty = not (manifest["files"] or manifest["checkpoints"] or manifest["adapter"])
    if empty and manifest["log_bytes"] == log_bytes:
        manifest = None
    else:
        manifest["sha256"] = prefix_sha256(piece, os.path.getsize(piece))
        manifest["parts"] = split(piece, part_bytes)
    kept = whole_checkpoints(os.path.join(base, "run", "checkpoints"))
    return {"state": state, "manifest": manifest, "kept_checkpoints": kept, "about": about}


if __name__ == "__main__":
    supervise(sys.argv[1])
