"""The demo, as `make demo` runs it but with fewer steps: every part of the product, end to end."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

from rlvr import curves, records
from rlvr.errors import RlvrError
from rlvr.records import Evaluation


@pytest.mark.slow
def test_the_demo_runs_from_tasks_to_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rlvr.demo", "--steps", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    cycle = tmp_path / "training/demo/001"
    assert (cycle / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert done.stdout.count("HELD-OUT COMPARISON") == 2
    before, after = (records.read(cycle / f"evals/{name}/eval.json", Evaluation) for name in ("before", "base"))
    assert [person.name for person in after.participants] == ["base", "001"]
    # Asked the same thing twice, the base gives the same answers.
    assert before.participants[0].outcomes == after.participants[0].outcomes
    assert before.num_tasks == after.num_tasks > 50


def test_smoothing_is_the_bias_corrected_average():
    assert curves.smoothed([2.0, 2.0, 2.0]).tolist() == pytest.approx([2, 2, 2])
    assert curves.smoothed([1.0, 0.0], weight=0.5).tolist() == pytest.approx([1, 1 / 3])
    assert curves.smoothed([None, 1.0, None])[1:].tolist() == pytest.approx([1, 1])


def test_a_picture_of_nothing_is_refused(tmp_path):
    with pytest.raises(RlvrError, match=r"metrics.jsonl: no such file"):
        curves.draw_file(tmp_path / "metrics.jsonl", tmp_path / "x.png")
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(RlvrError, match="holds no step yet"):
        curves.draw_file(tmp_path / "metrics.jsonl", tmp_path / "x.png")
