"""The base of distributions of paths, and a drawn path in the form that the simulator reads.

Every reset of every environment draws a path, so drawn paths are not validated again. :meth:`SampledPath.path`
returns the :class:`~ccgym.config.path.NetworkPath` that compiles to the same elements, for all other uses of a path.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from typing_extensions import TypedDict, override

from ccgym.config.declared import Direction, Strict
from ccgym.config.models import AnyElement
from ccgym.config.path import NetworkPath
from ccgym.config.random_variables import RandomVariable
from ccgym.errors import CcgymError, ConfigError
from ccgym.units import NS_PER_S

if TYPE_CHECKING:
    from ccgym import _core

DEFAULT_DURATION_NS: Final = 60 * NS_PER_S
"""Default duration of a drawn path's changes and of its known capacity, nanoseconds."""

UNITS: Final[dict[str, str]] = {
    "rate_mbps": "Mbit/s",
    "rate_min_mbps": "Mbit/s",
    "rate_max_mbps": "Mbit/s",
    "change_every_s": "s",
    "one_way_delay_ms": "ms",
    "queue_packets": "packets",
    "queue_bdp": "BDP",
    "loss": "fraction",
    "jitter_ms": "ms",
    "start_rate_mbps": "Mbit/s",
}
"""Names and units of the numbers of a drawn path; ``queue_packets`` is absent if the queue has no limit."""


@dataclass(frozen=True)
class SampledPath:
    """A drawn path. Other draws may share its parts, so do not change them."""

    uplink: list[dict[str, Any]]
    """Elements in the order in which data crosses them: the native ``ElementSpec``."""
    downlink: list[dict[str, Any]]
    """Elements in the order in which ACKs cross them."""
    facts: dict[str, Any] | None
    """``capacity``: steps of nanoseconds and bit/s; ``base_rtt``: nanoseconds. ``None`` if the path has no link."""
    numbers: Mapping[str, float]
    """Drawn numbers, by the names of :data:`UNITS`; with several links, numbers of a link are ``LINK.NAME``."""
    name: str = ""
    """Name of the distribution, trace or path."""
    traces: Mapping[str, _core.Trace] = field(default_factory=dict, repr=False)
    """Native traces of the elements, by name."""
    origin: tuple[AnyElement, ...] | NetworkPath = field(default=(), repr=False)
    """The path, or its elements, the outermost first."""
    links: tuple[dict[str, Any], ...] = ()
    """For several links: ``name``, ``uplink`` and ``downlink`` of each link, in place of the attributes above."""
    _ways: dict[tuple[tuple[str, ...], Direction, int], SampledPath] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of :meth:`along`."""

    @property
    def start_rate_mbps(self) -> float | None:
        """The rate at the start of the flow, Mbit/s; ``None``: the agent decides."""
        return self.numbers.get("start_rate_mbps")

    @classmethod
    def of(cls, path: NetworkPath, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        """Convert a path to a drawn path, with its true capacity, base RTT and numbers.

        Args:
            path: The path.
            duration_ns: Duration of the known capacity, nanoseconds.

        Raises:
            ConfigError: The path cannot be compiled.
            PathNotFoundError: A trace does not exist.
        """
        compiled = path.compile(duration_ns)
        facts = compiled.facts if compiled.facts["capacity"] else None
        each = [(name, path.along([name])) for name, _ in path.links]
        numbers = {**path_numbers(path), **numbers_of_links((name, path_numbers(link)) for name, link in each)}
        uplink, downlink = ([], []) if path.links else (compiled.uplink, compiled.downlink)
        return cls(uplink, downlink, facts, numbers, path.name or "", compiled.traces, path, links=compiled.links)

    def along(self, route: Sequence[str], direction: Direction, duration_ns: int) -> SampledPath:
        """Return the path of a flow: true capacity, base RTT and numbers of its own route.

        Args:
            route: Names of links; empty: all links.
            direction: The direction of the links that data crosses.
            duration_ns: Duration of the known capacity, nanoseconds.

        Raises:
            ConfigError: A link of the route does not exist, or is in the route twice.
        """
        if not route and direction == "uplink":
            return self
        key = (tuple(route), direction, duration_ns)
        way = self._ways.get(key)
        if way is None:
            way = SampledPath.of(self.path().along(route, direction), duration_ns)
            rates = slowest_of(self.numbers, route) if direction == "uplink" else {}
            links = {name: number for name, number in self.numbers.items() if name not in UNITS}
            way = self._ways[key] = replace(way, numbers={**way.numbers, **rates, **links}, name=self.name)
        return way

    def spec(self) -> dict[str, Any]:
        """Return uplink, downlink and facts for the simulator's JSON."""
        spec = {"uplink": self.uplink, "downlink": self.downlink, "facts": self.facts}
        return {**spec, "links": list(self.links)} if self.links else spec

    def path(self) -> NetworkPath:
        """Return the path for evaluation, plots, ``ccgym paths show`` and all other uses."""
        if isinstance(self.origin, NetworkPath):
            return self.origin
        return NetworkPath(chain=self.origin, name=self.name or None)

    def describe(self) -> dict[str, float]:
        """Return the drawn numbers, by the names of :data:`UNITS`."""
        return dict(self.numbers)

    def __str__(self) -> str:
        parts = (f"{name} {value:.6g}" for name, value in self.numbers.items())
        return f"{self.name or 'path'}: {', '.join(parts)}"


