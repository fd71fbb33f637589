"""Where packets travel: the simulator, our own emulated path, mahimahi, or what lies between two machines.

All of them run the same description of a run and leave the same kind of :class:`RunRecord`.

=============  ==================================================================================
``simulated``  ``sim``: virtual time; a seed gives the same packets, always
``real``       ``emulated`` and ``mahimahi``: real packets in real time, in a process of their own
``remote``     ``remote``: the same between two machines, with a process at each
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
"""The name of the one whose path is what lies between two machines."""

RECORDED: Final = "pantheon"
"""The name in results that were not run here: packets that Pantheon logged."""

BACKENDS: Final[Mapping[str, str]] = {
    SIMULATED: "the simulator: virtual time, exact from a seed",
    "emulated": "real packets over our own emulated path",
    "mahimahi": "real packets over mahimahi's programs",
    REMOTE: "real packets between two machines (--remote HOST)",
}
"""What each of them is."""

PLACES: Final[Mapping[str, str]] = {
    SIMULATED: "simulated in virtual time",
    "emulated": "real packets over the emulated path, in real time",
    "mahimahi": "real packets over mahimahi, in real time",
    REMOTE: "real packets between two machines",
    RECORDED: "packets that Pantheon logged",
}
"""How reports say where results come from."""

SHORT_PLACES: Final[Mapping[str, str]] = {
    SIMULATED: "simulated",
    "emulated": "emulated, real packets",
    "mahimahi": "mahimahi, real packets",
    REMOTE: "between two machines, real packets",
    RECORDED: "measured by Pantheon",
}
"""The same for the titles of figures."""


class Backend(Protocol):
    """Something that runs flows over a path."""

    name: str

    def require(self, path: NetworkPath, duration_ns: int) -> None:
        """Make sure, as far as that shows beforehand, that it can run this path here.

        Raises:
            ConfigError: It cannot express the path.
            PlatformError: The machine lacks something.
        """
        ...

    def why_unavailable(self, choice: Scheme) -> str | None:
        """Why this scheme cannot be run here; None if it can."""
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
        """Make runs that are under way in other threads give up soon. Nothing can be run afterward."""
        ...


def is_real(name: str) -> bool:
    """Whether packets of this backend are real ones."""
    return name != SIMULATED


def check_name(name: str, where: str = "") -> None:
    """Raise :class:`ConfigError` unless there is a backend of this name."""
    if name not in BACKENDS:
        raise ConfigError(
            "unknown-backend",
            f"no backend is called {shown(name)}",
            where=where,
            expected=f"one of {', '.join(BACKENDS)}",
            hint=did_you_mean(str(name), BACKENDS),
        )


def backend(name: str) -> Backend:
    """The backend of this name.

    Raises:
        ConfigError: There is none.
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
