"""What a run records of where it ran: versions, git revision, machine. Standard library only."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "unsloth", "numpy", "sympy", "mpmath")


def provenance() -> dict[str, str]:
    """Name -> value; a package that is not installed is left out, and so is the revision outside a git checkout."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    revision = git_revision(Path(__file__).parent)
    return {
        "python": platform.python_version(),
        **versions,
        **({"git_revision": revision} if revision else {}),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def git_revision(folder: Path) -> str:
    """The commit of the checkout that holds `folder`, with "+changes" when files differ from it; "" without one."""
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+changes"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
