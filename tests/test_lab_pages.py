"""The lab's notebook runs from top to bottom, and its slides need nothing but themselves."""

import json
import re
from pathlib import Path

import pytest

from rlvr.lab.task import Problem, grade

PAGES = Path(__file__).parent.parent / "docs" / "lab"


@pytest.mark.slow
def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(PAGES / "lab.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook,
        timeout=1800,
        startup_timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(PAGES)}},
    ).execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    )
    assert re.search(r"2\+3=5;5\*2=11;11 +reward 0\.35  exact False", printed)
    assert "The exact share" in printed
    assert "1.00  the bare answer: '6'" in printed


def test_the_slides_are_self_contained():
    page = (PAGES / "slides.html").read_text(encoding="utf-8")
    assert page.count("<section>") == 13
    linked = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", page)
    assert len(linked) == 1 and linked[0].startswith("data:image/png;base64,")
    assert "url(" not in page and "@import" not in page
    for key in ("ArrowRight", "ArrowLeft", "'Home'", "'End'", "'f'"):
        assert key in page


def test_the_update_by_hand_adds_up():
    text = (PAGES / "by-hand.md").read_text(encoding="utf-8")
    a, b, c = map(int, re.search(r"`Q:(\d+)\+(\d+),\*(\d+)`", text).groups())
    rows = re.findall(r"^\| \d \| `(.*?)` \| .*? \| (\d\.\d\d) \| ([+-]\d\.\d{3}) \|", text, re.MULTILINE)
    assert len(rows) == 8
    rewards = [float(reward) for _, reward, _ in rows]
    assert rewards == [grade(Problem(a, b, c), answer).reward for answer, _, _ in rows]
    for reward, (_, _, advantage) in zip(rewards, rows, strict=True):
        assert float(advantage) == pytest.approx(reward - sum(rewards) / 8, abs=6e-4)


def test_the_page_says_what_its_receipts_say():
    page = (PAGES / "README.md").read_text(encoding="utf-8")
    over = json.loads((PAGES / "five-seeds.json").read_text(encoding="utf-8"))["over_seeds"]
    for name in ("exact_gain", "verified_gain", "greedy_gain", "random_exact_gain", "exact_gain_over_random"):
        estimate, low, high = (100 * number for number in over[name])
        assert f"{estimate:+.1f} [{low:+.1f}, {high:+.1f}]" in page, name
