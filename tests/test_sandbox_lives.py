"""The sandbox and the accidents of its surroundings: leaks, killed workers, threads, forks, signals, closed streams.

Run: python -m pytest tests/test_sandbox_lives.py
"""

import contextlib
import gc
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import alive, children, cpu_ticks, descendants, job, wait_until

from rlvr.sandbox.grader import Sandbox

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"), reason="isolation needs Linux"
)


def test_thousands_of_programs_leave_nothing_behind():
    kinds = [
        "def a(n): return n  # {}",
        "def a(n): return n + 1  # {}",
        "def a(n) return n  # {}",
        "import os\ndef a(n): os._exit(3)  # {}",
        "def a(n): return 1 << 120000  # {}",
    ]
    gc.collect()  # what earlier tests have left open shall not be closed in between
    others = set(children())
    with Sandbox(first_pass_s=5.0) as sandbox:
        assert sandbox._pool is not None
        while not sandbox._pool.live or {zygote.state for zygote in sandbox._pool.live} != {"ready"}:
            sandbox.run([job(kind.format(time.monotonic_ns()), lambda n: n) for kind in kinds])
        before = set(os.listdir("/proc/self/fd")), set(children()) - others
        workers = {pid for guard in before[1] for pid in (guard, *descendants(guard))}
        worker_fds = {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in workers}
        results = sandbox.run([job(kinds[k % 5].format(k), lambda n: n, range(3)) for k in range(2000)])
        assert [r.verdict for r in results] == ["ok", "wrong", "syntax_error", "crash", "flood"] * 400
        assert (set(os.listdir("/proc/self/fd")), set(children()) - others) == before
        assert workers <= descendants(os.getpid())
        assert {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in workers} == worker_fds
        assert sandbox.infra_counts == {}
    assert not any(alive(pid) for pid in workers)
    assert set(children()) <= others


def test_a_light_batch_starts_no_heavy_worker():
    before = descendants(os.getpid())
    with Sandbox(workers=1) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        light = descendants(os.getpid()) - before
        sandbox.run([job("import numpy\ndef a(n): return n", lambda n: n)])
        both = descendants(os.getpid()) - before
        assert light < both and (len(light), len(both)) == (2, 4)  # a guard and a zygote each


@pytest.mark.parametrize("victim", ["guard", "zygote"])
def test_a_killed_worker_costs_no_score(victim):
    before = set(children())
    with Sandbox(workers=1, first_pass_s=5.0) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        [guard] = set(children()) - before
        [zygote] = descendants(guard)
        killer = threading.Timer(0.3, os.kill, (guard if victim == "guard" else zygote, signal.SIGKILL))
        killer.start()
        spin = "def a(n):\n    for i in range(150000): pass\n    return n  # {}"
        results = sandbox.run([job(spin.format(k), lambda n: n, range(3)) for k in range(60)])
        killer.join()
        assert {result.verdict for result in results} == {"ok"}
        assert wait_until(lambda: not alive(zygote) and not alive(guard))
        assert sandbox.run([job("def a(n): return n + 2", lambda n: n + 2)])[0].verdict == "ok"
    assert set(children()) <= before


def test_infra_when_every_worker_dies():
    """A candidate cannot do this; a machine without memory can. The verdict is infra: neither right nor wrong."""
    before = set(children())
    with Sandbox(workers=1, first_pass_s=300.0) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        stop = threading.Event()

        def kill_on():
            while not stop.is_set():
                for guard in set(children()) - before:
                    for zygote in descendants(guard):
                        if any(cpu_ticks(pid) > 50 for pid in descendants(zygote)):  # a candidate, not the self-test
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(zygote, signal.SIGKILL)
                time.sleep(0.05)

        killer = threading.Thread(target=kill_on)
        killer.start()
        try:
            [result] = sandbox.run([job("def a(n):\n    while True: pass", lambda n: n)])
        finally:
            stop.set()
            killer.join()
        assert result.verdict == "infra" and result.passes == 3
        assert sum(sandbox.infra_counts.values()) == 3
    assert set(children()) <= before


def test_from_threads_that_end_and_several_at_once():
    before = set(children())
    with Sandbox(workers=1, first_pass_s=5.0) as shared, Sandbox(workers=1, first_pass_s=5.0) as other:
        verdicts = []

        def work(box, number):
            results = box.run([job(f"def a(n): return n * {number}  # {k}", lambda n: n * number) for k in range(5)])
            verdicts.extend(result.verdict for result in results)

        for _ in range(2):  # the threads that started the workers are gone in the second round
            threads = [threading.Thread(target=work, args=(box, k)) for box in (shared, other) for k in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert verdicts == ["ok"] * 30
            verdicts.clear()
        assert len(set(children()) - before) == 2
    assert set(children()) <= before


def test_after_a_fork_the_child_has_workers_of_its_own():
    with Sandbox(workers=1, first_pass_s=5.0) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                [result] = sandbox.run([job("def a(n): return n + 3", lambda n: n + 3)])
                sandbox.close()
                status = 0 if result.verdict == "ok" and children() == [] else 2  # the parent's are not its own
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert sandbox.run([job("def a(n): return n + 4", lambda n: n + 4)])[0].verdict == "ok"


SCRIPT = """
import os, sys, time
sys.path[:0] = [{root!r}]
{setup}
from rlvr.sandbox.grader import Job, Sandbox
sandbox = Sandbox(first_pass_s=60.0)
print(sandbox.run([Job("def a(n): return n", (1, 2), (1, 2))])[0].verdict, flush=True)
{then}
"""


def script(setup: str = "", then: str = "", **popen) -> subprocess.Popen:
    code = SCRIPT.format(root=str(ROOT), setup=setup, then=then)
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen
    )


@pytest.mark.parametrize("closed", ["(0,)", "(0, 2)"])
def test_with_standard_streams_closed(closed):
    process = script(setup=f"for fd in {closed}: os.close(fd)", then="sandbox.close(); print('closed')")
    out, _ = process.communicate(timeout=300)
    assert out.split() == ["ok", "closed"] and process.returncode == 0


def test_exit_without_close():
    process = script(then="pass")
    out, err = process.communicate(timeout=300)
    assert (out.split(), err, process.returncode) == (["ok"], "", 0)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_the_grader(how):
    process = script(then="sandbox.run([Job('def a(n):\\n    while True: pass', (1,), (1,))])", start_new_session=True)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().strip() == "ok"
    assert wait_until(lambda: len(descendants(process.pid)) > 2)  # guards, zygotes, and a candidate at work
    below = descendants(process.pid)
    os.kill(process.pid, how) if how == signal.SIGKILL else os.killpg(process.pid, how)
    process.wait(timeout=300)
    assert wait_until(lambda: not any(alive(pid) for pid in below))
    if how == signal.SIGINT:
        assert "KeyboardInterrupt" in process.stderr.read()
    process.stdout.close()
    process.stderr.close()


@pytest.mark.slow
def test_in_a_process_with_torch_and_its_threads():
    pytest.importorskip("torch")
    setup = "import torch\ntorch.randn(300, 300) @ torch.randn(300, 300)"
    out, err = script(setup=setup, then="sandbox.close()").communicate(timeout=300)
    assert out.split() == ["ok"], err
