"""`rlvrctl.py corpus`: fetching from a local repository, interrupted, resumed, updated, refused; status, preview."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import alive, descendants, state, wait_until

from rlvr.corpus import PARTIAL_FILE, SAMPLE_DIR, open_corpus
from rlvr.corpus_fetch import FOLDERS_IN_BATCH

ROOT = Path(__file__).parent.parent
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *IDENTITY, *arguments], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A repository like oeisdata with 58 folders of the sample, and a folder that nobody wants."""
    folder = tmp_path / "server"
    shutil.copytree(SAMPLE_DIR / "seq", folder / "seq")
    (folder / "files").mkdir()
    (folder / "files" / "b000217.txt").write_text("not wanted\n")
    (folder / "README.md").write_text("a stand-in\n")
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    git(folder, "config", "uploadpack.allowFilter", "true")
    commit(folder, "one")
    return folder


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def address(server: Path) -> str:
    return f"file://{server}"


def same_files(first: Path, second: Path) -> bool:
    return subprocess.run(["diff", "-rq", str(first), str(second)], capture_output=True).returncode == 0


@pytest.fixture
def fetch(program, tmp_path):
    def run(*arguments):
        return program("rlvrctl.py", "corpus", "fetch", "--dir", tmp_path / "clone", *arguments)

    return run


def test_a_fetch_brings_seq_alone_and_ends_with_the_status(fetch, server, tmp_path):
    done = fetch("--url", address(server))
    assert done.returncode == 0, done.stderr
    clone = tmp_path / "clone"
    assert same_files(server / "seq", clone / "seq")
    assert sorted(item.name for item in clone.iterdir()) == [".git", "README.md", "seq"]
    assert git(clone, "status", "--porcelain") == "" and git(clone, "pull").strip() == "Already up to date."
    assert "819 sequences" in done.stdout and "a clone, at a commit of" in done.stdout and "0 days old" in done.stdout
    assert "658 pass the filter, in the train split" in done.stdout
    assert "819 of 819 files" in done.stderr and "NOT WHOLE" not in done.stdout
    corpus = open_corpus(clone, progress=False)
    sample = open_corpus(SAMPLE_DIR, progress=False)
    assert corpus.fingerprint == sample.fingerprint and not corpus.is_sample and corpus.partial == ""


def test_an_update_brings_what_changed(fetch, server, tmp_path):
    fetch("--url", address(server))
    assert "at the newest state already" in fetch().stderr
    changed = server / "seq/A000/A000217.seq"
    changed.write_text(changed.read_text().replace("0,1,3,6", "0,1,3,7"))
    (server / "seq/A399").mkdir()
    (server / "seq/A399/A399001.seq").write_text(changed.read_text().replace("A000217", "A399001"))
    (server / "seq/A000/A000290.seq").unlink()
    commit(server, "two")
    done = fetch("--json")
    assert done.returncode == 0, done.stderr
    assert same_files(server / "seq", tmp_path / "clone/seq")
    status = json.loads(done.stdout)
    assert (status["num_sequences"], status["partial"], status["bad"]) == (819, "", {})
    assert status["commit_date"] == git(server, "log", "-1", "--format=%cI").strip()


SLOW_GIT = """#!{python}
import os, sys, time
count = {folder!r} + "/requests"
if "--stdin" in sys.argv and "fetch" in sys.argv:
    open(count, "a").write("x")
    if os.path.getsize(count) == {stop_at}:
        open({folder!r} + "/waiting", "w").close()
        time.sleep(600)
os.execv({git!r}, ["git", *sys.argv[1:]])
"""


