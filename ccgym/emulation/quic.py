"""QUIC with a library: the program ``ccgym-quic`` for its flows, and whether it is installed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sysconfig
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from ccgym.emulation.programs import ask
from ccgym.errors import RealPathError

PROGRAM: Final = "ccgym-quic"
"""The program (``crates/optional/quic-flows``), which no wheel contains."""

LABELS: Final = {"cubic": "Cubic", "bbr": "BBR", "reno": "Reno"}
"""The library's own congestion controllers, with their labels."""

ANSWER_S: Final = 5.0
"""Maximum time of the program to list its controllers, seconds."""

HOW_TO_GET_IT: Final = (
    "`make setup` in a checkout, or `cargo install --locked --path crates/optional/quic-flows`, builds it"
)
"""Commands that build the program."""


_ROW: Final = re.compile(r"(?P<name>[a-z][a-z0-9_]*) (?P<label>[ -~]{1,60})")
"""A line of the program's list of controllers."""


def program() -> Path | None:
    """Return the program's file, next to this Python's programs or on the search path; None if it is not installed."""
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    found = shutil.which(PROGRAM, path=places)
    return None if found is None else Path(found).absolute()


def why_unavailable() -> str | None:
    """Return the reason why QUIC flows cannot run here; None if they can."""
    return None if program() is not None else f"there is no program {PROGRAM} here ({HOW_TO_GET_IT})"


def labels() -> Mapping[str, str]:
    """Return the congestion controllers, with their labels.

    These are the controllers in the installed program, also a user's own; without the program, the library's.
    """
    found = program()
    return LABELS if found is None else _labels_of(found, found.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _labels_of(path: Path, _changed_ns: int) -> Mapping[str, str]:
    try:
        answer = ask([str(path), "--controllers"], ANSWER_S, PROGRAM)
    except RealPathError:
        return LABELS
    rows = [_ROW.fullmatch(line) for line in answer.output.splitlines()]
    found = {row["name"]: row["label"] for row in rows if row is not None}
    return found if answer.status == 0 and found else LABELS


def version(algorithm: str) -> str | None:
    """Return the program's checksum for a user's own controller, which builds may change; for the library's, None."""
    found = program()
    return None if found is None or algorithm in LABELS else _checksum_of(found, found.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _checksum_of(path: Path, _changed_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def label(algorithm: str) -> str:
    """Return the label: ``QUIC BBR (quinn)``."""
    return f"QUIC {labels().get(algorithm, algorithm)} (quinn)"
