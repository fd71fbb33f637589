"""Distributions of paths with one bottleneck. Its rate and other parameters are random variables.

::

    kind: ranges
    rate: {uniform: [100, 500], unit: packets/s}
    one_way_delay: {uniform: [50ms, 500ms]}
    queue: {packets: {exp_uniform: [0, 8], floor: true, plus: 1}}
    loss: {uniform: [0, 0.05]}
    start_rate: {uniform: [0.3, 1.5], of: rate}

The rate may change over time, as in Genet (SIGCOMM 2022)::

    rate:
      max: {log_uniform: [0.1mbps, 100mbps]}
      min: 0.1mbps
      every: {uniform: [0s, 15s]}

or decrease and increase in steps, like the rate that varying cross traffic leaves (Muses, INFOCOM 2022)::

    rate:
      top: {choice: [10mbps, 100mbps]}
      period: 22s

The parameters are drawn in a fixed order: rate, its changes, delay, queue, loss, jitter, start rate.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import override

from ccgym.config.capacity import native_trace, trace_facts
from ccgym.config.catalog import resolve_trace
from ccgym.config.changing_rates import RateOverTime
from ccgym.config.declared import Strict
from ccgym.config.mahimahi import OVERHEAD
from ccgym.config.models import (
    AnyElement,
    AnyQueue,
    Delay,
    Droptail,
    Infinite,
    Jitter,
    Link,
    LinkDirection,
    Loss,
    UniformJitterDistribution,
)
from ccgym.config.quantities import Limit
from ccgym.config.random_variables import (
    ZERO_LOSS,
    RandomNumber,
    RandomPackets,
    RandomProbability,
    RandomStartRate,
    RandomTime,
    RandomVariable,
    Sampler,
    cumulative,
    pick,
    read_weights,
)
from ccgym.config.sampled_path import (
    DEFAULT_DURATION_NS,
    ParameterRow,
    PathDistribution,
    SampledPath,
    known_names,
    parameter_row,
)
from ccgym.errors import ConfigError, shown
from ccgym.units import NS_PER_MS, NS_PER_S, PACKET_BITS, parse_size

if TYPE_CHECKING:
    pass


class QueueSize(Strict):
    """Queue limit of the bottleneck (droptail): packets, or bandwidth-delay products of the drawn path."""

    packets: RandomPackets | None = None
    """Packets, rounded down."""
    bdp: RandomNumber | None = None
    """Bandwidth-delay products; if the rate changes, products of the maximum rate."""
    unlimited: bool = False
    """Whether the queue has no limit."""
    round: Literal["up", "down"] = "up"
    """Direction in which bandwidth-delay products are rounded to packets."""
    min_packets: int = Field(default=1, ge=1, le=2**32)
    """Minimum limit in packets, with ``bdp``."""

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        given = [name for name in ("packets", "bdp") if getattr(self, name) is not None]
        given += ["unlimited"] if self.unlimited else []
        if len(given) != 1:
            raise ConfigError(
                "exactly-one",
                " and ".join(given) or "a queue without size",
                expected="exactly one of packets, bdp and unlimited",
            )
        if self.bdp is None and (self.round != "up" or self.min_packets != 1):
            raise ConfigError("option-needed", "round or min_packets without bdp", expected="these keys only with bdp")
        return self


def _read_queue(value: Any) -> Any:
    if isinstance(value, str):
        if value.strip() in ("infinite", "unlimited"):
            return {"unlimited": True}
        size = parse_size(value)
        if size.bytes is not None:
            raise ConfigError(
                "unit-mismatch",
                shown(value),
                expected="packets, bdp or infinite",
                hint="use `kind: fixed` for other queues of a path",
            )
        return {"packets": size.packets} if size.bdp is None else {"bdp": size.bdp}
    if isinstance(value, (int, float)):
        parse_size(value)  # raises: it has no unit
    return value


QueueSizeField: TypeAlias = Annotated[
    QueueSize, BeforeValidator(_read_queue, json_schema_input_type=QueueSize | str | dict[str, Any])
]
"""``94p``, ``1.5bdp``, ``infinite``, or a mapping of :class:`QueueSize`."""

_ONE_BDP: Final = QueueSize.model_validate({"bdp": 1.0})


class Bottleneck(PathDistribution):
    """Base of ``ranges`` and ``traces``."""

    one_way_delay: RandomTime | None = None
    """Propagation delay, the same in each direction."""
    rtt: RandomTime | None = None
    """Propagation delay of both directions together, in place of ``one_way_delay``."""
    queue: QueueSizeField = _ONE_BDP
    """Queue of the bottleneck. Default: one bandwidth-delay product."""
    loss: RandomProbability = ZERO_LOSS
    """Random loss of data packets."""
    loss_at: Literal["after_queue", "before_queue"] = "after_queue"
    """Place of the random loss. After the queue, lost packets use the link's capacity; before it, they do not."""
    jitter: RandomTime | None = None
    """Extra delay of each data packet: uniform between zero and the drawn number, without reordering."""
    start_rate: RandomStartRate | None = None
    """Rate at the start of the flow: a rate, ``of: rate``, or ``of: packets_per_rtt`` (per base RTT)."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if (self.one_way_delay is None) == (self.rtt is None):
            found = "neither one_way_delay nor rtt" if self.rtt is None else "both one_way_delay and rtt"
            raise ConfigError("exactly-one", found, expected="exactly one of the two")
        if self._delay_number.bounds()[0] < 1.0:
            if self.queue.bdp is not None:
                raise ConfigError(
                    "path-without-delay",
                    "a queue in bandwidth-delay products on a path without delay",
                    expected="a delay above zero, or a queue in packets",
                    where="queue",
                )
            if self.start_rate is not None and self.start_rate.of == "packets_per_rtt":
                raise ConfigError(
                    "path-without-delay",
                    "packets per RTT without delay",
                    expected="a delay above zero",
                    where="start_rate",
                )
        return self

    @property
    def _delay_number(self) -> RandomVariable:
        number = self.rtt if self.one_way_delay is None else self.one_way_delay
        assert number is not None
        return number

    @cached_property
    def _draws(self) -> tuple[Sampler, Sampler | None, Sampler | None, Sampler | None, Sampler | None]:
        """Samplers of delay, queue, loss, jitter and start rate; ``None`` for unused parameters."""
        queue = self.queue.packets if self.queue.bdp is None else self.queue.bdp
        lossless = self.loss.bounds()[1] == 0.0
        optional = (queue, None if lossless else self.loss, self.jitter, self.start_rate)
        size, loss, jitter, start = (None if number is None else number.sampler() for number in optional)
        return self._delay_number.sampler(), size, loss, jitter, start

    def _sampled(
        self,
        rng: np.random.Generator,
        schedule: Mapping[str, Any],
        capacity: Sequence[Sequence[int]],
        largest_rate: Fraction | int,
        numbers: dict[str, float],
        downlink: LinkDirection | None = None,
        name: str = "",
    ) -> SampledPath:
        """Draw the other parameters of a path whose rate is known.

        Args:
            rng: Source of random numbers.
            schedule: Rate or trace, and overhead, of the link.
            capacity: Steps of nanoseconds and bit/s.
            largest_rate: The rate in the bandwidth-delay product, bit/s.
            numbers: Drawn numbers; the call adds the other numbers.
            downlink: The link of the ACKs.
            name: Name of the path.
        """
        draw_delay, draw_queue, draw_loss, draw_jitter, draw_start = self._draws
        delay = round(draw_delay(rng) if self.one_way_delay is not None else draw_delay(rng) / 2)
        numbers["one_way_delay_ms"] = delay / NS_PER_MS
        queue: AnyQueue = Infinite.model_construct()
        if draw_queue is not None:
            size = draw_queue(rng)
            if self.queue.bdp is not None:
                numbers["queue_bdp"] = size
                exact = Fraction(repr(size)) * largest_rate * (2 * delay) / (PACKET_BITS * NS_PER_S)
                size = max(self.queue.min_packets, math.ceil(exact) if self.queue.round == "up" else math.floor(exact))
            queue = Droptail.model_construct(limit=Limit.model_construct(packets=int(size)))
            numbers["queue_packets"] = float(int(size))
        link = Link.model_construct(uplink=LinkDirection.model_construct(queue=queue, **schedule), downlink=downlink)
        chain: list[AnyElement] = [Delay.model_construct(delay=delay), link]
        numbers["loss"] = loss = 0.0 if draw_loss is None else draw_loss(rng)
        if loss:
            chain.insert(2 if self.loss_at == "before_queue" else 1, Loss.model_construct(probability=loss))
        if draw_jitter is not None:
            jitter = round(draw_jitter(rng))
            numbers["jitter_ms"] = jitter / NS_PER_MS
            spread = UniformJitterDistribution.model_construct(max=jitter)
            chain[1:1] = [Jitter.model_construct(distribution=spread)] if jitter else []
        if draw_start is not None:
            assert self.start_rate is not None
            start = draw_start(rng)
            if self.start_rate.of == "rate":
                start *= float(capacity[0][1])
            elif self.start_rate.of:
                start *= PACKET_BITS * NS_PER_S / (2 * delay)
            numbers["start_rate_mbps"] = start / 1e6
        uplink = [spec for one in reversed(chain) if (spec := one.compiled("uplink"))]
        acks = [spec for one in chain if (spec := one.compiled("downlink"))]
        facts = {"base_rtt": 2 * delay, "capacity": capacity}
        traces = {part.trace: native_trace(part.trace) for part in (link.uplink, downlink) if part and part.trace}
        return SampledPath(uplink, acks, facts, numbers, name, traces, tuple(chain))

    @abstractmethod
    def _rate_rows(self) -> list[ParameterRow]:
        """Return the rows of the link's rate or trace."""

    @override
    def rows(self) -> list[ParameterRow]:
        rows = [*self._rate_rows(), parameter_row("one_way_delay" if self.rtt is None else "rtt", self._delay_number)]
        if self.queue.bdp is not None:
            floor = f", min {self.queue.min_packets} packets" if self.queue.min_packets > 1 else ""
            rows.append({**parameter_row("queue", self.queue.bdp, floor), "unit": "BDP"})
        elif self.queue.packets is not None:
            rows.append(parameter_row("queue", self.queue.packets))
        else:
            rows.append({"name": "queue", "unit": "packets", "low": None, "high": None, "distribution": "unlimited"})
        place = ", before the queue" if self.loss_at == "before_queue" and self.loss.bounds()[1] else ""
        rows.append(parameter_row("loss", self.loss, place))
        if self.jitter is not None:
            rows.append(parameter_row("jitter", self.jitter))
        if self.start_rate is not None:
            unit = {"": "Mbit/s", "rate": "× rate", "packets_per_rtt": "packets/RTT"}[self.start_rate.of]
            rows.append({**parameter_row("start_rate", self.start_rate), "unit": unit})
        return rows