@pytest.fixture
def slow_git(tmp_path: Path) -> dict[str, str]:
    """An environment in which the third request for files never ends."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = SLOW_GIT.format(python=sys.executable, folder=str(tmp_path), stop_at=3, git=shutil.which("git"))
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def wait_for_git(process: subprocess.Popen, waiting: Path) -> None:
    """Wait until git is at its endless request, and the program that started it listens to it."""
    assert wait_until(lambda: waiting.exists() or process.poll() is not None, 600)
    assert wait_until(lambda: state(process.pid) in "SXZ")
    assert process.poll() is None and waiting.exists()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_an_interrupted_fetch_is_known_as_partial_and_goes_on(fetch, server, tmp_path, slow_git, number, code):
    clone = tmp_path / "clone"
    command = [sys.executable, str(ROOT / "rlvrctl.py"), "corpus", "fetch", "--dir", str(clone)]
    with subprocess.Popen(
        [*command, "--url", address(server)], env=slow_git, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        wait_for_git(process, tmp_path / "waiting")
        orphans = descendants(process.pid)
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()
            # its git lives on and holds the lock
            assert "another fetch is at work" in fetch().stderr
            for orphan in orphans:
                os.kill(orphan, signal.SIGKILL)
            assert wait_until(lambda: not any(map(alive, orphans)))  # with the last of them the lock goes
        said = process.stderr.read()
    assert process.returncode == code
    if number != signal.SIGKILL:
        assert "goes on" in said and "Traceback" not in said
    have = 2 * FOLDERS_IN_BATCH
    assert (clone / "seq" / PARTIAL_FILE).read_text() == f"{have} of 58 folders\n"
    assert len(list((clone / "seq").glob("A*"))) == have

    notices: list[str] = []
    corpus = open_corpus(clone, notice=notices.append, progress=False)
    assert corpus.partial == f"{have} of 58 folders"
    assert any("not whole" in notice and "corpus fetch" in notice for notice in notices)

    (clone / "seq/A000/A000217.seq").write_text("torn in the mid")
    (clone / ".git/index.lock").touch()  # as a git that was killed leaves them
    (clone / ".git/objects/pack/tmp_pack_123").touch()
    done = fetch()
    assert done.returncode == 0, done.stderr
    assert same_files(server / "seq", clone / "seq") and not (clone / "seq" / PARTIAL_FILE).exists()
    assert not list((clone / ".git/objects/pack").glob("tmp_*"))
    assert git(clone, "status", "--porcelain") == ""


def test_a_resumed_fetch_follows_a_server_that_has_moved_on(fetch, server, tmp_path, slow_git):
    command = [sys.executable, str(ROOT / "rlvrctl.py"), "corpus", "fetch", "--dir", str(tmp_path / "clone")]
    with subprocess.Popen(
        [*command, "--url", address(server)], env=slow_git, stderr=subprocess.DEVNULL, cwd=tmp_path
    ) as process:
        wait_for_git(process, tmp_path / "waiting")
        process.terminate()
    for number in ("A000217", "A000290"):
        file = server / "seq/A000" / f"{number}.seq"
        file.write_text(file.read_text().replace("%N", "%C A000001 new\n%N", 1))
    commit(server, "two")
    assert fetch().returncode == 0
    assert same_files(server / "seq", tmp_path / "clone/seq")


def test_a_clone_made_with_git_is_updated_with_care(fetch, server, tmp_path):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", address(server), str(clone))
    (server / "seq/A000/A000217.seq").unlink()
    commit(server, "two")
    (clone / "seq/A000/A000290.seq").write_text("mine")
    done = fetch()
    assert done.returncode == 0, done.stderr
    assert (clone / "seq/A000/A000290.seq").read_text() == "mine" and not (clone / "seq/A000/A000217.seq").exists()
    assert (clone / "files").exists() and "1 bad" not in done.stdout
    commit(clone, "of my own")
    refused = fetch()
    assert refused.returncode == 2 and "commits of its own" in refused.stderr


def test_changes_in_a_fetched_clone_are_not_overwritten(fetch, server, tmp_path):
    fetch("--url", address(server))
    (tmp_path / "clone/seq/A000/A000217.seq").write_text("mine")
    done = fetch()
    assert done.returncode == 2 and "1 files" in done.stderr and "seq/A000/A000217.seq" in done.stderr
    assert (tmp_path / "clone/seq/A000/A000217.seq").read_text() == "mine"


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The message of a run that was refused."""
    assert done.returncode == 2 and done.stdout == "", done
    message = done.stderr.splitlines()[-1]
    assert message.startswith("error: ") and "Traceback" not in done.stderr
    return message


def test_an_address_that_cannot_be_reached_leaves_nothing(fetch, server, tmp_path):
    message = one_line(fetch("--url", "https://no-such-host.invalid/oeisdata"))
    assert "no-such-host.invalid" in message and "check the network" in message
    assert not (tmp_path / "clone").exists()
    assert "no-such-folder" in one_line(fetch("--url", f"file://{tmp_path}/no-such-folder"))
    assert not (tmp_path / "clone").exists()
    (tmp_path / "clone").mkdir()
    one_line(fetch("--url", f"file://{tmp_path}/no-such-folder"))
    assert list((tmp_path / "clone").iterdir()) == []
    assert fetch("--url", address(server)).returncode == 0
    shutil.rmtree(server)
    assert "cannot fetch from" in one_line(fetch())
    assert open_corpus(tmp_path / "clone", progress=False).num_files == 819


