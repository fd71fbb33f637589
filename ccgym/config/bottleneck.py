"""Distributions of paths with one bottleneck, whose rate and other parameters are random variables.

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

or go down and up in steps, as cross traffic that grows and shrinks leaves it (Muses, INFOCOM 2022)::

    rate:
      top: {choice: [10mbps, 100mbps]}
      period: 22s

The parameters are drawn in a fixed order: rate, its changes, delay, queue, loss, jitter, start rate.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from typing_extensions import override

from ccgym.config.capacity import capacity, trace_mean
from ccgym.config.catalog import resolve_trace
from ccgym.config.declared import Strict
from ccgym.config.mahimahi import OVERHEAD
from ccgym.config.models import LinkDirection
from ccgym.config.quantities import PeriodField
from ccgym.config.random_variables import (
    PLAIN,
    ZERO_LOSS,
    RandomNumber,
    RandomPackets,
    RandomProbability,
    RandomRate,
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
    DrawnLink,
    ParameterRow,
    PathDistribution,
    SampledPath,
    known_names,
    parameter_row,
)
from ccgym.errors import ConfigError, shown
from ccgym.units import NS_PER_MS, NS_PER_S, PACKET_BITS, format_time, parse_size

if TYPE_CHECKING:
    from ccgym import _core

MAX_RATE_STEPS: Final = 100_000
"""A rate that changes more often in one path is refused."""


class Changing(Strict):
    """A rate that changes at regular times; each value is drawn between the two bounds of the episode."""

    max: RandomRate
    """The episode's upper bound."""
    min: RandomRate
    """The episode's lower bound, truncated at the drawn upper bound."""
    every: RandomTime
    """Time between changes, rounded up to the grid; zero never changes."""
    grid: PeriodField = 100 * NS_PER_MS
    """Changes happen at whole multiples of this."""
    log: bool = False
    """Values are drawn evenly by their logarithm, so that a rate often becomes a multiple of itself."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.min.bounds()[0], self.max.bounds()[0]
        if low > high:
            raise ConfigError(
                "order-wrong",
                f"{self.min.show(low)} Mbit/s, above the smallest `max`, {self.max.show(high)} Mbit/s",
                expected="a lower bound below every upper bound",
                where="min",
            )
        return self


class Staircase(Strict):
    """A rate that goes down in equal steps and up again, over and over: what cross traffic leaves that grows and
    shrinks and reacts to nothing."""

    top: RandomRate
    """The highest rate."""
    bottom: float = Field(default=0.01, gt=0, le=1)
    """The lowest, as a fraction of the highest."""
    period: PeriodField
    """Time down and up again."""
    steps: int = Field(default=11, ge=2, le=1000)
    """Steps down, and as many up; of equal length."""
    begin: RandomNumber = RandomVariable(PLAIN, "uniform", (0.0, 1.0), written={"uniform": [0, 1]})
    """Where in the period an episode begins, as a fraction of it; 0: at the top, 0.5: at the bottom."""

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        if self.period < 2 * self.steps * NS_PER_MS:
            raise ConfigError("out-of-range",
                f"{format_time(self.period)} for {2 * self.steps} steps", expected="a millisecond or more for each",
                where="period",
            )  # fmt: skip
        return self

    def draw(self, rng: np.random.Generator, duration_ns: int) -> tuple[tuple[int, int], ...]:
        """The rate over time, from the top that is drawn: pairs of nanoseconds and bit/s."""
        top = self.top.sampler()(rng)
        length = self.period // (2 * self.steps)
        place = self.begin.sampler()(rng) % 1.0 * 2 * self.steps
        first, rest = int(place), round((1.0 - place % 1.0) * length)
        made = [(0, self._rate(top, first))]
        for step in range((max(0, duration_ns - 1 - rest)) // length + 1 if rest < duration_ns else 0):
            made.append((rest + step * length, self._rate(top, first + 1 + step)))
        return tuple(made)

    def _rate(self, top: float, step: int) -> int:
        """The rate of a step of the period: down through ``steps`` values, then up."""
        place = step % (2 * self.steps)
        depth = min(place, 2 * self.steps - 1 - place) / (self.steps - 1)
        return max(1, round(top * (1.0 - (1.0 - self.bottom) * depth)))


_STAIRCASE_KEYS: Final = frozenset(Staircase.model_fields)
_CHANGING_KEYS: Final = frozenset(Changing.model_fields)


def _rate_kind(value: Any) -> str:
    if isinstance(value, Changing) or (isinstance(value, dict) and _CHANGING_KEYS.intersection(value)):
        return "changing"
    if isinstance(value, Staircase) or (isinstance(value, dict) and _STAIRCASE_KEYS.intersection(value)):
        return "staircase"
    return "number"


RateOverTime: TypeAlias = Annotated[
    Annotated[RandomRate, Tag("number")]
    | Annotated[Changing, Tag("changing")]
    | Annotated[Staircase, Tag("staircase")],
    Discriminator(_rate_kind),
]
"""A rate that stays, or one that changes."""


class QueueSize(Strict):
    """How much may wait at the bottleneck (droptail): packets, or bandwidth-delay products of the drawn path."""

    packets: RandomPackets | None = None
    """Packets, rounded down."""
    bdp: RandomNumber | None = None
    """Or bandwidth-delay products; where the rate changes, of the maximum."""
    unlimited: bool = False
    """Or no limit."""
    round: Literal["up", "down"] = "up"
    """How bandwidth-delay products are rounded to packets."""
    min_packets: int = Field(default=1, ge=1, le=2**32)
    """Minimum in packets, with ``bdp``."""

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
            raise ConfigError("option-needed", "round or min_packets without bdp", expected="both with bdp only")
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
                hint="`kind: fixed` takes any queue that a path has",
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
    """Or both directions together."""
    queue: QueueSizeField = _ONE_BDP
    """Queue of the bottleneck; by default one bandwidth-delay product."""
    loss: RandomProbability = ZERO_LOSS
    """Random loss of data packets."""
    loss_at: Literal["after_queue", "before_queue"] = "after_queue"
    """Where packets are lost. After the queue, a lost packet has used the link; before it, it has not."""
    jitter: RandomTime | None = None
    """Extra delay of each data packet: evenly from zero to the drawn number, without reordering."""
    start_rate: RandomStartRate | None = None
    """Rate with which the flow starts: by itself, ``of: rate``, or ``of: packets_per_rtt`` (per base RTT)."""

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
        """Samplers of delay, queue, loss, jitter and start rate; ``None`` for what takes no part."""
        queue = self.queue.packets if self.queue.bdp is None else self.queue.bdp
        lossless = self.loss.bounds()[1] == 0.0
        optional = (queue, None if lossless else self.loss, self.jitter, self.start_rate)
        size, loss, jitter, start = (None if number is None else number.sampler() for number in optional)
        return self._delay_number.sampler(), size, loss, jitter, start

    def _drawn(
        self,
        rng: np.random.Generator,
        rate: int | tuple[tuple[int, int], ...] | None,
        traces: tuple[str, str | None] | None,
        first_rate: Fraction | int,
        largest_rate: Fraction | int,
        numbers: dict[str, float],
    ) -> DrawnLink:
        """Draw the rest of a path whose rate is known, and add it to its numbers."""
        draw_delay, draw_queue, draw_loss, draw_jitter, draw_start = self._draws
        delay = round(draw_delay(rng) if self.one_way_delay is not None else draw_delay(rng) / 2)
        numbers["one_way_delay_ms"] = delay / NS_PER_MS
        queue: int | None = None
        if draw_queue is not None:
            size = draw_queue(rng)
            if self.queue.bdp is None:
                queue = int(size)
            else:
                numbers["queue_bdp"] = size
                exact = Fraction(repr(size)) * largest_rate * (2 * delay) / (PACKET_BITS * NS_PER_S)
                queue = max(self.queue.min_packets, math.ceil(exact) if self.queue.round == "up" else math.floor(exact))
            numbers["queue_packets"] = float(queue)
        loss = 0.0 if draw_loss is None else draw_loss(rng)
        numbers["loss"] = loss
        jitter = 0
        if draw_jitter is not None:
            jitter = round(draw_jitter(rng))
            numbers["jitter_ms"] = jitter / NS_PER_MS
        if draw_start is not None:
            assert self.start_rate is not None
            start = draw_start(rng)
            if self.start_rate.of == "rate":
                start *= float(first_rate)
            elif self.start_rate.of:
                start *= PACKET_BITS * NS_PER_S / (2 * delay)
            numbers["start_rate_mbps"] = start / 1e6
        up, down = (None, None) if traces is None else traces
        overhead = 0 if up is None else OVERHEAD
        first = self.loss_at == "before_queue"
        return DrawnLink(rate, up, down, delay, queue, loss, first, jitter, overhead)

    @abstractmethod
    def _rate_rows(self) -> list[ParameterRow]:
        """Rows of what says when the link may deliver."""

    @override
    def rows(self) -> list[ParameterRow]:
        rows = self._rate_rows()
        delay = self._delay_number
        rows.append(parameter_row("one_way_delay" if self.rtt is None else "rtt", delay))
        if self.queue.unlimited:
            rows.append({"name": "queue", "unit": "packets", "low": None, "high": None, "distribution": "unlimited"})
        elif self.queue.packets is not None:
            rows.append(parameter_row("queue", self.queue.packets))
        else:
            assert self.queue.bdp is not None
            row = parameter_row("queue", self.queue.bdp)
            floor = f", min {self.queue.min_packets} packets" if self.queue.min_packets > 1 else ""
            rows.append({**row, "unit": "BDP", "distribution": row["distribution"] + floor})
        loss = parameter_row("loss", self.loss)
        if self.loss_at == "before_queue" and loss["high"]:
            loss["distribution"] += ", before the queue"
        rows.append(loss)
        if self.jitter is not None:
            rows.append(parameter_row("jitter", self.jitter))
        if self.start_rate is not None:
            row = parameter_row("start_rate", self.start_rate)
            unit = {"": "Mbit/s", "rate": "× rate", "packets_per_rtt": "packets/RTT"}[self.start_rate.of]
            rows.append({**row, "unit": unit})
        return rows


class Ranges(Bottleneck):
    """One bottleneck whose numbers are drawn."""

    kind: Literal["ranges"] = "ranges"
    rate: RateOverTime
    """Rate of the bottleneck: a number, :class:`Changing` or :class:`Staircase`."""

    @cached_property
    def _rate_draws(self) -> tuple[Sampler, Sampler, Sampler]:
        """Samplers of the changing rate's maximum, its minimum (see :meth:`_min`) and the period."""
        assert isinstance(self.rate, Changing)
        return self.rate.max.sampler(), self.rate.min.sampler(), self.rate.every.sampler()

    @cached_property
    def _draw_rate(self) -> Sampler:
        """Sampler of the rate that stays."""
        assert isinstance(self.rate, RandomVariable)
        return self.rate.sampler()

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        numbers: dict[str, float] = {}
        if isinstance(self.rate, Changing):
            steps = self._steps(rng, duration_ns, numbers)
        elif isinstance(self.rate, Staircase):
            steps = self.rate.draw(rng, duration_ns)
            ends = (*(start for start, _ in steps[1:]), duration_ns)
            volume = sum(rate * (end - start) for (start, rate), end in zip(steps, ends, strict=True))
            numbers["rate_mbps"] = volume / duration_ns / 1e6
        else:
            steps = ((0, round(self._draw_rate(rng))),)
            numbers["rate_mbps"] = steps[0][1] / 1e6
        one = steps[0][1] if len(steps) == 1 else steps
        drawn = self._drawn(rng, one, None, steps[0][1], max(rate for _, rate in steps), numbers)
        uplink, downlink = drawn.compiled()
        facts = {"base_rtt": 2 * drawn.delay, "capacity": [[start, rate] for start, rate in steps]}
        return SampledPath(uplink, downlink, facts, numbers, origin=drawn)

    def _steps(
        self, rng: np.random.Generator, duration_ns: int, numbers: dict[str, float]
    ) -> tuple[tuple[int, int], ...]:
        """Draw how the rate changes; the time mean goes into the numbers."""
        assert isinstance(self.rate, Changing)
        draw_max, _, draw_period = self._rate_draws
        high = draw_max(rng)
        low = self._min(rng, high)
        period = draw_period(rng)
        step = math.ceil(period / self.rate.grid) * self.rate.grid
        count = 1 if step == 0 else max(1, -(-duration_ns // step))
        if count > MAX_RATE_STEPS:
            raise ConfigError(
                "too-large",
                f"{count} changes of the rate in {format_time(duration_ns)}",
                expected=f"{MAX_RATE_STEPS} or fewer",
                where="rate",
            )
        parts = rng.random(count)
        drawn = low * (high / low) ** parts if self.rate.log else low + (high - low) * parts
        values = np.rint(drawn).astype(np.int64)
        last = duration_ns - (count - 1) * step
        mean = float(values[0]) if count == 1 else float(values[:-1].sum() * step + values[-1] * last) / duration_ns
        numbers.update(
            rate_mbps=mean / 1e6,
            rate_min_mbps=low / 1e6,
            rate_max_mbps=high / 1e6,
            change_every_s=step / NS_PER_S,
        )
        return tuple((place * step, rate) for place, rate in enumerate(values.tolist()))

    def _min(self, rng: np.random.Generator, high: float) -> float:
        """Draw the lower bound from its distribution, truncated at the drawn upper bound, as in Genet."""
        assert isinstance(self.rate, Changing)
        number = self.rate.min
        if number.distribution in ("uniform", "log_uniform") and number.values[1] > high:
            number = RandomVariable(number.dimension, number.distribution, (number.values[0], high))
            return number.sampler()(rng)
        return min(self._rate_draws[1](rng), high)

    def ranges(self) -> dict[str, RandomVariable]:
        """The numbers that are drawn from between two bounds, by the names of :meth:`rows`: the axes of a search."""
        rate: dict[str, RandomVariable | None]
        if isinstance(self.rate, Changing):
            rate = {"rate.max": self.rate.max, "rate.min": self.rate.min, "rate.every": self.rate.every}
        elif isinstance(self.rate, Staircase):
            rate = {"rate.top": self.rate.top}
        else:
            rate = {"rate": self.rate}
        size = self.queue.packets if self.queue.bdp is None else self.queue.bdp
        numbers = {
            **rate, "one_way_delay": self.one_way_delay, "rtt": self.rtt, "queue": size, "loss": self.loss,
            "jitter": self.jitter, "start_rate": self.start_rate,
        }  # fmt: skip
        return {name: number for name, number in numbers.items() if number is not None and number.is_range}

    def at(self, place: Mapping[str, float]) -> Ranges:
        """The same with some of its ranges set to one value.

        Args:
            place: Where in the range each lies, from 0 to 1, by the names of :meth:`ranges`; evenly in the logarithm
                where the range is drawn so.
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
        if isinstance(self.rate, RandomVariable):
            return [parameter_row("rate", self.rate)]
        if isinstance(self.rate, Staircase):
            top = parameter_row("rate.top", self.rate.top)
            top["distribution"] += (
                f"; in {self.rate.steps} steps to {100 * self.rate.bottom:g} % of it and up again in "
                f"{format_time(self.rate.period)}"
            )
            return [top]
        every = parameter_row("rate.every", self.rate.every)
        every["distribution"] += f", on a grid of {format_time(self.rate.grid)}"
        low = parameter_row("rate.min", self.rate.min)
        low["distribution"] += ", up to rate.max"
        return [parameter_row("rate.max", self.rate.max), low, every]

    @override
    def summary(self) -> str:
        changing = "" if isinstance(self.rate, RandomVariable) else ", changing over time"
        return f"one bottleneck with numbers drawn from ranges{changing}"


class Traces(Bottleneck):
    """One bottleneck that a delivery trace drives; trace, delay, queue and loss are drawn."""

    kind: Literal["traces"] = "traces"
    uplink: tuple[str, ...] = Field(min_length=1, max_length=10_000)
    """Traces of the data direction: names of the catalog, or files."""
    downlink: tuple[str, ...] = ()
    """Those of the acknowledgements, one for each; by default acknowledgements are not constrained."""
    weights: tuple[float, ...] = ()
    """How often each is drawn; by default equally."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        for key in ("uplink", "downlink"):
            known_names(getattr(self, key), key, resolve_trace)
        if self.downlink and len(self.downlink) != len(self.uplink):
            raise ConfigError("wrong-count",
                f"{len(self.downlink)} traces", expected=f"{len(self.uplink)}, one for each of `uplink`",
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
        down = self.downlink[place] if self.downlink else None
        mean, steps = trace_facts(up, duration_ns)
        numbers = {"rate_mbps": float(mean) / 1e6}
        drawn = self._drawn(rng, None, (up, down), Fraction(steps[0][1]), mean, numbers)
        uplink, downlink = drawn.compiled()
        facts = {"base_rtt": 2 * drawn.delay, "capacity": steps}
        traces = {name: native_trace(name) for name in (up, down) if name is not None}
        return SampledPath(uplink, downlink, facts, numbers, up, traces, drawn)

    @override
    def _rate_rows(self) -> list[ParameterRow]:
        means = [float(trace_facts(name, None)[0]) / 1e6 for name in self.uplink]
        names = ", ".join(self.uplink[:4]) + (", …" if len(self.uplink) > 4 else "")
        row = ParameterRow(name="trace", unit="Mbit/s", low=min(means), high=max(means), distribution=f"one of {names}")
        return [row]

    @override
    def summary(self) -> str:
        count = len(self.uplink)
        return f"one bottleneck driven by {'a trace' if count == 1 else f'one of {count} traces'}"


@lru_cache(maxsize=1024)
def native_trace(name: str) -> _core.Trace:
    """The native trace of a name, loaded once per process; errors as in :func:`resolve_trace`."""
    return resolve_trace(name).load()


@lru_cache(maxsize=1024)
def trace_facts(name: str, duration_ns: int | None) -> tuple[Fraction, list[list[int]]]:
    """Exact mean rate of a trace in bit/s, and its capacity in steps of nanoseconds and bit/s, made once."""
    steps = capacity(LinkDirection(trace=name), duration_ns)
    return trace_mean(name)[0][1], [[start, round(rate)] for start, rate in steps]