class Ranges(Bottleneck):
    """One bottleneck with drawn parameters."""

    kind: Literal["ranges"] = "ranges"
    rate: RateOverTime
    """Rate of the bottleneck: a number, :class:`Changing` or :class:`Staircase`."""

    @cached_property
    def _draw_rate(self) -> Sampler:
        """Sampler of a constant rate."""
        assert isinstance(self.rate, RandomVariable)
        return self.rate.sampler()

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        numbers: dict[str, float] = {}
        if isinstance(self.rate, RandomVariable):
            steps = [[0, round(self._draw_rate(rng))]]
            numbers["rate_mbps"] = steps[0][1] / 1e6
        else:
            steps = self.rate.draw(rng, duration_ns, numbers)
        rate = steps[0][1] if len(steps) == 1 else tuple((start, value) for start, value in steps)
        return self._sampled(rng, {"rate": rate}, steps, max(value for _, value in steps), numbers)

    def ranges(self) -> dict[str, RandomVariable]:
        """Return the parameters drawn between two bounds, by the names of :meth:`rows`: the axes of a search."""
        rates = {"rate": self.rate} if isinstance(self.rate, RandomVariable) else self.rate.ranges()
        size = self.queue.packets if self.queue.bdp is None else self.queue.bdp
        numbers: dict[str, RandomVariable | None] = {
            **rates,
            "one_way_delay": self.one_way_delay,
            "rtt": self.rtt,
            "queue": size,
            "loss": self.loss,
            "jitter": self.jitter,
            "start_rate": self.start_rate,
        }
        return {name: number for name, number in numbers.items() if number is not None and number.is_range}

    def at(self, place: Mapping[str, float]) -> Ranges:
        """Return a copy with some of its ranges set to one value.

        Args:
            place: Position in each range, from 0 to 1, by the names of :meth:`ranges`. The position is on a logarithmic
                scale if the range is log-uniform.
        """
        ranges, content = self.ranges(), self.model_dump(mode="json")
        for name, part in place.items():
            constant = ranges[name].at(part).written
            if name == "queue":
                content["queue"]["packets" if self.queue.bdp is None else "bdp"] = constant
            elif name.startswith("rate."):
                content["rate"][name.removeprefix("rate.")] = constant
            else:
                content[name] = constant
        return Ranges.model_validate(content)

    @override
    def _rate_rows(self) -> list[ParameterRow]:
        return [parameter_row("rate", self.rate)] if isinstance(self.rate, RandomVariable) else self.rate.rows()

    @override
    def summary(self) -> str:
        changing = "" if isinstance(self.rate, RandomVariable) else ", changing over time"
        return f"one bottleneck with parameters drawn from ranges{changing}"


