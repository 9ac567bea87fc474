"""A Colab without Google: the real command line client, with only Google's front end replaced, and a loopback VM.

`OfflineColab(folder, client_python)` starts a Jupyter server whose kernels run with this project's Python, and gives
the environment in which the program `colab` on PATH talks to it; without `client_python` that program is the stand-in
beside this file. What runs in a VM sees `folder/vm/content` where a Colab VM has /content. For tests; nothing is
contacted outside loopback.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

STANDIN = Path(__file__).with_name("colab_standin.py")
PORT_ATTEMPTS = 5
CLIENT_PACKAGES = ("google-colab-cli==0.7.5", "jupyter-server>=2.14,<3")

FRONT_END = '''\
"""The real client; only the calls to Google are answered from a file."""
import contextlib, fcntl, json, os, pathlib, types, uuid
import colab_cli.common as common
from colab_cli.client import (AssignmentVariant, ColabRequestError, ListedAssignment, PostAssignmentResponse,
    TooManyAssignmentsError)
from colab_cli.cli import main

FOLDER = pathlib.Path(os.environ["OFFLINE_COLAB"])
DB = FOLDER / "assignments.json"

@contextlib.contextmanager
def changed():
    """The rows, to be changed by one process at a time; whoever reads them meets the old ones or the new ones."""
    with open(FOLDER / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = json.loads(DB.read_text()) if DB.exists() else []
        yield rows
        new = DB.with_suffix(".new")
        new.write_text(json.dumps(rows))
        os.replace(new, DB)

class FrontEnd:
    def rows(self):
        return json.loads(DB.read_text()) if DB.exists() else []
    def assign(self, nbh, variant=None, accelerator=None, shape=None):
        refusal = FOLDER / "refuse"
        why = refusal.read_text().strip() if refusal.exists() else ""
        if why == "412":
            raise TooManyAssignmentsError("412")
        if why:
            raise ColabRequestError(why, None, types.SimpleNamespace(status_code=int(why)), "")
        row = dict(accelerator=accelerator.value, endpoint="fake-" + uuid.uuid4().hex[:8],
                   variant=AssignmentVariant[variant.value].value, machineShape=int(shape or 0),
                   runtimeProxyInfo=dict(token="secret-token", tokenExpiresInSeconds=3600,
                                         url=(FOLDER / "url").read_text()))
        with changed() as rows:
            rows.append(row)
        return PostAssignmentResponse.model_validate(row)
    def list_assignments(self):
        return [ListedAssignment.model_validate(row) for row in self.rows()]
    def unassign(self, endpoint):
        with changed() as rows:
            rows[:] = [row for row in rows if row["endpoint"] != endpoint]
    def get_consumption_user_info(self):
        balance = FOLDER / "balance"
        return types.SimpleNamespace(
            paid_compute_units_balance=float(balance.read_text()) if balance.exists() else 100.0,
            consumption_rate_hourly=1.76 * len(self.rows()), assignments_count=len(self.rows()),
        )

common.state._client = FrontEnd()

def serve(path):
    """Fork once a call: importing the client takes seconds. The caller sends its descriptors, arguments and folder."""
    import socket, sys
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen()
    os.rename(path + ".new", path)
    while True:
        caller, _ = listener.accept()
        if os.fork():
            caller.close()
            while True:
                try:
                    if os.waitpid(-1, os.WNOHANG)[0] == 0:
                        break
                except ChildProcessError:
                    break
            continue
        listener.close()
        data, descriptors, _, _ = socket.recv_fds(caller, 65536, 3)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        call = json.loads(data)
        os.chdir(call["cwd"])
        os.environ.update(call["env"])
        sys.argv = ["colab", *call["arguments"]]
        code = 1
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        caller.sendall(json.dumps(code).encode())
        os._exit(0)

serve(str(FOLDER / "client.sock"))
'''

PROGRAM = """\
#!{python} -S
import json, os, runpy, socket, sys
folder, standin = {folder!r}, {standin!r}
if os.path.exists(folder + "/offline"):
    sys.exit("ConnectionError: HTTPSConnectionPool(host='colab.research.google.com', port=443): Max retries exceeded "
             "with url: /tun/m/assignments?authuser=0 (Caused by NameResolutionError: Failed to resolve "
             "'colab.research.google.com')")
if standin:
    os.environ["OFFLINE_COLAB"] = folder
    sys.argv[0] = standin
    runpy.run_path(standin, run_name="__main__")
