"""The support of this machine for real packets: the findings of the native check, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from ccgym.emulation import process, quic
from ccgym.errors import PlatformError, RealPathError, shown

Status: TypeAlias = Literal["ok", "warn", "missing"]
"""``ok``: works. ``warn``: works with limits. ``missing``: features that need it do not work."""

NEEDED: Final = frozenset({"rights", "path", "capacity of an emulated path"})
"""Findings that both the emulated path and a tunnel between two machines require."""

MAHIMAHI_NEEDED: Final = frozenset({"mahimahi", "mahimahi shells"})
"""Findings that mahimahi requires."""

TIMEOUT_S: Final = 60.0
"""Maximum duration of the check, seconds; it measures jitter and capacity for some seconds."""


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    name: str
    """Name of the checked feature, such as ``mahimahi``."""
    status: Status
    """State of the feature."""
    found: str = ""
    """Description of the result, with measured numbers if there are any."""
    remedy: str = ""
    """Action that solves the problem; empty if there is no problem."""


def examine(*, measure: bool = True) -> list[Finding]:
    """Check this machine, in a separate process.

    Args:
        measure: Whether to also measure for some seconds: timers, and the maximum rate of an emulated path.

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
    """Return the finding that prevents a backend from working here; None if there is no such finding.

    Args:
        backend: ``emulated``, ``mahimahi`` or ``remote``.
        findings: All findings.
    """
    needed = MAHIMAHI_NEEDED if backend == "mahimahi" else NEEDED
    return next((one for one in findings if one.name in needed and one.status == "missing"), None)


def require(backend: str) -> None:
    """Check that a backend can work here.

    Raises:
        PlatformError: It cannot; the message contains the remedy.
    """
    found = obstacle(backend, examine(measure=False))
    if found is not None:
        raise PlatformError(
            "capability-missing",
            f"{found.name}: {found.found}",
            where=f"backend {backend}",
            expected="a machine on which it works",
            hint=found.remedy or "run `ccgym doctor` to see what this machine supports",
        )
