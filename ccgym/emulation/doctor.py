"""What this machine can do: the findings of the native check, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from ccgym.emulation import process, quic
from ccgym.errors import PlatformError, RealPathError, shown

Status: TypeAlias = Literal["ok", "warn", "missing"]
"""``ok``: works. ``warn``: works with limits. ``missing``: what needs it does not work."""

NEEDED: Final = frozenset({"rights", "path", "capacity of an emulated path"})
"""Findings without which neither the emulated path nor a tunnel between two machines can work at all."""

MAHIMAHI_NEEDED: Final = frozenset({"mahimahi", "mahimahi shells"})
"""Findings without which mahimahi cannot."""

TIMEOUT_S: Final = 60.0
"""How long the check may take, seconds; it measures jitter and capacity for some of them."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    """What, such as ``mahimahi``."""
    status: Status
    """How it is."""
    found: str = ""
    """What was found, with numbers where it was measured."""
    remedy: str = ""
    """What to do about it; empty where nothing is to be done."""


def examine(*, measure: bool = True) -> list[Finding]:
    """Look at this machine, in a process of its own.

    Args:
        measure: Also what takes some seconds: timers, and what an emulated path carries.

    Raises:
        RealPathError: The check itself failed.
    """
    program = quic.program()
    fields = {"measure": measure, "quic": None if program is None else str(program)}
    data = process.output_of("doctor", fields, TIMEOUT_S)
    try:
        return TypeAdapter(list[Finding]).validate_python(data)
    except ValidationError:
        raise RealPathError(
            "protocol-error",
            shown(data),
            where="ccgym doctor",
            expected="a list of findings: name, status, found, remedy",
        ) from None


def obstacle(backend: str, findings: Iterable[Finding]) -> Finding | None:
    """The finding for which a backend cannot work here at all; None if nothing stands in its way.

    Args:
        backend: ``emulated``, ``mahimahi`` or ``remote``.
        findings: What was found.
    """
    needed = MAHIMAHI_NEEDED if backend == "mahimahi" else NEEDED
    return next((one for one in findings if one.name in needed and one.status == "missing"), None)


def require(backend: str) -> None:
    """Make sure that a backend can work here.

    Raises:
        PlatformError: It cannot; the message has the remedy.
    """
    found = obstacle(backend, examine(measure=False))
    if found is not None:
        raise PlatformError(
            "capability-missing",
            f"{found.name}: {found.found}",
            where=f"backend {backend}",
            expected="a machine on which it works",
            hint=found.remedy or "`ccgym doctor` tells what this machine can do",
        )