else:
    server = socket.socket(socket.AF_UNIX)
    server.connect(folder + "/client.sock")
    env = {{name: os.environ[name] for name in ("COLUMNS", "NO_COLOR") if name in os.environ}}
    call = json.dumps({{"arguments": sys.argv[1:], "cwd": os.getcwd(), "env": env}}).encode()
    socket.send_fds(server, [call], [0, 1, 2])
    code = json.loads(server.recv(64) or b"1")
    if "download" in sys.argv and os.path.exists(folder + "/cut"):
        os.remove(folder + "/cut")
        os.truncate(sys.argv[-1], os.path.getsize(sys.argv[-1]) // 2)
    sys.exit(code)
"""

CONTENT = '''\
"""/content of a Colab VM is a folder of this test."""
import os
_root = os.environ["OFFLINE_CONTENT"]
def _map(path):
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    return _root + text[8:] if text and (text + "/").startswith("/content/") else path
_chdir, _makedirs = os.chdir, os.makedirs
os.chdir = lambda path: _chdir(_map(path))
os.makedirs = lambda path, *rest, **named: _makedirs(_map(path), *rest, **named)
'''


class OfflineColab:
    """VMs on loopback and the client that talks to them; `env` is what a program needs to use both."""

    def __init__(self, folder: Path, client_python: Path | None):
        self.folder = folder
        self.content = folder / "vm/content"
        self.content.mkdir(parents=True)
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "colab"
        python = client_python or Path(sys.executable)
        standin = "" if client_python else str(STANDIN)
        program.write_text(PROGRAM.format(python=python, folder=str(folder), standin=standin))
        program.chmod(0o755)
        self.env = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "RLVR_COLAB_POLL_S": "0.7",
        }
        self.processes: list[subprocess.Popen] = []
        if client_python:
            self._start(client_python)

    def _start(self, client_python: Path) -> None:
        """Start the loopback server and the front end."""
        folder = self.folder
        home = folder / "home"
        state = home / ".config/colab-cli"
        state.mkdir(parents=True)
        (state / "settings.json").write_text('{"enable_update_check": false}')
        startup = folder / "ipython/profile_default/startup"
        startup.mkdir(parents=True)
        (startup / "00-content.py").write_text(CONTENT)
        kernel = folder / "jupyter/kernels/python3"
        kernel.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "VM", "language": "python"}))
        (folder / "front_end.py").write_text(FRONT_END)
        server_env = {
            "HOME": str(home),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_PATH": str(folder / "jupyter"),
            "OFFLINE_CONTENT": str(self.content),
            "OMP_NUM_THREADS": "1",
        }
        for _ in range(PORT_ATTEMPTS):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            url = f"http://127.0.0.1:{port}"
            server = [
                *(client_python, "-m", "jupyter_server", "--ip=127.0.0.1", f"--port={port}", "--no-browser"),
                *("--allow-root", "--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.port_retries=0"),
                *("--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={self.content.parent}"),
            ]
            if self._started(server, server_env, lambda url=url: answers(f"{url}/api/status")):
                break  # else somebody else has taken the port meanwhile
        else:
            raise self._failed()
        (folder / "url").write_text(url)
        client_env = {"HOME": str(home), "OFFLINE_COLAB": str(folder), "COLAB_CLI_RETRY_BACKOFF": "0"}
        if not self._started([client_python, folder / "front_end.py"], client_env, (folder / "client.sock").exists):
            raise self._failed()

    def _started(self, command: list, env: dict[str, str], is_up: Callable[[], bool]) -> bool:
        """Start a program that stays; false when it has ended, or does not get up."""
        with (self.folder / "vm.log").open("ab") as log:
            process = subprocess.Popen(
                list(map(str, command)),
                cwd=self.content.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **env},
            )
        self.processes.append(process)
        end = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < end:
            if is_up():
                return process.poll() is None
            time.sleep(0.1)
        return False

    def _failed(self) -> RuntimeError:
        self.close()
        return RuntimeError(f"the loopback VM did not come up: {(self.folder / 'vm.log').read_text()[-2000:]}")

    @property
    def assignments(self) -> list[dict]:
        """What Google would take money for."""
        file = self.folder / "assignments.json"
        return json.loads(file.read_text()) if file.exists() else []

    @contextlib.contextmanager
    def changed_assignments(self) -> Iterator[list[dict]]:
        """The assignments, to be changed by one process at a time."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = self.assignments
            yield rows
            new = self.folder / "assignments.new"
            new.write_text(json.dumps(rows))
            os.replace(new, self.folder / "assignments.json")

    def rent_elsewhere(self) -> str:
        """A VM that this client has no name for; its endpoint."""
        row = {
            "accelerator": "A100",
            "endpoint": "fake-elsewhere",
            "variant": 1,
            "machineShape": 0,
            "runtimeProxyInfo": {"token": "secret-token", "tokenExpiresInSeconds": 3600, "url": "http://127.0.0.1:9"},
        }
        with self.changed_assignments() as rows:
            rows.append(row)
        return row["endpoint"]

    def reclaim(self, endpoint: str, base: str) -> None:
        """Take a VM away that holds a run's folder: its assignment, its processes and its files."""
        with self.changed_assignments() as rows:
            rows[:] = [row for row in rows if row["endpoint"] != endpoint]
        # All at once: a look at the VM must not find the folder of a supervisor that was ended.
        gone = Path(f"{base}-gone")
        os.rename(base, gone)
        while self.signal_programs(signal.SIGKILL, base):
            time.sleep(0.05)
        shutil.rmtree(gone, ignore_errors=True)

    def signal_programs(self, number: int, base: str | Path, word: str = "") -> list[int]:
        """Send a signal to what runs on a VM in a run's folder, and has `word` in its command line; those."""
        import psutil

        found = []
        for process in psutil.process_iter(["cmdline", "cwd"]):
            line, cwd = " ".join(process.info["cmdline"] or []), process.info["cwd"] or ""
            ours = str(base) in line or str(base) in cwd
            server = process.pid in [each.pid for each in self.processes] or "ipykernel" in line
            if ours and not server and word in line:
                with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
                    process.send_signal(number)
                    found.append(process.pid)
        return found

    def refuse(self, why: str) -> None:
        """Let the next requests for a VM fail: "412", "400"; "" grants them again."""
        (self.folder / "refuse").write_text(why)

    def set_balance(self, units: float) -> None:
        (self.folder / "balance").write_text(str(units))

    def go_offline(self) -> None:
        (self.folder / "offline").touch()

    def go_online(self) -> None:
        (self.folder / "offline").unlink()

    def cut_next_download(self) -> None:
        """Let the next file that is fetched lack its second half."""
        (self.folder / "cut").touch()

    def close(self) -> None:
        self.signal_programs(signal.SIGKILL, self.content)
        for process in self.processes:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=120)
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    """Does a server answer there?"""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def find_python() -> str | None:
    """A Python that the client runs on: 3.12 or newer."""
    candidates = [shutil.which(f"python3.{minor}") for minor in (12, 13, 14)]
    candidates += sorted(map(str, Path("~/.pyenv/versions").expanduser().glob("3.1[2-9]*/bin/python")))
    for candidate in [sys.executable, *candidates]:
        if candidate:
            check = [candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]
            if subprocess.run(check).returncode == 0:
                return candidate
    return None


