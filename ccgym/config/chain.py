"""A chain of elements, and its properties: links, rates, delays, bandwidth-delay product, traces."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict

from ccgym.config.capacity import Piecewise, capacity, combine, exact, mean_rate, trace_mean
from ccgym.config.catalog import resolve_trace
from ccgym.config.declared import DIRECTIONS, Direction
from ccgym.config.display import html_table
from ccgym.config.models import AnyElement, AnyQueue, Delay, ElementField, Link, LinkDirection, Loss
from ccgym.units import NS_PER_MS, NS_PER_S, PACKET_BITS

if TYPE_CHECKING:
    from ccgym import _core

_Make = TypeVar("_Make", bound=Callable[..., Any])


@dataclass(frozen=True)
class CompiledPath:
    """A path in the form that the native core reads."""

    uplink: list[dict[str, Any]]
    """Elements in the order in which data crosses them."""
    downlink: list[dict[str, Any]]
    """Elements in the order in which ACKs cross them."""
    facts: dict[str, Any]
    """``capacity``: pairs of nanoseconds and bit/s; ``base_rtt``: nanoseconds."""
    traces: dict[str, _core.Trace] = field(repr=False)
    """The traces of the elements, by name."""
    links: tuple[dict[str, Any], ...] = ()
    """For a path of several links: ``name``, ``uplink`` and ``downlink`` of each link. The two attributes above then
    contain the elements of all links in a row."""

    def as_dict(self) -> dict[str, Any]:
        """Return uplink, downlink and facts, or links and facts, for the simulator's JSON."""
        if self.links:
            return {"uplink": [], "downlink": [], "links": list(self.links), "facts": self.facts}
        return {"uplink": self.uplink, "downlink": self.downlink, "facts": self.facts}

    def elements(self) -> dict[str, list[dict[str, Any]]]:
        """Return the elements of each direction of each link, by the link's name in the native core."""
        if not self.links:
            return {"uplink": self.uplink, "downlink": self.downlink}
        return {
            name: link[way]
            for link in self.links
            for name, way in ((link["name"], "uplink"), (f"{link['name']}:reverse", "downlink"))
        }


_MADE: Final[WeakKeyDictionary[Chain, dict[Any, Any]]] = WeakKeyDictionary()


def once(make: _Make) -> _Make:
    """Cache the result of a function of a path until its trace files change; many runs can share a path."""

    @wraps(make)
    def made(path: Chain, *arguments: Any) -> Any:
        known = _MADE.setdefault(path, {})
        # A trace stays the same object until its file is written again.
        key = (make, arguments, *path.traces().values())
        if key not in known:
            known[key] = make(path, *arguments)
        return known[key]

    return cast(_Make, made)


