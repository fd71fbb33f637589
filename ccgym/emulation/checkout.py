"""The checkout of ccgym that is running."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def git_summary() -> str:
    """Return ``branch: main @ SHA`` of the running checkout, and its changed files, as in Pantheon's metadata.

    For an installed package without a checkout, return the version of ccgym.
    """
    from ccgym import _core

    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return f"ccgym {_core.__version__}"
    try:
        commit = _git(root, "rev-parse", "HEAD")
        branch = _git(root, "rev-parse", "--abbrev-ref", "HEAD")
        changed = _git(root, "status", "--short", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return f"ccgym {_core.__version__}"
    return f"branch: {branch} @ {commit}" + (f"\n{changed}" if changed else "")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, encoding="utf-8", timeout=10, check=True
    )
    return done.stdout.rstrip()