def install_client(folder: Path) -> tuple[Path | None, str]:
    """The Python of an environment with the real client and a Jupyter server; None and why where there is none.

    It is made once in `folder`, whoever asks first.
    """
    prepared = os.environ.get("COLAB_CLIENT_PYTHON")
    if prepared:
        return (None, "COLAB_CLIENT_PYTHON=none") if prepared == "none" else (Path(prepared), "")
    python = find_python()
    if python is None:
        return None, "no Python 3.12 or newer, which google-colab-cli needs, was found"
    own = folder / "colab-client/bin/python"
    with (folder / "colab-client.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if own.exists() and not subprocess.run([own, "-c", "import colab_cli, jupyter_server"]).returncode:
            return own, ""
        for command in (
            [python, "-m", "venv", "--clear", own.parent.parent],
            [own, "-m", "pip", "install", "-q", *CLIENT_PACKAGES],
        ):
            try:
                made = subprocess.run(command, capture_output=True, text=True, timeout=900)
            except subprocess.TimeoutExpired:
                return None, "google-colab-cli could not be installed: pip took more than 15 minutes"
            if made.returncode:
                words = (made.stderr or made.stdout).strip().splitlines()
                return None, f"google-colab-cli could not be installed: {words[-1] if words else command}"
    return own, ""