class Chain(BaseModel):
    """The elements of a path."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chain: tuple[ElementField, ...] = ()
    """The elements, the outermost first; the last one is next to the sender. Several links: elements of all links."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {'; '.join(' '.join(line.split()) for line in str(self).splitlines())}"

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        rows = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines]
        return html_table(f"{type(self).__name__}: {title}", (), rows)

    @property
    def data_links(self) -> tuple[LinkDirection, ...]:
        """Links of the data direction, in the order in which data crosses them."""
        found = [element.uplink for element in reversed(self.chain) if isinstance(element, Link)]
        return tuple(link for link in found if link is not None)

    @property
    def queue(self) -> AnyQueue | None:
        """Queue of the slowest link of the data direction; ``None`` if there is no link."""
        return min(self.data_links, key=mean_rate).queue if self.data_links else None

    @property
    def mean_rate_mbps(self) -> float:
        """Mean rate of the slowest link of the data direction in Mbit/s; infinite if there is no link.

        For a trace: 12 · lines / period. For steps: the time mean; the last step is as long as the step before it.
        """
        return min((mean_rate(link) / 1e6 for link in self.data_links), default=math.inf)

    @property
    def base_rtt_ns(self) -> int:
        """Round-trip propagation delay in nanoseconds; the minimum, if the delay changes."""
        return int(min(value for _, value in self.rtt_steps()))

    @property
    def base_rtt_ms(self) -> float:
        """Round-trip propagation delay in milliseconds; the minimum, if the delay changes."""
        return self.base_rtt_ns / NS_PER_MS

    @property
    def one_way_delay_ms(self) -> float:
        """Propagation delay of the data direction in milliseconds; the minimum, if the delay changes."""
        return float(min(value for _, value in self._delay_steps("uplink"))) / NS_PER_MS

    @property
    def loss(self) -> float:
        """Random loss of the data direction, over all independent elements; the first value, if the loss changes."""
        passed = 1.0
        for element in self.chain:
            if isinstance(element, Loss) and element.direction == "uplink":
                probability = element.probability
                passed *= 1.0 - (probability[0][1] if isinstance(probability, tuple) else probability)
        return 1.0 - passed if passed < 1.0 else 0.0

    def _delay_steps(self, direction: Direction) -> Piecewise:
        steps: Piecewise = ((0, Fraction(0)),)
        for element in self.chain:
            if isinstance(element, Delay) and element.direction in ("both", direction):
                steps = combine(steps, exact(element.delay), lambda a, b: a + b)
        return steps

    def rtt_steps(self) -> Piecewise:
        """Return the round-trip propagation delay over time: (start, delay), nanoseconds."""
        return combine(self._delay_steps("uplink"), self._delay_steps("downlink"), lambda a, b: a + b)

    @property
    def bdp_packets(self) -> Fraction:
        """Exact bandwidth-delay product in packets of 1500 bytes; the maximum, if rate or delay change.

        0 if there is no link.
        """
        if not self.data_links:
            return Fraction(0)
        rates = (exact(link.rate or 0) if link.trace is None else trace_mean(link.trace) for link in self.data_links)
        rate = reduce(lambda one, other: combine(one, other, min), rates)
        products = combine(rate, self.rtt_steps(), lambda a, b: a * b)
        return max(value for _, value in products) / (PACKET_BITS * NS_PER_S)

    def facts(self, duration_ns: int | None = None) -> dict[str, Any]:
        """Return facts about the chain for the native core: ``capacity`` and ``base_rtt``.

        Args:
            duration_ns: Duration of the capacity. Default: one period of a trace.
        """
        capacities = [capacity(link, duration_ns) for link in self.data_links]
        available = reduce(lambda one, other: combine(one, other, min), capacities) if capacities else ()
        return {"base_rtt": self.base_rtt_ns, "capacity": [[start, round(rate)] for start, rate in available]}

    def chain_in_packets(self) -> list[AnyElement]:
        """Return the chain with limits in packets in place of bandwidth-delay products.

        Raises:
            ConfigError: A limit is in bandwidth-delay products, but the path has no delay.
        """
        return self._in_packets(self.chain)

    def _in_packets(self, chain: Iterable[AnyElement]) -> list[AnyElement]:
        return [one.in_packets(lambda: self.bdp_packets) if isinstance(one, Link) else one for one in chain]

    def compiled(self, chain: Sequence[AnyElement], direction: Direction) -> list[dict[str, Any]]:
        """Return elements for the native core, in the order in which packets of a direction cross them."""
        crossed = reversed(chain) if direction == "uplink" else chain
        compiled = (element.compiled(direction) for element in self._in_packets(crossed))
        return [spec for spec in compiled if spec is not None]

    def traces(self) -> dict[str, _core.Trace]:
        """Return the native traces of the path, by their names in the compiled path."""
        return {name: resolve_trace(name).load() for name in self.trace_names()}

    def trace_names(self) -> tuple[str, ...]:
        """Return the names of the path's traces, as written."""
        links = [element.toward(way) for element in self.chain if isinstance(element, Link) for way in DIRECTIONS]
        return tuple(dict.fromkeys(link.trace for link in links if link is not None and link.trace is not None))

    @property
    def limits_flows(self) -> bool:
        """Whether an element stops the growth of a greedy flow: a link, or an element that drops data."""
        from ccgym import _core

        uplink, downlink = (json.dumps(self.compiled(self.chain, direction)) for direction in DIRECTIONS)
        return _core.limits_flows(uplink, downlink)
