"""A Colab without Google: the real command line client, with only Google's front end replaced, and a loopback VM.

`start_vm(folder, client_python)` starts a Jupyter server whose kernels run with this project's Python, and gives the
environment in which the program `colab` on PATH talks to it. A VM is reclaimed by `reclaim(folder)`. What runs in the
VM sees `folder/vm/content` where a Colab VM has /content. Made for tests; nothing here is contacted outside loopback.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

FRONT_END = '''\
"""The real client; only the calls to Google are answered from a file."""
import json, os, pathlib, types, uuid
import colab_cli.common as common
from colab_cli.client import (AssignmentVariant, ColabRequestError, ListedAssignment, PostAssignmentResponse,
    TooManyAssignmentsError)
from colab_cli.cli import main

FOLDER = pathlib.Path(os.environ["OFFLINE_COLAB"])
DB = FOLDER / "assignments.json"

class FrontEnd:
    def rows(self):
        return json.loads(DB.read_text()) if DB.exists() else []
    def assign(self, nbh, variant=None, accelerator=None, shape=None):
        refusal = FOLDER / "refuse"
        why = refusal.read_text().strip() if refusal.exists() else ""
        if why == "412":
            raise TooManyAssignmentsError("412")
        if why == "login":
            raise SystemExit("[colab] Not logged in.")
        if why:
            raise ColabRequestError(why, None, types.SimpleNamespace(status_code=int(why)), "")
        row = dict(accelerator=accelerator.value, endpoint="fake-" + uuid.uuid4().hex[:8],
                   variant=AssignmentVariant[variant.value].value, machineShape=int(shape or 0),
                   runtimeProxyInfo=dict(token="secret-token", tokenExpiresInSeconds=3600,
                                         url=(FOLDER / "url").read_text()))
        DB.write_text(json.dumps(self.rows() + [row]))
        return PostAssignmentResponse.model_validate(row)
    def list_assignments(self):
        return [ListedAssignment.model_validate(row) for row in self.rows()]
    def unassign(self, endpoint):
        DB.write_text(json.dumps([row for row in self.rows() if row["endpoint"] != endpoint]))
    def get_consumption_user_info(self):
        balance = FOLDER / "balance"
        return types.SimpleNamespace(
            paid_compute_units_balance=float(balance.read_text()) if balance.exists() else 100.0,
            consumption_rate_hourly=0.0, assignments_count=len(self.rows()),
        )

common.state._client = FrontEnd()

def serve(path):
    """Fork once a call: importing the client takes seconds. The caller sends its descriptors, arguments and folder."""
    import socket, sys
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
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

PROGRAM = '''\
#!{python} -S
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
env = {{name: os.environ[name] for name in ("COLUMNS", "NO_COLOR") if name in os.environ}}
call = json.dumps({{"arguments": sys.argv[1:], "cwd": os.getcwd(), "env": env}}).encode()
socket.send_fds(server, [call], [0, 1, 2])
sys.exit(json.loads(server.recv(64) or b"1"))
'''

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
    """A VM on loopback and the client that talks to it; `env` is what a program needs to use both."""

    def __init__(self, folder: Path, client_python: Path):
        self.folder = folder
        self.vm = folder / "vm"
        content = self.vm / "content"
        content.mkdir(parents=True)
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
        programs = folder / "bin"
        programs.mkdir()
        client = programs / "colab"
        client.write_text(PROGRAM.format(python=client_python, path=str(folder / "client.sock")))
        client.chmod(0o755)
        self.client = subprocess.Popen(
            [client_python, folder / "front_end.py"],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(home), "OFFLINE_COLAB": str(folder), "COLAB_CLI_RETRY_BACKOFF": "0"},
        )
        self.env = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "RLVR_COLAB_POLL_S": "0.5",
        }
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (folder / "url").write_text(f"http://127.0.0.1:{port}")
        self.log = (folder / "vm.log").open("wb")
        self.server = subprocess.Popen(
            [
                *(client_python, "-m", "jupyter_server", "--ip=127.0.0.1", f"--port={port}", "--no-browser"),
                *("--allow-root", "--IdentityProvider.token=", "--ServerApp.password="),
                *("--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={self.vm}"),
            ],
            cwd=self.vm,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={
                **os.environ,
                "HOME": str(home),
                "IPYTHONDIR": str(folder / "ipython"),
                "JUPYTER_PATH": str(folder / "jupyter"),
                "OFFLINE_CONTENT": str(content),
                "OMP_NUM_THREADS": "1",
            },
        )
        self._wait_until_up(f"http://127.0.0.1:{port}/api/status")

    def _wait_until_up(self, url: str) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    if (self.folder / "client.sock").exists():
                        return
            except OSError:
                if self.server.poll() is not None or self.client.poll() is not None:
                    break
                time.sleep(0.1)
        raise RuntimeError(f"the loopback VM did not come up: {(self.folder / 'vm.log').read_text()[-2000:]}")

    @property
    def assignments(self) -> list[dict]:
        """What Google would take money for."""
        file = self.folder / "assignments.json"
        return json.loads(file.read_text()) if file.exists() else []

    def reclaim(self) -> None:
        """Take the VM away: its sessions, its processes and its files."""
        (self.folder / "assignments.json").write_text("[]")
        self.stop_remote_programs()
        for path in (self.vm / "content").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def stop_remote_programs(self) -> None:
        """End what was started on the VM and does not belong to its server."""
        import psutil

        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if any(str(self.vm) in word for word in words) and process.pid != self.server.pid:
                process.kill()

    def refuse(self, why: str) -> None:
        """Let the next request for a VM fail: "412", "400"; "" grants it again."""
        (self.folder / "refuse").write_text(why)

    def set_balance(self, units: float) -> None:
        (self.folder / "balance").write_text(str(units))

    def close(self) -> None:
        self.stop_remote_programs()
        for process in (self.client, self.server):
            process.terminate()
            process.wait(timeout=30)
        self.log.close()


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


def install_client(folder: Path) -> Path | None:
    """The Python of an environment that holds the real client and a Jupyter server; None where that cannot be made."""
    prepared = os.environ.get("COLAB_CLIENT_PYTHON")
    if prepared:
        return Path(prepared)
    python = find_python()
    if python is None:
        return None
    environment = folder / "client"
    own = environment / "bin/python"
    made = subprocess.run([python, "-m", "venv", environment]).returncode == 0 and (
        subprocess.run(
            [own, "-m", "pip", "install", "-q", "google-colab-cli==0.7.5", "jupyter-server>=2.14,<3"],
            capture_output=True,
            timeout=600,
        ).returncode
        == 0
    )
    return own if made else None