class Traces(Bottleneck):
    """One bottleneck with a delivery trace; trace, delay, queue and loss are drawn."""

    kind: Literal["traces"] = "traces"
    uplink: tuple[str, ...] = Field(min_length=1, max_length=10_000)
    """Traces of the data direction: names of the catalog, or files."""
    downlink: tuple[str, ...] = ()
    """Traces of the ACK direction, one for each of ``uplink``. Default: no limit for ACKs."""
    weights: tuple[float, ...] = ()
    """Weights of the traces. Default: equal weights."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        for key in ("uplink", "downlink"):
            known_names(getattr(self, key), key, resolve_trace)
        if self.downlink and len(self.downlink) != len(self.uplink):
            raise ConfigError("wrong-count",
                f"{len(self.downlink)} traces", expected=f"{len(self.uplink)}: one for each of `uplink`",
                where="downlink",
            )  # fmt: skip
        if self.weights:
            read_weights(self.weights, len(self.uplink))
        return self

    @cached_property
    def _places(self) -> tuple[float, ...]:
        return cumulative(self.weights or (1.0,) * len(self.uplink))

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        place = pick(self._places, rng)
        up = self.uplink[place]
        mean, steps = trace_facts(up, duration_ns)
        back = LinkDirection.model_construct(trace=self.downlink[place], overhead=OVERHEAD) if self.downlink else None
        schedule = {"trace": up, "overhead": OVERHEAD}
        return self._sampled(rng, schedule, steps, mean, {"rate_mbps": float(mean) / 1e6}, back, up)

    @override
    def _rate_rows(self) -> list[ParameterRow]:
        means = [float(trace_facts(name, None)[0]) / 1e6 for name in self.uplink]
        names = ", ".join(self.uplink[:4]) + (", …" if len(self.uplink) > 4 else "")
        row = ParameterRow(name="trace", unit="Mbit/s", low=min(means), high=max(means), distribution=f"one of {names}")
        return [row]

    @override
    def summary(self) -> str:
        count = len(self.uplink)
        return f"one bottleneck with {'a trace' if count == 1 else f'one of {count} traces'}"