def test_what_is_something_else_is_left_alone(fetch, server, tmp_path, program):
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "notes.txt").write_text("mine")
    assert "is no clone" in one_line(fetch("--url", address(server)))
    assert [item.name for item in clone.iterdir()] == ["notes.txt"]
    git(clone, "init", "-q")
    assert "is no clone of anything" in one_line(fetch())
    git(clone, "remote", "add", "origin", address(server))
    commit(clone, "mine")
    assert "is a git repository, but" in one_line(fetch())
    assert (clone / "notes.txt").read_text() == "mine"
    shutil.rmtree(clone)
    assert fetch("--url", address(server)).returncode == 0
    assert "leave out --url" in one_line(fetch("--url", "https://example.org/other"))
    file = tmp_path / "file"
    file.touch()
    assert "cannot hold a clone" in one_line(program("rlvrctl.py", "corpus", "fetch", "--dir", file))
    shutil.rmtree(server / "seq")
    commit(server, "no sequences")
    other = program("rlvrctl.py", "corpus", "fetch", "--dir", tmp_path / "other", "--url", address(server))
    assert "has no folders seq/A???" in one_line(other) and not (tmp_path / "other").exists()


def test_without_git(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "rlvrctl.py"), "corpus", "fetch"],
        env={**os.environ, "PATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "git is not installed" in one_line(done) and list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_full_disk(program, server, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "none", str(disk)]).returncode:
        pytest.skip("no mount here")
    try:
        done = program("rlvrctl.py", "corpus", "fetch", "--dir", disk / "clone", "--url", address(server))
        message = one_line(done)
        assert "is full" in message and "make room" in message
        assert (disk / "clone/seq" / PARTIAL_FILE).exists()
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        assert program("rlvrctl.py", "corpus", "fetch", "--dir", disk / "clone").returncode == 0
        assert same_files(server / "seq", disk / "clone/seq")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_the_status_counts_by_reason(program, tmp_path):
    shutil.copytree(SAMPLE_DIR / "seq", tmp_path / "own/seq")
    (tmp_path / "own/seq/A000/A000217.seq").write_text("<html>\n")
    file = tmp_path / "own/seq/A000/A000290.seq"
    file.write_text(file.read_text().replace("%K A000290 ", "%K A000290 base,"))
    done = program("rlvrctl.py", "corpus", "status", "--corpus", tmp_path / "own", "--json")
    status = json.loads(done.stdout)
    assert (status["is_sample"], status["partial"], status["num_sequences"]) == (False, "", 818)
    assert status["dropped"] == {"keyword base": 1} and status["train"] + status["eval"] == 817
    assert [files for files in status["bad"].values() if "A000/A000217.seq" in files[0]]
    text = program("rlvrctl.py", "corpus", "status", "--corpus", tmp_path / "own").stdout
    assert "1 dropped: keyword base" in text and "A000217.seq" in text and status["fingerprint"] in text


def test_the_status_of_a_model_is_by_its_keys(program, tmp_path):
    assert program("rlvrctl.py", "init", "--model", "m", "--preset", "tiny").returncode == 0
    sample = f"corpus_dir={SAMPLE_DIR}"
    assert program("rlvrctl.py", "config", "set", "--scope", "global", sample, "min_terms=40").returncode == 0
    for place in (("corpus", "--model", "m", "status"), ("corpus", "status", "--model", "m")):
        status = json.loads(program("rlvrctl.py", *place, "--json").stdout)
        assert status["is_sample"] and status["dropped"]["fewer than 40 terms"] > 100
    assert "did you mean 'm'" in program("rlvrctl.py", "corpus", "status", "--model", "mm").stderr


def test_the_preview_is_what_the_model_sees_and_what_it_does_not(program):
    arguments = ("--corpus", SAMPLE_DIR, "--hide-name")
    done = program("rlvrctl.py", "corpus", "preview", "--anum", "A000290", "217", *arguments)
    assert done.stdout.count("Write a Python function a(n)") == 2 and "Name:" not in done.stdout
    assert "a(9)=81\n" in done.stdout and "Hidden terms: a(10)=100, a(11)=121," in done.stdout
    own = program("oeis_rlvr.py", "--limit", 2, "--split", "eval", "--seed", 3, "--style", "compact", *arguments)
    flags = ("-n", 2, "--split", "eval", "--seed", 3, "--style", "compact", *arguments)
    preview = program("rlvrctl.py", "corpus", "preview", *flags)
    assert preview.stdout == own.stdout and preview.stdout.count("Hidden terms: ") == 2
    rows = json.loads(program("rlvrctl.py", "corpus", "preview", *flags, "--json").stdout)
    assert [f"--- {row['task']}" in own.stdout for row in rows] == [True, True]
    assert ",".join(rows[0]["shown"]) in rows[0]["prompt"] and len(rows[0]["holdout"]) >= 10
