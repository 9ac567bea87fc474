"""A stand-in for the program `colab` where google-colab-cli cannot be installed: the same texts and exit codes.

    OFFLINE_COLAB=FOLDER python colab_standin.py new -s lab --gpu T4

A VM is the folder FOLDER/vm; code runs there in a process of its own. It knows the commands that this project uses:
usage, sessions, new, exec, upload, download, stop. Tests compare it with the real client where that is to be had.
"""

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(os.environ["OFFLINE_COLAB"])
VM = FOLDER / "vm"
ROWS = FOLDER / "assignments.json"
GPUS = ("T4", "L4", "G4", "H100", "A100")


def read(path: Path, default):
    return json.loads(path.read_text()) if path.exists() else default


def write(path: Path, value) -> None:
    """Replace a file, so that a reader meets the old one or the new one."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value))
    os.replace(new, path)


def rows() -> list[dict]:
    return read(ROWS, [])


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """What is changed meanwhile, is changed by one process at a time."""
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    print(text, flush=True)


def needed(args: argparse.Namespace) -> dict:
    """The VM of a session; its assignment is not asked for, as long as its token is good."""
    known = read(args.config, {})
    if args.session not in known:
        say(f"[colab] Session '{args.session}' not found.")
        sys.exit(1)
    return known[args.session]


def usage(args: argparse.Namespace) -> None:
    balance = read(FOLDER / "balance", 100.0)
    say(f"Current balance: {balance:.2f} compute units")
    say(f"Usage rate: {1.76 * len(rows()):.2f}/hr")
    say(f"Active assignments: {len(rows())}")


def sessions(args: argparse.Namespace) -> None:
    with alone():
        known, listed = read(args.config, {}), rows()
        living = {row["endpoint"] for row in listed}
        kept = {name: session for name, session in known.items() if session["endpoint"] in living}
        if len(kept) < len(known):
            write(args.config, kept)
    if len(kept) < len(known):
        say(f"[colab] Pruned {len(known) - len(kept)} stale local session(s).")
    if not living:
        say("[colab] No active sessions found on server.")
    names = {session["endpoint"]: name for name, session in kept.items()}
    for row in listed:
        name = names.get(row["endpoint"], "?")
        say(f"[{name}] {row['endpoint']} | Hardware: {row['accelerator']} | Shape: Standard | Variant: GPU")


def new(args: argparse.Namespace) -> None:
    gpu = args.gpu if args.gpu in GPUS else "A100"
    say(f"[colab] Creating session '{args.session}'...")
    refusal = FOLDER / "refuse"
    why = refusal.read_text().strip() if refusal.exists() else ""
    if why == "412":
        sys.exit("[colab] Allocation refused (precondition failed). This can mean too many active sessions.")
    if why:
        sys.exit(f"[colab] Backend rejected accelerator '{gpu}'. You may not have quota for this accelerator.")
    endpoint = "fake-" + uuid.uuid4().hex[:8]
    with alone():
        write(ROWS, [*rows(), {"accelerator": gpu, "endpoint": endpoint}])
        write(args.config, {**read(args.config, {}), args.session: {"endpoint": endpoint}})
    say("[colab] Session READY.")


def execute(args: argparse.Namespace) -> None:
    for pair in args.env:
        if not re.fullmatch(r"[A-Za-z_]\w*=.*", pair):
            sys.stderr.write(f"Error: invalid --env {pair}\n")
            sys.exit(2)
    needed(args)
    text = Path(args.file).read_text() if args.file else sys.stdin.read()
    # As the kernel: in /content, and its exit code goes nowhere.
    subprocess.run([sys.executable, "-c", text], cwd=VM / "content", stdin=subprocess.DEVNULL)


def upload(args: argparse.Namespace) -> None:
    needed(args)
    if not os.path.isfile(args.local):
        say(f"[colab] Local file '{args.local}' not found.")
        sys.exit(1)
    if not (VM / args.remote).parent.is_dir():
        say(f"[colab] Upload failed: 500 Server Error for url: http://vm/{args.remote}?colab-runtime-proxy-token=tok")
        sys.exit(1)
    shutil.copyfile(args.local, VM / args.remote)
    say(f"[colab] Uploaded '{args.local}' to '{args.remote}'")


def download(args: argparse.Namespace) -> None:
    needed(args)
    if not (VM / args.remote).is_file():
        say(f"[colab] Download failed: File or directory not found: {args.remote}")
        sys.exit(1)
    shutil.copyfile(VM / args.remote, args.local)
    say(f"[colab] Downloaded '{args.remote}' to '{args.local}'")
    cut = FOLDER / "cut"
    if cut.exists():
        cut.unlink()
        os.truncate(args.local, os.path.getsize(args.local) // 2)


def stop(args: argparse.Namespace) -> None:
    with alone():
        known = read(args.config, {})
        session = known.pop(args.session, None)
        if session is not None:
            write(ROWS, [row for row in rows() if row["endpoint"] != session["endpoint"]])
            write(args.config, known)
    if session is None:
        say(f"[colab] Session '{args.session}' not found.")
        return
    say(f"[colab] Stopping session '{args.session}'...")
    say("[colab] Session terminated.")


def main() -> None:
    parser = argparse.ArgumentParser(prog="colab", allow_abbrev=False)
    parser.add_argument("--config", type=Path, default=FOLDER / "sessions.json")
    parser.add_argument("--auth", choices=("oauth2", "adc"))
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, run, arguments in (
        ("usage", usage, ()),
        ("sessions", sessions, ()),
        ("new", new, ("--gpu",)),
        ("exec", execute, ("--timeout", "--file", "--env")),
        ("upload", upload, ("local", "remote")),
        ("download", download, ("remote", "local")),
        ("stop", stop, ()),
    ):
        verb = verbs.add_parser(name, allow_abbrev=False)
        verb.set_defaults(run=run)
        if name not in ("usage", "sessions"):
            verb.add_argument("-s", "--session", required=True)
        for argument in arguments:
            short = ["-f"] if argument == "--file" else []
            verb.add_argument(*short, argument, **({"action": "append", "default": []} if argument == "--env" else {}))
    args = parser.parse_args()
    args.run(args)


main()