def path_numbers(path: NetworkPath) -> Mapping[str, float]:
    """Return the numbers of a path that was not drawn, by the names of :data:`UNITS`; ``loss`` is random loss."""
    numbers: dict[str, float] = {}
    if path.data_links:
        numbers["rate_mbps"] = path.mean_rate_mbps
    numbers["one_way_delay_ms"] = path.one_way_delay_ms
    limit = getattr(path.queue, "limit", None)
    if limit is not None and limit.packets is not None:
        numbers["queue_packets"] = float(limit.packets)
    if limit is not None and limit.bdp is not None:
        numbers["queue_bdp"] = limit.bdp
    numbers["loss"] = path.loss
    return numbers


def numbers_of_links(links: Iterable[tuple[str, Mapping[str, float]]]) -> dict[str, float]:
    """Return the numbers of several links as ``LINK.NAME``."""
    return {f"{link}.{name}": number for link, numbers in links for name, number in numbers.items()}


def slowest_of(numbers: Mapping[str, float], links: Iterable[str]) -> dict[str, float]:
    """Return the smallest rate of these links, and their smallest start rate, if available."""
    found = {name: [numbers[key] for link in links if (key := f"{link}.{name}") in numbers] for name in _RATES}
    return {name: min(rates) for name, rates in found.items() if rates}


_RATES: Final = ("rate_mbps", "start_rate_mbps")


# --- Distributions ---------------------------------------------------------------------------------------------


class ParameterRow(TypedDict):
    """One parameter of a path distribution, as text and for JSON."""

    name: str
    """Name; with a prefix and a dot if parts have parameters of the same name."""
    unit: str
    """Unit of ``low`` and ``high``; empty for a fraction."""
    low: float | None
    """Min; ``None`` if there is no min."""
    high: float | None
    distribution: str
    """Distribution in a few words."""


class PathDistribution(Strict):
    """A distribution of paths: immutable, compared by content, picklable.

    Subclasses define the drawn parameters. The same state of the generator results in the same path.
    """

    @abstractmethod
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        """Draw a path.

        Args:
            rng: Source of random numbers: ``np_random`` of an environment.
            duration_ns: Duration of the drawn changes of the rate and of the known capacity, nanoseconds.

        Raises:
            ConfigError: The path cannot be compiled.
            PathNotFoundError: A trace does not exist.
        """

    @abstractmethod
    def summary(self) -> str:
        """Return one line of text."""

    @abstractmethod
    def rows(self) -> list[ParameterRow]:
        """Return the drawn parameters."""

    def describe(self) -> dict[str, Any]:
        """Return ``summary``: one line; ``numbers``: rows with name, unit, low, high and distribution."""
        return {"summary": self.summary(), "numbers": self.rows()}

    # Caches of subclasses (samplers, compiled paths) are built again in copies and after pickling.

    @override
    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        state["__dict__"] = self._fields()
        return state

    @override
    def __copy__(self) -> Self:
        copied = super().__copy__()
        object.__setattr__(copied, "__dict__", self._fields())
        return copied

    @override
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def _fields(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name in type(self).model_fields}


def parameter_row(name: str, number: RandomVariable, more: str = "") -> ParameterRow:
    """Describe a parameter of a distribution; ``more`` is appended to the text."""
    unit, scale = number.dimension.shown_unit, number.dimension.shown_scale
    low, high = (end / scale for end in number.bounds())
    return {"name": name, "unit": unit, "low": low, "high": high, "distribution": number.describe() + more}


def prefixed(prefix: str, rows: list[ParameterRow]) -> list[ParameterRow]:
    """Put the name of a part in front of the names of its parameters."""
    return [{**row, "name": f"{prefix}{row['name']}"} for row in rows]


def known_names(names: Iterable[str], key: str, find: Callable[[str], object]) -> None:
    """Raise an error for the first name that cannot be found, with its position in the list ``key``."""
    for place, name in enumerate(names):
        try:
            find(name)
        except CcgymError as error:
            raise ConfigError(
                error.code, error.found, expected=error.expected, hint=error.hint, where=f"{key}[{place}]"
            ) from None
