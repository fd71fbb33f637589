"""Backends carry packets: the simulator, ccgym's emulated path, mahimahi, or the path between two machines.

All backends accept the same description of a run and return the same kind of :class:`RunRecord`.

=============  ==================================================================================
``simulated``  ``sim``: virtual time; the same seed always gives the same packets
``real``       ``emulated`` and ``mahimahi``: real packets in real time, in a separate process
``remote``     ``remote``: real packets between two machines, with a process on each
=============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ccgym.errors import ConfigError, did_you_mean, shown

if TYPE_CHECKING:
    from ccgym.config.path import NetworkPath, PathLike
    from ccgym.evaluation.prepared_run import Flow, Record
    from ccgym.evaluation.run_record import RunRecord
    from ccgym.schemes.scheme import Scheme
    from ccgym.units import TimeLike

SIMULATED: Final = "sim"
"""The simulator's name."""

REMOTE: Final = "remote"
"""The name of the backend for the path between two machines."""

RECORDED: Final = "pantheon"
"""The name in results that Pantheon measured: packets from its logs."""

BACKENDS: Final[Mapping[str, str]] = {
    SIMULATED: "the simulator: virtual time, repeatable from a seed",
    "emulated": "real packets over ccgym's emulated path",
    "mahimahi": "real packets over mahimahi's programs",
    REMOTE: "real packets between two machines (--remote HOST)",
}
"""Description of each backend."""

PLACES: Final[Mapping[str, str]] = {
    SIMULATED: "simulated in virtual time",
    "emulated": "real packets over the emulated path, in real time",
    "mahimahi": "real packets over mahimahi, in real time",
    REMOTE: "real packets between two machines",
    RECORDED: "packets that Pantheon logged",
}
"""Description of the source of results in reports."""

SHORT_PLACES: Final[Mapping[str, str]] = {
    SIMULATED: "simulated",
    "emulated": "emulated, real packets",
    "mahimahi": "mahimahi, real packets",
    REMOTE: "between two machines, real packets",
    RECORDED: "measured by Pantheon",
}
"""Description of the source of results in titles of figures."""


class Backend(Protocol):
    """A backend: runs flows over a path."""

    name: str

    def require(self, path: NetworkPath, duration_ns: int) -> None:
        """Check before a run whether the backend can run this path here.

        Raises:
            ConfigError: The backend cannot express the path.
            PlatformError: The machine does not meet a requirement.
        """
        ...

    def why_unavailable(self, choice: Scheme) -> str | None:
        """Return the reason why this scheme cannot run here; None if it can."""
        ...

    def run(
        self, path: PathLike, flows: Sequence[Flow], duration: TimeLike, seed: int, record: Record | None = None
    ) -> RunRecord:
        """Run flows over a path; the arguments are those of :func:`ccgym.evaluation.simulate.simulate`.

        Raises:
            CcgymError: The run cannot be made, or failed.
        """
        ...

    def halt(self) -> None:
        """Make running runs in other threads stop soon. Afterward, no run is possible."""
        ...


def is_real(name: str) -> bool:
    """Return whether packets of this backend are real."""
    return name != SIMULATED


def check_name(name: str, where: str = "") -> None:
    """Raise :class:`ConfigError` unless there is a backend with this name."""
    if name not in BACKENDS:
        raise ConfigError(
            "unknown-backend",
            f"there is no backend {shown(name)}",
            where=where,
            expected=f"one of {', '.join(BACKENDS)}",
            hint=did_you_mean(str(name), BACKENDS),
        )


def backend(name: str) -> Backend:
    """Return the backend with this name.

    Raises:
        ConfigError: There is no such backend.
    """
    check_name(name, "backend")
    if name == SIMULATED:
        from ccgym.evaluation.backends.simulated import Simulated

        return Simulated()
    if name == REMOTE:
        from ccgym.evaluation.backends.remote import BetweenHosts

        return BetweenHosts()
    from ccgym.evaluation.backends.real import RealPath

    return RealPath(name)
