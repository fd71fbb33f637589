"""QUIC by a library: the program ``ccgym-quic`` that carries its flows, and whether it is here."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Final

PROGRAM: Final = "ccgym-quic"
"""The program (``crates/ccgym-quic``), which no wheel contains."""

LABELS: Final = {"cubic": "Cubic", "bbr": "BBR", "reno": "Reno"}
"""The library's congestion controllers, with their names for people."""

HOW_TO_GET_IT: Final = "`make setup` in a checkout, or `cargo install --path crates/ccgym-quic`, builds it"
"""What makes the program."""


def program() -> Path | None:
    """Where the program is: next to this Python's own programs, or on the search path; None if it is not here."""
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    found = shutil.which(PROGRAM, path=places)
    return None if found is None else Path(found).absolute()


def why_unavailable() -> str | None:
    """Why flows of QUIC cannot run here; None if they can."""
    return None if program() is not None else f"there is no program {PROGRAM} here ({HOW_TO_GET_IT})"


def label(algorithm: str) -> str:
    """The name for people: ``QUIC BBR (quinn)``."""
    return f"QUIC {LABELS.get(algorithm, algorithm)} (quinn)"
