"""Provenance of a result: versions, machine, command line, time."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ccgym.emulation.checkout import git_summary
from ccgym.evaluation.backends import SHORT_PLACES, SIMULATED
from ccgym.evaluation.pantheon import utc_text

PACKAGES = ("pydantic", "gymnasium")
"""Packages with recorded versions, in addition to Python, numpy and ccgym."""


def provenance(
    description: str, command: Sequence[str], started_epoch_s: float, wall_s: float, backend: str = SIMULATED
) -> dict[str, Any]:
    """Return the provenance to record with the results of a sweep.

    Args:
        description: description of the path.
        command: the command line, as a list of words.
        started_epoch_s: start of the sweep, seconds since the epoch.
        wall_s: duration of the sweep, seconds.
        backend: name of the backend that carried the packets.
    """
    return {
        "command": shlex.join(command),
        "path": description,
        "backend": backend,
        "place": SHORT_PLACES[backend],
        "started": f"{utc_text(started_epoch_s)} UTC",
        "wall_s": round(wall_s, 3),
        "versions": versions(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "git": git_summary(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the software that computed the results."""
    from ccgym import _core

    found = {"ccgym": _core.__version__, "python": platform.python_version(), "numpy": np.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
