"""The kernel's congestion controls: their names, and which of them can be used with this kernel."""

from __future__ import annotations

import re
import socket
from functools import cache
from pathlib import Path
from typing import Final

AVAILABLE_FILE: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""File with the loaded congestion controls."""

LABELS: Final = {
    "bbr": "BBR",
    "bbr1": "BBRv1",
    "bbr2": "BBRv2",
    "bbr3": "BBRv3",
    "bic": "BIC",
    "brutal": "Brutal",
    "cdg": "CDG",
    "cubic": "Cubic",
    "dctcp": "DCTCP",
    "highspeed": "HighSpeed",
    "htcp": "H-TCP",
    "hybla": "Hybla",
    "illinois": "Illinois",
    "lp": "LP",
    "nv": "NV",
    "prague": "Prague",
    "reno": "Reno",
    "scalable": "Scalable",
    "vegas": "Vegas",
    "veno": "Veno",
    "westwood": "Westwood+",
    "yeah": "YeAH",
}
"""Labels of the known algorithms of kernels."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,14}")
"""Pattern of a name (the kernel's limit is 15 characters)."""


def label(algorithm: str) -> str:
    """Return the label: ``TCP BBR (kernel)``."""
    return f"TCP {LABELS.get(algorithm, algorithm)} (kernel)"


def available() -> tuple[str, ...]:
    """Return the loaded algorithms, in the kernel's order; empty if the kernel does not list them."""
    try:
        return tuple(AVAILABLE_FILE.read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):
        return ()


@cache
def why_unavailable(algorithm: str) -> str | None:
    """Return the reason why flows cannot use this algorithm here; None if they can.

    It is tried on a socket, since the kernel loads some modules only when they are requested.
    """
    loaded = available()
    if algorithm in loaded or _can_be_set(algorithm):
        return None
    has = f"it has {', '.join(loaded)}" if loaded else "it does not list its algorithms"
    return f"this kernel has no {algorithm} ({has}; `modprobe tcp_{algorithm}` loads it if it is built)"


def _can_be_set(algorithm: str) -> bool:
    option = getattr(socket, "TCP_CONGESTION", None)
    if option is None:
        return False
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.IPPROTO_TCP, option, algorithm.encode())
    except OSError:
        return False
    return True
