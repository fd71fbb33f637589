"""Distributions of paths, and one path drawn from one, as the simulator takes it.

A draw happens at every reset of every environment, so what is drawn is not validated again; :meth:`SampledPath.path`
gives the :class:`~ccgym.config.path.NetworkPath` that compiles to the same, for everything else that takes a path.
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
"""How long a drawn path's changes are drawn for, and its capacity is known for, unless a duration is given."""

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
"""The numbers that a drawn path may have, with their units; ``queue_packets`` is absent where nothing limits it."""


@dataclass(frozen=True)
class SampledPath:
    """A path that was drawn. Its parts may be shared with other draws: treat them as constants."""

    uplink: list[dict[str, Any]]
    """Elements that data crosses, in that order: the native ``ElementSpec``."""
    downlink: list[dict[str, Any]]
    """Elements that acknowledgements cross."""
    facts: dict[str, Any] | None
    """``capacity``: steps of nanoseconds and bit/s; ``base_rtt``: nanoseconds. ``None`` for a path without link."""
    numbers: Mapping[str, float]
    """What was drawn, by the names of :data:`UNITS`; those of one of several links as ``LINK.NAME``."""
    name: str = ""
    """The distribution's, the trace's or the path's name."""
    traces: Mapping[str, _core.Trace] = field(default_factory=dict, repr=False)
    """The native traces that the elements name."""
    origin: tuple[AnyElement, ...] | NetworkPath = field(default=(), repr=False)
    """The path, or its elements, the outermost first."""
    links: tuple[dict[str, Any], ...] = ()
    """Of a path of several links: ``name``, ``uplink`` and ``downlink`` of each, in place of the path's own."""
    _ways: dict[tuple[tuple[str, ...], Direction, int], SampledPath] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What :meth:`along` has made."""

    @property
    def start_rate_mbps(self) -> float | None:
        """The rate with which the flow starts, Mbit/s; ``None`` leaves that to the agent."""
        return self.numbers.get("start_rate_mbps")

    @classmethod
    def of(cls, path: NetworkPath, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        """A path as if it had been drawn: its true capacity, base round trip and numbers are worked out.

        Args:
            path: The path.
            duration_ns: How long its capacity must be known for, nanoseconds.

        Raises:
            ConfigError: The path cannot be compiled.
            PathNotFoundError: A trace that is not there.
        """
        compiled = path.compile(duration_ns)
        facts = compiled.facts if compiled.facts["capacity"] else None
        each = [(name, path.along([name])) for name, _ in path.links]
        numbers = {**path_numbers(path), **numbers_of_links((name, path_numbers(link)) for name, link in each)}
        uplink, downlink = ([], []) if path.links else (compiled.uplink, compiled.downlink)
        return cls(uplink, downlink, facts, numbers, path.name or "", compiled.traces, path, links=compiled.links)

    def along(self, route: Sequence[str], direction: Direction, duration_ns: int) -> SampledPath:
        """What a flow has of the path: true capacity, base round trip and numbers of its own route.

        Args:
            route: Names of links; all of them by default.
            direction: The direction of each link that data crosses.
            duration_ns: How long the capacity must be known for, nanoseconds.

        Raises:
            ConfigError: There is no such link, or the route names one twice.
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
        """Uplink, downlink and facts: what goes into the simulator's JSON."""
        spec = {"uplink": self.uplink, "downlink": self.downlink, "facts": self.facts}
        return {**spec, "links": list(self.links)} if self.links else spec

    def path(self) -> NetworkPath:
        """The path for everything else that takes one: evaluation, plots, ``ccgym paths show``."""
        if isinstance(self.origin, NetworkPath):
            return self.origin
        return NetworkPath(chain=self.origin, name=self.name or None)

    def describe(self) -> dict[str, float]:
        """What was drawn, by the names of :data:`UNITS`."""
        return dict(self.numbers)

    def __str__(self) -> str:
        parts = (f"{name} {value:.6g}" for name, value in self.numbers.items())
        return f"{self.name or 'path'}: {', '.join(parts)}"


def path_numbers(path: NetworkPath) -> Mapping[str, float]:
    """The numbers of a path that was given in full, by the names of :data:`UNITS`; its loss is the random one."""
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
    """The numbers of several links by ``LINK.NAME``."""
    return {f"{link}.{name}": number for link, numbers in links for name, number in numbers.items()}


def slowest_of(numbers: Mapping[str, float], links: Iterable[str]) -> dict[str, float]:
    """The smallest rate of these links, and the smallest with which they let flows start, where they have such."""
    found = {name: [numbers[key] for link in links if (key := f"{link}.{name}") in numbers] for name in _RATES}
    return {name: min(rates) for name, rates in found.items() if rates}


_RATES: Final = ("rate_mbps", "start_rate_mbps")


# --- What paths are drawn from ---------------------------------------------------------------------------------


class ParameterRow(TypedDict):
    """One parameter of a path distribution, as text and for JSON."""

    name: str
    """Dotted where parts have parameters of the same name."""
    unit: str
    """Unit of ``low`` and ``high``; empty for a fraction."""
    low: float | None
    """Min; ``None`` without one."""
    high: float | None
    distribution: str
    """In a few words."""


class PathDistribution(Strict):
    """A distribution of paths: immutable, compared by content, picklable.

    Subclasses say what is drawn. The same state of the generator gives the same path.
    """

    @abstractmethod
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        """Draw a path.

        Args:
            rng: Where the randomness comes from: an environment's ``np_random``.
            duration_ns: How long changes of the rate are drawn for and the capacity must be known for, nanoseconds.

        Raises:
            ConfigError: A path that cannot be compiled.
            PathNotFoundError: A trace that is not there.
        """

    @abstractmethod
    def summary(self) -> str:
        """One line of text."""

    @abstractmethod
    def rows(self) -> list[ParameterRow]:
        """The parameters that are drawn."""

    def describe(self) -> dict[str, Any]:
        """``summary``: one line; ``numbers``: rows with name, unit, low, high and distribution."""
        return {"summary": self.summary(), "numbers": self.rows()}

    # What subclasses cache (samplers, compiled paths) is made again in copies and after pickling.

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
    """Describe a parameter of a distribution, with some more words."""
    unit, scale = number.dimension.shown_unit, number.dimension.shown_scale
    low, high = (end / scale for end in number.bounds())
    return {"name": name, "unit": unit, "low": low, "high": high, "distribution": number.describe() + more}


def prefixed(prefix: str, rows: list[ParameterRow]) -> list[ParameterRow]:
    """Put a part's name in front of its parameters' names."""
    return [{**row, "name": f"{prefix}{row['name']}"} for row in rows]


def known_names(names: Iterable[str], key: str, find: Callable[[str], object]) -> None:
    """Refuse the first of some names that cannot be found, at its place in the list ``key``."""
    for place, name in enumerate(names):
        try:
            find(name)
        except CcgymError as error:
            raise ConfigError(
                error.code, error.found, expected=error.expected, hint=error.hint, where=f"{key}[{place}]"
            ) from None
