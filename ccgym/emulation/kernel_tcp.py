"""The kernel's congestion controls: their names, and which of them this kernel lets us use."""

from __future__ import annotations

import re
import socket
from functools import cache
from pathlib import Path
from typing import Final

AVAILABLE_FILE: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""What the kernel has loaded."""

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
"""Labels of the algorithms that kernels are known to have."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,14}")
"""What a name looks like (the kernel's limit is 15 characters)."""


def label(algorithm: str) -> str:
    """The label: ``TCP BBR (kernel)``."""
    return f"TCP {LABELS.get(algorithm, algorithm)} (kernel)"


def available() -> tuple[str, ...]:
    """The algorithms that this kernel has loaded, in its own order; none where the kernel does not say."""
    try:
        return tuple(AVAILABLE_FILE.read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):
        return ()


@cache
def why_unavailable(algorithm: str) -> str | None:
    """Why flows cannot run this algorithm here; None if they can.

    It is tried on a socket, since the kernel loads some modules only when they are asked for.
    """
    loaded = available()
    if algorithm in loaded or _can_be_set(algorithm):
        return None
    has = f"it has {', '.join(loaded)}" if loaded else "it does not say which it has"
    return f"this kernel has no {algorithm} ({has}; `modprobe tcp_{algorithm}` loads it where it is built)"


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
