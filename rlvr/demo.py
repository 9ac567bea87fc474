"""The README's demo: look at tasks, evaluate the base, train one cycle, evaluate the adapter, draw the curves.

    python -m rlvr.demo [--seed 0] [--steps N]      (or: make demo)

Runs the same programs that a user runs, with the tiny model and the bundled sample, and prints each command. What it
makes lies in `training/demo/001/`, which it empties first.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rlvr import curves
from rlvr.arguments import Parser, positive, run_program

ROOT = Path(__file__).parent.parent
CYCLE = Path("training/demo/001")


def run(title: str, program: str, *arguments: object) -> None:
    """Print the command and run it; a failure ends the demo with the command's own exit code."""
    command = [os.path.relpath(ROOT / program), *map(str, arguments)]
    print(f"\n=== {title}\n$ python {' '.join(command)}", flush=True)
    done = subprocess.run([sys.executable, *command])
    if done.returncode:
        raise SystemExit(done.returncode)


def main() -> int:
    parser = Parser(description="Run the whole main job with the tiny model on the bundled sample.")
    parser.add_argument("--seed", type=int, default=0, help="seed of the training; default 0")
    parser.add_argument("--steps", type=positive, help="training steps; default: what the preset says")
    args = parser.parse_args()

    began = time.monotonic()
    shutil.rmtree(CYCLE, ignore_errors=True)
    sample = os.path.relpath(ROOT / "rlvr/assets/sample")
    tiny = ("--preset", "tiny", "--corpus-dir", sample, "--seed", args.seed)
    steps = ("--max-steps", args.steps) if args.steps else ()
    held_out = ("eval_oeis.py", *tiny, "-n", 1000, "-k", 8)
    few = ("--limit", 3, "--style", "compact", "--corpus", sample)
    run("1/4  Three tasks, as the model sees them", "oeis_rlvr.py", *few)
    before = ("--adapters", "base", "--out", CYCLE / "evals/before")
    run("2/4  The base model on held-out sequences", *held_out, *before)
    run("3/4  One GRPO cycle", "gemma4_oeis_rlvr.py", *tiny, *steps, "--cycle", CYCLE)
    run("4/4  Base and adapter", *held_out, "--adapters", "base", CYCLE, "--out", CYCLE / "evals/base")
    curves.draw_file(CYCLE / "metrics.jsonl", CYCLE / "curves.png", f"Demo, seed {args.seed}")
    print(f"\nDone in {(time.monotonic() - began) / 60:.1f} minutes. Learning curves: {CYCLE / 'curves.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
