"""A shallow clone of the OEIS data that survives interruptions: folders come in batches, and the next call goes on.

Run: `python rlvrctl.py corpus fetch`; in a program: `fetch(Path("oeisdata"), URL, lambda have, total, text: None)`.

One commit is fetched without its files; then, for a batch of folders at a time, the files that are missing, and these
are checked out. What has come lies in `seq/`, beside a file `INCOMPLETE` until all is there. The result is an ordinary
sparse clone of `seq/`: `git pull` works in it. A clone that somebody made with `git clone` is updated as it is.

Not here: what is in the files (`corpus.py`). Nothing is taken from anywhere but git; git is called, never linked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from rlvr.corpus import PARTIAL_FILE
from rlvr.corpus_reader import FOLDER_NAME
from rlvr.errors import RlvrError
from rlvr.files import replace_file

URL = "https://github.com/oeis/oeisdata"
MIN_GIT = (2, 29)  # the first whose `fetch` reads what to fetch from a pipe
FOLDERS_IN_BATCH = 16  # of a thousand files each: about 15 MB to send
OBJECTS_IN_REQUEST = 16_384
MIN_FREE_BYTES = 4_000_000
OURS = "oeis-rlvr.fetched"  # a key in the clone's config: made here, so nobody's work is in it
LOCK_FILE = "oeis-rlvr-fetch.lock"

Report = Callable[[int, int, str], None]
"""Called with files that are there, files there will be, and what is being done."""

_SETTINGS = (
    *("gc.auto=0", "maintenance.auto=false"),  # a collector in the background would hold our lock
    *("http.lowSpeedLimit=1000", "http.lowSpeedTime=60"),  # bytes a second, seconds: a dead line ends the fetch
    *("core.hooksPath=/dev/null", "advice.detachedHead=false"),
)
_NO_NEGOTIATION = (
    "-c",
    "fetch.negotiationAlgorithm=noop",
)  # as git does it: else it tells that it has all of the commit
_FOREIGN_SETTINGS = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_ASKPASS", "SSH_ASKPASS"),
)
_RECEIVED = re.compile(r"Receiving objects:\s+\d+% \((\d+)/\d+\)(?:, (.+))?")


class GitFailed(Exception):
    """What git said at the end, one line."""


def fetch(folder: Path, url: str | None, report: Report) -> bool:
    """Make, complete or update the clone in `folder`; give whether anything was new. `url` None: its own, else `URL`.

    Raises:
        RlvrError: without git or network, on a full disk, or when the folder is something else. What has come stays,
            and a folder that nothing has come to is as it was before.
    """
    _check_git()
    is_new = _is_free(folder)
    git_dir = folder / ".git"
    if not is_new and not git_dir.is_dir():
        raise RlvrError(f"{folder} is there and is no clone: move it away, or name another folder with --dir")
    existed = folder.exists()
    try:
        git_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RlvrError(f"{folder} cannot be made ({error.strerror}): name another folder with --dir") from None
    try:
        with _lock(folder) as lock:
            return _Clone(folder, lock).fetch(url, is_new, report)
    except BaseException:
        if is_new and not (folder / "seq" / PARTIAL_FILE).exists():
            shutil.rmtree(git_dir if existed else folder, ignore_errors=True)
        raise


def last_commit(seq_dir: Path) -> str:
    """Date of the commit that the clone around a `seq` folder is at, ISO 8601; "" when it is no clone."""
    folder = seq_dir.parent
    if not (folder / ".git").exists() or shutil.which("git") is None:
        return ""
    command = ["git", "-C", str(folder), "log", "-1", "--format=%cI"]
    return subprocess.run(command, env=_environment(), capture_output=True, text=True).stdout.strip()


def _is_free(folder: Path) -> bool:
    try:
        return {item.name for item in folder.iterdir()} <= {".git"} and not (folder / ".git" / "HEAD").exists()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise RlvrError(f"{folder} cannot hold a clone ({error.strerror}): name another folder with --dir") from None


def _check_git() -> None:
    if shutil.which("git") is None:
        raise RlvrError("git is not installed: install it (for example `apt install git`) and run this again")
    said = subprocess.run(["git", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < MIN_GIT:
        wanted = ".".join(map(str, MIN_GIT))
        raise RlvrError(f"git {found[0]} is too old, {wanted} or newer is needed: or run `git clone --depth 1 {URL}`")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN_SETTINGS}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[int]:
    """Hold the clone. Each git inherits the lock: one that outlives a killed fetch keeps the next one out."""
    descriptor = os.open(folder / ".git" / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
    except BlockingIOError:
        raise RlvrError(f"another fetch is at work in {folder}: wait for it, or end it") from None
    finally:
        os.close(descriptor)


def _host(url: str) -> str:
    return urlsplit(url).hostname or url


class _Clone:
    """The clone in a folder while its lock is held."""

    def __init__(self, folder: Path, lock: int):
        self.folder, self.lock = folder, lock
        self.git_dir = folder / ".git"
        self.marker = folder / "seq" / PARTIAL_FILE

    # -- git --------------------------------------------------------------------------------------------------------
    def _run(self, *arguments: str, lines: Sequence[str] = (), on_text: Callable[[str], None] | None = None) -> str:
        """Run git here and give what it printed; `lines` are its input, `on_text` gets what it says meanwhile.

        Raises:
            GitFailed: when it did not end well.
        """
        command = ["git", *(part for setting in _SETTINGS for part in ("-c", setting))]
        command += ["--git-dir", str(self.git_dir.resolve()), "--work-tree", str(self.folder.resolve()), *arguments]
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
            given.write("".join(f"{line}\n" for line in lines).encode())
            given.seek(0)
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=_environment(),
                stdin=given,
                stdout=printed,
                stderr=subprocess.PIPE,
                pass_fds=(self.lock,),
                start_new_session=True,  # Ctrl-C is ours to handle: it must not reach git first
            )
            try:
                said = self._listen(process, on_text)
                process.wait()
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait()
                raise
            if process.returncode:
                raise GitFailed(said or f"git {arguments[0]} ended with {process.returncode}")
            printed.seek(0)
            return printed.read().decode("utf-8", "replace")

    def _listen(self, process: subprocess.Popen[bytes], on_text: Callable[[str], None] | None) -> str:
        """Pass on what git says; give the line that tells why it failed, if it did."""
        assert process.stderr is not None
        rest, said = "", []
        while chunk := os.read(process.stderr.fileno(), 65_536):
            *complete, rest = re.split(r"[\r\n]+", rest + chunk.decode("utf-8", "replace"))
            for line in complete:
                if on_text:
                    on_text(line)
                if line and "%" not in line:
                    said.append(line)
        process.stderr.close()
        said = [line for line in [*said, rest] if line.strip()]
        full = [line for line in said if "No space left" in line or "quota exceeded" in line]
        return next(
            (line for line in [*full, *said] if line.startswith(("fatal:", "error:"))), said[-1] if said else ""
        )

    def _ask(self, *arguments: str) -> str:
        """Give what git answers, "" when it says no."""
        try:
            return self._run(*arguments).strip()
        except GitFailed:
            return ""

    @contextlib.contextmanager
    def _explained(self, url: str = "") -> Iterator[None]:
        """Turn a failure of git into a message; `url` where it needs the network."""
        try:
            yield
        except GitFailed as failed:
            why = str(failed).removeprefix("fatal: ").removeprefix("error: ")
            if self._is_full(why):
                raise RlvrError(
                    f"the disk of {self.folder} is full (the whole takes about 2 GB): make room and run this again; "
                    "what has come stays"
                ) from None
            if url:
                raise RlvrError(
                    f"cannot fetch from {_host(url)} ({why}): check the network and the address {url}, "
                    "then run this again"
                ) from None
            raise RlvrError(f"git failed in {self.folder}: {why}") from None

    def _is_full(self, why: str) -> bool:
        """Did git fail for want of room? Of a file of the working tree it says only that it could not be written."""
        disk = os.statvfs(self.folder)
        has_no_room = disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES or (disk.f_files > 0 and disk.f_favail == 0)
        return "No space left" in why or "quota exceeded" in why or ("unable to" in why and has_no_room)

    # -- the clone --------------------------------------------------------------------------------------------------
    def fetch(self, url: str | None, is_new: bool, report: Report) -> bool:
        if is_new:
            with self._explained():
                self._run("init", "--quiet", "--initial-branch", "main")
                self._run("remote", "add", "origin", url or URL)
                self._run("config", OURS, "true")
        own_url = self._ask("config", "remote.origin.url")
        if not own_url:
            raise RlvrError(f"{self.folder} is no clone of anything: move it away, or name another folder with --dir")
        if url and url.rstrip("/") != own_url.rstrip("/"):
            raise RlvrError(
                f"{self.folder} is a clone of {own_url}, not of {url}: leave out --url, or name another folder with "
                "--dir"
            )
        if is_new or self._ask("config", OURS):
            return self._fetch_ours(own_url, report)
        return self._update_theirs(own_url, report)

    def _fetch_ours(self, url: str, report: Report) -> bool:
        was_whole = not self.marker.exists() and bool(self._ask("rev-parse", "--verify", "--quiet", "HEAD"))
        if was_whole:
            self._refuse_changes()
        else:
            self._sweep()
        with self._explained(url):
            branch = self._default_branch()
            text = f"asking {_host(url)} for the newest state"
            report(0, 0, text)

            def on_text(line: str) -> None:
                if (found := _RECEIVED.match(line)) and found[2]:
                    report(0, 0, f"{text} ({found[2]})")

            where = f"+refs/heads/{branch}:refs/remotes/origin/{branch}"
            flags = ("--depth", "1", "--filter=blob:none", "--no-tags", "--progress")
            self._run("fetch", *flags, "origin", where, on_text=on_text)
        with self._explained():
            target = self._run("rev-parse", f"refs/remotes/origin/{branch}").strip()
            if was_whole and target == self._ask("rev-parse", "HEAD"):
                return False
            counts = self._count_files(target)
            for key, value in (
                *(("core.sparseCheckout", "true"), ("core.sparseCheckoutCone", "true")),
                *((f"branch.{branch}.remote", "origin"), (f"branch.{branch}.merge", f"refs/heads/{branch}")),
            ):
                self._run("config", key, value)
            self._run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        self.marker.parent.mkdir(exist_ok=True)
        # What an earlier call has brought may have changed since, or be half written; it comes first.
        known = set(counts) if was_whole else counts.keys() & self._sparse_folders()
        waiting = [name for name in counts if name not in known]
        batches = [waiting[start : start + FOLDERS_IN_BATCH] for start in range(0, len(waiting), FOLDERS_IN_BATCH)]
        done: list[str] = []
        for batch in [sorted(known), *batches] if known else batches:
            how_far = f"{max(len(done), len(known))} of {len(counts)} folders"
            self.marker.write_text("an update is not finished\n" if was_whole else f"{how_far}\n")
            self._bring(batch, done, target, counts, url, report)
            done += batch
        self._check_out(None, target)
        self.marker.unlink()
        return True

    def _bring(
        self, batch: list[str], done: list[str], target: str, counts: Counter[str], url: str, report: Report
    ) -> None:
        """Fetch what is missing of the folders in `batch`, and check out all up to these."""
        total = counts.total()
        have = sum(counts[name] for name in done)
        trees = [f"{target}:seq/{name}" for name in batch]
        with self._explained():
            listed = self._run("rev-list", "--objects", "--no-object-names", "--missing=print", "--stdin", lines=trees)
        missing = [line[1:] for line in listed.split() if line.startswith("?")]
        have += sum(counts[name] for name in batch) - len(missing)

        def on_text(line: str) -> None:
            if found := _RECEIVED.match(line):
                report(min(have + int(found[1]), total), total, found[2] or "")

        for start in range(0, len(missing), OBJECTS_IN_REQUEST):
            request = missing[start : start + OBJECTS_IN_REQUEST]
            flags = ("--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none", "--stdin")
            with self._explained(url):
                self._run(*_NO_NEGOTIATION, "fetch", "--progress", *flags, "origin", lines=request, on_text=on_text)
            have += len(request)
        self._check_out(dict.fromkeys([*done, *batch]), target)
        report(have, total, "")

    def _check_out(self, folders: dict[str, None] | None, target: str) -> None:
        """Make the files of these folders of `seq` what they are in `target`; None: of all."""
        patterns = ["/*", "!/*/", "/seq/"]
        if folders is not None:
            patterns += ["!/seq/*/", *(f"/seq/{name}/" for name in folders)]
        file = self.git_dir / "info" / "sparse-checkout"
        file.parent.mkdir(exist_ok=True)
        replace_file(file, "".join(f"{pattern}\n" for pattern in patterns).encode())
        with self._explained():
            self._run("reset", "--hard", "--quiet", target)

    def _sparse_folders(self) -> set[str]:
        file = self.git_dir / "info" / "sparse-checkout"
        return set(re.findall(r"^/seq/(A\d+)/$", file.read_text(), re.MULTILINE)) if file.exists() else set()

    def _default_branch(self) -> str:
        found = re.search(r"^ref: refs/heads/(\S+)\tHEAD$", self._run("ls-remote", "--symref", "origin", "HEAD"), re.M)
        if found is None:
            raise GitFailed("it has no default branch")
        return found[1]

    def _count_files(self, target: str) -> Counter[str]:
        """Give folder of `seq` -> number of its files, in a commit.

        Raises:
            RlvrError: when there is none, and so it is no copy of the OEIS data.
        """
        try:
            paths = self._run("ls-tree", "-r", "--name-only", f"{target}:seq").splitlines()
        except GitFailed:
            paths = []
        counts = Counter(path.partition("/")[0] for path in paths if "/" in path)
        counts = Counter({name: counts[name] for name in sorted(counts) if FOLDER_NAME.fullmatch(name)})
        if not counts:
            raise RlvrError(
                f"{self._ask('config', 'remote.origin.url')} has no folders seq/A???: name a copy of {URL} with --url"
            )
        return counts

    def _refuse_changes(self) -> None:
        with self._explained():
            changed = self._run("status", "--porcelain", "--untracked-files=no").splitlines()
        if changed:
            raise RlvrError(
                f"{len(changed)} files in {self.folder} were changed, {changed[0][3:]} among them, and an update "
                f"would overwrite them: move them away, or run `git -C {self.folder} checkout .`"
            )

    def _sweep(self) -> None:
        """Remove what a git that was killed has left: it held our lock, so none is at work."""
        for left_over in [*self.git_dir.rglob("*.lock"), *self.git_dir.glob("objects/pack/tmp_*")]:
            if left_over.name != LOCK_FILE:
                left_over.unlink(missing_ok=True)

    def _update_theirs(self, url: str, report: Report) -> bool:
        """Move a clone that a person made to the newest commit of its branch, unless work of theirs is in the way."""
        branch = self._ask("symbolic-ref", "--short", "HEAD")
        if not branch or not self._ask("ls-tree", "HEAD", "seq/"):
            raise RlvrError(
                f"{self.folder} is a git repository, but no branch of a clone of {URL} is checked out there: "
                "name another folder with --dir"
            )
        remote = f"refs/remotes/origin/{branch}"
        before = self._ask("rev-parse", "HEAD")
        known = self._ask("rev-parse", "--verify", "--quiet", remote)
        # rev-list, because merge-base answers by its exit code alone
        if known and known != before and not self._ask("rev-list", "-n", "1", f"HEAD..{known}"):
            raise RlvrError(f"{self.folder} has commits of its own: update it with git, or name another folder")
        report(0, 0, f"asking {_host(url)} for the newest state")
        flags = ["--no-tags", *(["--depth", "1"] if (self.git_dir / "shallow").exists() else [])]
        with self._explained(url):
            self._run("fetch", *flags, "origin", f"+refs/heads/{branch}:{remote}")
        after = self._ask("rev-parse", remote)
        if after == before:
            return False
        with self._explained(url if self._ask("config", "remote.origin.promisor") else ""):
            self._run("reset", "--keep", "--quiet", after)
        return True
