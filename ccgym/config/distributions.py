"""Distributions of paths: what an environment draws its links from.

In YAML, ``paths:`` is one of

* a name of :data:`PRESETS`: ``paths: aurora``;
* any one path, by name, mahimahi command line, YAML or trace file: ``paths: 77.72mbps``;
* a mapping with ``kind``:

  =================  ================================================================================
  ``ranges``         one bottleneck whose parameters are random variables
  ``traces``         the same, driven by a trace
  ``fixed``          one path
  ``named``          paths of the catalog (`ccgym paths`), or given in any other way
  ``indigo_links``   the 30 links that Indigo was trained on (ATC 2018)
  ``extended``       another distribution, with further elements
  ``mixture``        other distributions, by weight
  =================  ================================================================================

* ``kind: stages``, a curriculum (:mod:`ccgym.config.curriculum`).

A bottleneck::

    kind: ranges
    rate: {uniform: [100, 500], unit: packets/s}
    one_way_delay: {uniform: [50ms, 500ms]}
    queue: {packets: {exp_uniform: [0, 8], floor: true, plus: 1}}
    loss: {uniform: [0, 0.05]}
    start_rate: {uniform: [0.3, 1.5], of: rate}

Its rate may change over time, as in Genet (SIGCOMM 2022)::

    rate:
      highest: {log_uniform: [0.1mbps, 100mbps]}
      lowest: 0.1mbps
      every: {uniform: [0s, 15s]}

The parameters are drawn in a fixed order: rate, its changes, delay, queue, loss, jitter, start rate.

In Python::

    distribution = read_distribution("aurora")
    drawn = distribution.sample(rng)          # drawn.spec(), drawn.numbers, drawn.path()
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from typing_extensions import Self, TypedDict, override

from ccgym.config.capacity import capacity, trace_mean
from ccgym.config.catalog import path_names, resolve_trace
from ccgym.config.declared import MAHIMAHI_OVERHEAD, Strict
from ccgym.config.models import Delay, ElementField, Link, LinkDirection
from ccgym.config.path import NetworkPath, PathField
from ccgym.config.quantities import PeriodField
from ccgym.config.random_variables import (
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
from ccgym.config.sampled_path import DEFAULT_DURATION_NS, UNITS, DrawnLink, SampledPath, path_numbers
from ccgym.config.yaml_loader import Loaded, config_error
from ccgym.errors import CcgymError, ConfigError, did_you_mean, shown
from ccgym.units import NS_PER_MS, NS_PER_S, PACKET_BITS, format_time, parse_size

if TYPE_CHECKING:
    from ccgym import _core

HELD_OUT_KEY: Final = 0x68656C64
"""Branch of the seed from which held-out paths are drawn; environments never draw from it."""


class ParameterRow(TypedDict):
    """One parameter of a path distribution, for people and for JSON."""

    name: str
    """Dotted where parts have parameters of the same name."""
    unit: str
    """Unit of ``low`` and ``high``; empty for a fraction."""
    low: float | None
    """Smallest value; ``None`` without one."""
    high: float | None
    """Largest value."""
    distribution: str
    """The distribution in a few words."""


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
        """One line for people."""

    @abstractmethod
    def rows(self) -> list[ParameterRow]:
        """The parameters that are drawn."""

    def describe(self) -> dict[str, Any]:
        """``summary``: one line; ``numbers``: rows with name, unit, low, high and distribution."""
        return {"summary": self.summary(), "numbers": self.rows()}

    def held_out(self, seed: int, count: int, duration_ns: int = DEFAULT_DURATION_NS) -> list[SampledPath]:
        """Draw paths for evaluation, from a stream that no environment uses.

        Args:
            seed: The same seed gives the same paths, and a larger ``count`` only adds to them.
            count: How many.
            duration_ns: As in :meth:`sample`.
        """
        sequences = (np.random.SeedSequence(seed, spawn_key=(HELD_OUT_KEY, place)) for place in range(count))
        return [self.sample(np.random.Generator(np.random.PCG64(sequence)), duration_ns) for sequence in sequences]

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


def parameter_row(name: str, number: RandomVariable) -> ParameterRow:
    """Describe a parameter of a distribution."""
    dimension = number.dimension
    low, high = (end / dimension.shown_scale for end in number.bounds())
    return {"name": name, "unit": dimension.shown_unit, "low": low, "high": high, "distribution": number.describe()}


def prefixed(prefix: str, rows: list[ParameterRow]) -> list[ParameterRow]:
    """Put a part's name in front of its parameters' names."""
    return [{**row, "name": f"{prefix}{row['name']}"} for row in rows]


# --- One bottleneck ---------------------------------------------------------------------------------------------------


MAX_RATE_STEPS: Final = 100_000
"""A rate that changes more often in one path is refused."""


class Changing(Strict):
    """A rate that changes at regular times; each value is drawn between the two bounds of the episode."""

    highest: RandomRate
    """The episode's upper bound."""
    lowest: RandomRate
    """The episode's lower bound, truncated at the drawn upper bound."""
    every: RandomTime
    """Time between changes, rounded up to the grid; zero never changes."""
    grid: PeriodField = 100 * NS_PER_MS
    """Changes happen at whole multiples of this."""
    log: bool = False
    """Values are drawn evenly by their logarithm, so that a rate often becomes a multiple of itself."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.lowest.bounds()[0], self.highest.bounds()[0]
        if low > high:
            raise ConfigError(
                f"{self.lowest.show(low)} Mbit/s, above the smallest `highest`, {self.highest.show(high)} Mbit/s",
                expected="a lower bound below every upper bound",
                where="lowest",
            )
        return self


_CHANGING_KEYS: Final = frozenset(Changing.model_fields)


def _rate_kind(value: Any) -> str:
    if isinstance(value, Changing) or (isinstance(value, dict) and _CHANGING_KEYS.intersection(value)):
        return "changing"
    return "number"


RateOverTime: TypeAlias = Annotated[
    Annotated[RandomRate, Tag("number")] | Annotated[Changing, Tag("changing")], Discriminator(_rate_kind)
]
"""A rate that stays, or one that changes."""


class QueueSize(Strict):
    """How much may wait at the bottleneck (droptail): packets, or bandwidth-delay products of the drawn path."""

    packets: RandomPackets | None = None
    """Packets, rounded down."""
    bdp: RandomNumber | None = None
    """Or bandwidth-delay products; where the rate changes, of the highest one."""
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
                " and ".join(given) or "a queue without size", expected="exactly one of packets, bdp and unlimited"
            )
        if self.bdp is None and (self.round != "up" or self.min_packets != 1):
            raise ConfigError("round or min_packets without bdp", expected="both with bdp only")
        return self


def _read_queue(value: Any) -> Any:
    if isinstance(value, str):
        if value.strip() in ("infinite", "unlimited"):
            return {"unlimited": True}
        size = parse_size(value)
        if size.bytes is not None:
            raise ConfigError(
                shown(value), expected="packets, bdp or infinite", hint="`kind: fixed` takes any queue that a path has"
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
            raise ConfigError(found, expected="exactly one of the two")
        if self._delay_number.bounds()[0] < 1.0:
            if self.queue.bdp is not None:
                raise ConfigError(
                    "a queue in bandwidth-delay products on a path without delay",
                    expected="a delay above zero, or a queue in packets",
                    where="queue",
                )
            if self.start_rate is not None and self.start_rate.of == "packets_per_rtt":
                raise ConfigError("packets per RTT without delay", expected="a delay above zero", where="start_rate")
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
        overhead = 0 if up is None else MAHIMAHI_OVERHEAD
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
    """Rate of the bottleneck: a number, or :class:`Changing`."""

    @cached_property
    def _rate_draws(self) -> tuple[Sampler, Sampler | None, Sampler | None]:
        """Samplers of the rate; or of the highest, the lowest (``None``: see :meth:`_lowest`) and the period."""
        if isinstance(self.rate, RandomVariable):
            return self.rate.sampler(), None, None
        return self.rate.highest.sampler(), self.rate.lowest.sampler(), self.rate.every.sampler()

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        draw_rate, _, draw_period = self._rate_draws
        if draw_period is None:
            rate = round(draw_rate(rng))
            numbers = {"rate_mbps": rate / 1e6}
            drawn = self._drawn(rng, rate, None, rate, rate, numbers)
            capacity_steps = [[0, rate]]
        else:
            numbers = {}
            steps = self._steps(rng, duration_ns, numbers)
            one = steps[0][1] if len(steps) == 1 else steps
            drawn = self._drawn(rng, one, None, steps[0][1], max(rate for _, rate in steps), numbers)
            capacity_steps = [[start, rate] for start, rate in steps]
        uplink, downlink = drawn.compiled()
        facts = {"base_rtt": 2 * drawn.delay, "capacity": capacity_steps}
        return SampledPath(uplink, downlink, facts, numbers, origin=drawn)

    def _steps(
        self, rng: np.random.Generator, duration_ns: int, numbers: dict[str, float]
    ) -> tuple[tuple[int, int], ...]:
        """Draw how the rate changes; the time mean goes into the numbers."""
        assert isinstance(self.rate, Changing)
        draw_highest, _, draw_period = self._rate_draws
        assert draw_period is not None
        highest = draw_highest(rng)
        lowest = self._lowest(rng, highest)
        period = draw_period(rng)
        step = math.ceil(period / self.rate.grid) * self.rate.grid
        count = 1 if step == 0 else max(1, -(-duration_ns // step))
        if count > MAX_RATE_STEPS:
            raise ConfigError(
                f"{count} changes of the rate in {format_time(duration_ns)}",
                expected=f"{MAX_RATE_STEPS} or fewer",
                where="rate",
            )
        parts = rng.random(count)
        drawn = lowest * (highest / lowest) ** parts if self.rate.log else lowest + (highest - lowest) * parts
        values = np.rint(drawn).astype(np.int64)
        last = duration_ns - (count - 1) * step
        mean = float(values[0]) if count == 1 else float(values[:-1].sum() * step + values[-1] * last) / duration_ns
        numbers.update(
            rate_mbps=mean / 1e6,
            rate_lowest_mbps=lowest / 1e6,
            rate_highest_mbps=highest / 1e6,
            change_every_s=step / NS_PER_S,
        )
        return tuple((place * step, rate) for place, rate in enumerate(values.tolist()))

    def _lowest(self, rng: np.random.Generator, highest: float) -> float:
        """Draw the lower bound from its distribution, truncated at the drawn upper bound, as in Genet."""
        assert isinstance(self.rate, Changing)
        number = self.rate.lowest
        if number.distribution in ("uniform", "log_uniform") and number.values[1] > highest:
            number = RandomVariable(number.dimension, number.distribution, (number.values[0], highest))
            return number.sampler()(rng)
        draw = self._rate_draws[1]
        assert draw is not None
        return min(draw(rng), highest)

    @override
    def _rate_rows(self) -> list[ParameterRow]:
        if isinstance(self.rate, RandomVariable):
            return [parameter_row("rate", self.rate)]
        every = parameter_row("rate.every", self.rate.every)
        every["distribution"] += f", on a grid of {format_time(self.rate.grid)}"
        lowest = parameter_row("rate.lowest", self.rate.lowest)
        lowest["distribution"] += ", up to rate.highest"
        return [parameter_row("rate.highest", self.rate.highest), lowest, every]

    @override
    def summary(self) -> str:
        changing = ", changing over time" if isinstance(self.rate, Changing) else ""
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
            for place, name in enumerate(getattr(self, key)):
                try:
                    resolve_trace(name)
                except CcgymError as error:
                    raise ConfigError(
                        error.found, expected=error.expected, hint=error.hint, where=f"{key}[{place}]"
                    ) from None
        if self.downlink and len(self.downlink) != len(self.uplink):
            raise ConfigError(
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
        return [
            {
                "name": "trace",
                "unit": "Mbit/s",
                "low": min(means),
                "high": max(means),
                "distribution": f"one of {names}",
            }
        ]

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


# --- Paths given in full ----------------------------------------------------------------------------------------------


INDIGO_RATES_MBPS: Final = (5, 10, 20, 50, 100, 200)
"""Rates of Indigo's synthetic links."""
INDIGO_DELAYS_MS: Final = (10, 20, 40, 80)
"""One-way delays of Indigo's synthetic links."""
INDIGO_SYNTHETIC: Final = tuple(f"indigo-{rate}mbps-{ms}ms" for ms in INDIGO_DELAYS_MS for rate in INDIGO_RATES_MBPS)
"""Catalog names of the synthetic links: constant rate, unlimited queue, no loss."""
INDIGO_CALIBRATED: Final = tuple(f"pantheon-{number}" for number in range(1, 7))
"""Catalog names of the six emulators that are calibrated to real paths."""


class _Listed(PathDistribution):
    """A distribution over a list of paths, each compiled once."""

    @property
    @abstractmethod
    def _paths(self) -> tuple[NetworkPath, ...]:
        """The list."""

    def _weights(self) -> tuple[float, ...]:
        """How often each is drawn; nothing for equally."""
        return ()

    @cached_property
    def _places(self) -> tuple[float, ...]:
        return cumulative(self._weights() or (1.0,) * len(self._paths))

    @cached_property
    def _made(self) -> dict[tuple[int, int], SampledPath]:
        """Compiled paths by place and duration."""
        return {}

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        place = pick(self._places, rng) if len(self._places) > 1 else 0
        made = self._made.get((place, duration_ns))
        if made is None:
            made = SampledPath.of(self._paths[place], duration_ns)
            if len(self._made) > 4096:  # every reset draws a new duration
                self._made.clear()
            self._made[place, duration_ns] = made
        return made

    @override
    def rows(self) -> list[ParameterRow]:
        numbers = [path_numbers(path) for path in self._paths]
        rows: list[ParameterRow] = []
        for name, unit in UNITS.items():
            values = [one[name] for one in numbers if name in one]
            if values:
                words = "in steps" if len(set(values)) > 1 else f"{values[0]:.6g}"
                words = (
                    words
                    if len(values) == len(numbers)
                    else f"{words}; {len(numbers) - len(values)} paths without limit"
                )
                shown_unit = "" if unit == "fraction" else unit
                short = name.rsplit("_", 1)[0] if name != "loss" else name
                rows.append(
                    {"name": short, "unit": shown_unit, "low": min(values), "high": max(values), "distribution": words}
                )
        return rows


class Fixed(_Listed):
    """Always the same path."""

    kind: Literal["fixed"] = "fixed"
    path: PathField
    """The path, given in any way."""

    @property
    def _paths(self) -> tuple[NetworkPath, ...]:
        return (self.path,)

    @override
    def summary(self) -> str:
        return f"always {self.path.name or 'the same path'}{f': {self.path.title}' if self.path.title else ''}"


class Named(_Listed):
    """One of several paths."""

    kind: Literal["named"] = "named"
    names: tuple[str, ...] = Field(min_length=1, max_length=10_000)
    """Names of the catalog, mahimahi command lines, YAML files or traces."""
    weights: tuple[float, ...] = ()
    """How often each is drawn; by default equally."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        for place, name in enumerate(self.names):
            try:
                NetworkPath.from_any(name)
            except CcgymError as error:
                raise ConfigError(
                    error.found, expected=error.expected, hint=error.hint, where=f"names[{place}]"
                ) from None
        if self.weights:
            read_weights(self.weights, len(self.names))
        return self

    @cached_property
    def _paths(self) -> tuple[NetworkPath, ...]:
        return tuple(NetworkPath.from_any(name) for name in self.names)

    @override
    def _weights(self) -> tuple[float, ...]:
        return self.weights

    @override
    def summary(self) -> str:
        names = ", ".join(self.names[:6]) + (", …" if len(self.names) > 6 else "")
        return f"one of {len(self.names)} paths{' (weighted)' if self.weights else ''}: {names}"


class IndigoLinks(_Listed):
    """The links that Indigo was trained on: 24 synthetic ones and six calibrated emulators, equally often.

    Synthetic: every rate of 5, 10, 20, 50, 100, 200 Mbit/s with every one-way delay of 10, 20, 40, 80 ms.
    """

    kind: Literal["indigo_links"] = "indigo_links"
    which: Literal["all", "synthetic", "calibrated"] = "all"
    """Which of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the paths."""
        parts = {"synthetic": INDIGO_SYNTHETIC, "calibrated": INDIGO_CALIBRATED}
        return parts.get(self.which, INDIGO_SYNTHETIC + INDIGO_CALIBRATED)

    @cached_property
    def _paths(self) -> tuple[NetworkPath, ...]:
        return tuple(NetworkPath.named(name) for name in self.names)

    @override
    def summary(self) -> str:
        words = {"all": "24 synthetic and 6 calibrated", "synthetic": "24 synthetic", "calibrated": "6 calibrated"}
        return f"Indigo's training links: {words[self.which]}"


# --- Distributions of distributions -----------------------------------------------------------------------------------


class Part(Strict):
    """A part of a mixture."""

    weight: float = Field(default=1.0, gt=0, le=1e12)
    """How often it is drawn, against the other parts' weights."""
    paths: PathDistributionField
    """What is drawn."""


class Extended(PathDistribution):
    """Another distribution, with further elements at the sender's end of each path."""

    kind: Literal["extended"] = "extended"
    paths: PathDistributionField
    """What is drawn."""
    elements: tuple[ElementField, ...] = Field(min_length=1, max_length=100)
    """Elements as in a path, the outermost first. Links that limit the rate belong into ``paths``."""

    @model_validator(mode="after")
    def _transparent(self) -> Self:
        for place, element in enumerate(self.elements):
            if isinstance(element, (Delay, Link)):
                raise ConfigError(
                    f"a {element.kind}", expected="elements that leave rate and base round trip as they are",
                    where=f"elements[{place}]",
                )  # fmt: skip
        return self

    @cached_property
    def _made(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        compiled = NetworkPath(chain=self.elements).compile()
        return compiled.uplink, compiled.downlink

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        drawn = self.paths.sample(rng, duration_ns)
        first, last = self._made
        return replace(
            drawn, uplink=[*first, *drawn.uplink], downlink=[*drawn.downlink, *last],
            added=(*drawn.added, *self.elements),
        )  # fmt: skip

    @override
    def rows(self) -> list[ParameterRow]:
        return self.paths.rows()

    @override
    def summary(self) -> str:
        added = (element.words() for element in self.elements if not isinstance(element, (Delay, Link)))
        return f"{self.paths.summary()}, with {' and '.join(added)}"


class Mixture(PathDistribution):
    """Other distributions, by weight."""

    kind: Literal["mixture"] = "mixture"
    parts: tuple[Part, ...] = Field(min_length=1, max_length=10_000)
    """The parts."""

    @cached_property
    def _places(self) -> tuple[float, ...]:
        return cumulative(part.weight for part in self.parts)

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        return self.parts[pick(self._places, rng)].paths.sample(rng, duration_ns)

    @override
    def rows(self) -> list[ParameterRow]:
        return [row for place, part in enumerate(self.parts) for row in prefixed(f"parts[{place}].", part.paths.rows())]

    @override
    def summary(self) -> str:
        total = sum(part.weight for part in self.parts)
        parts = (f"{100 * part.weight / total:.3g} %: {part.paths.summary()}" for part in self.parts)
        return f"a mixture of {len(self.parts)} ({'; '.join(parts)})"


# --- Names and short forms --------------------------------------------------------------------------------------------


_GENET: Final = {"kind": "ranges", "start_rate": {"constant": 10, "of": "packets_per_rtt"}, "loss_at": "before_queue"}

PRESETS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "aurora": (
        "training links of Aurora: PCCproject/PCC-RL @64bea6e, src/gym/network_sim.py",
        {
            "kind": "ranges",
            "rate": {"uniform": [100, 500], "unit": "packets/s"},
            "one_way_delay": {"uniform": ["50ms", "500ms"]},
            "queue": {"packets": {"exp_uniform": [0, 8], "floor": True, "plus": 1}},
            "loss": {"uniform": [0.0, 0.05]},
            "loss_at": "before_queue",
            "start_rate": {"uniform": [0.3, 1.5], "of": "rate"},
        },
    ),
    "genet_rl1": (
        "Genet's smallest ranges: zxxia/RL-CC @d3d3be0, config/train/udr_7_dims_0827/udr_small_seed_10.json",
        {
            **_GENET,
            "rate": {
                "highest": {"log_uniform": ["3.33995mbps", "7.19571mbps"]},
                "lowest": {"log_uniform": ["0.51048mbps", "0.82096mbps"]},
                "every": {"uniform": ["10.981185s", "12.647852s"]},
            },
            "one_way_delay": {"uniform": ["103.744069ms", "125.744069ms"]},
            "queue": {"bdp": 2, "min_packets": 2, "round": "down"},
            "loss": {"log_uniform": [0.00916992, 0.01472548], "zero_below": 0.0001},
        },
    ),
    "genet_rl2": (
        "Genet's middle ranges: zxxia/RL-CC @d3d3be0, config/train/udr_7_dims_0827/udr_mid_seed_10.json",
        {
            **_GENET,
            "rate": {
                "highest": {"log_uniform": ["1.38933mbps", "13.89329mbps"]},
                "lowest": {"log_uniform": ["0.40991mbps", "2.12301mbps"]},
                "every": {"uniform": ["8.235889s", "13.235889s"]},
            },
            "one_way_delay": {"uniform": ["78.308052ms", "144.308052ms"]},
            "queue": {"bdp": {"uniform": [1, 2]}, "min_packets": 2, "round": "down"},
            "loss": {"log_uniform": [0.00687994, 0.02354661], "zero_below": 0.0001},
        },
    ),
    "genet_rl3": (
        "Genet's full ranges: GenetProject/Genet @5d4303b, config/cc/udr3.json",
        {
            **_GENET,
            "rate": {
                "highest": {"log_uniform": ["0.1mbps", "100mbps"]},
                "lowest": "0.1mbps",
                "every": {"uniform": ["0s", "15s"]},
            },
            "one_way_delay": {"uniform": ["2ms", "200ms"]},
            "queue": {"bdp": {"uniform": [0.2, 3]}, "min_packets": 2, "round": "down"},
            "loss": {"log_uniform": [0.00001, 0.05001], "zero_below": 0.0001},
        },
    ),
    "indigo": (
        "training links of Indigo: StanfordSNR/indigo @463d89b, dagger/worker.py",
        {"kind": "indigo_links"},
    ),
}
"""Distributions by name: where they come from, and what stands for the name in YAML."""


def _read(value: object) -> object:
    """Turn the short forms into mappings, and refuse an unknown ``kind`` with a near miss."""
    if isinstance(value, str):
        if value in PRESETS:
            return dict(PRESETS[value][1])
        return {"kind": "fixed", "path": _one_path(value)}
    if isinstance(value, NetworkPath):
        return {"kind": "fixed", "path": value}
    if isinstance(value, Mapping):
        kind = value.get("kind")
        if kind is None and not {"rate", "trace", "mahimahi", "named", "chain"}.isdisjoint(value):
            hint = "one path is `kind: fixed` with `path:`, drawn numbers are `kind: ranges`"
            raise ConfigError("paths without kind", expected="kind: " + ", ".join(KINDS), hint=hint)
        if kind not in KINDS:
            raise ConfigError(
                "paths without kind" if kind is None else f"unknown kind of paths {shown(kind)}",
                expected="kind: " + ", ".join(KINDS),
                hint="" if kind is None else did_you_mean(str(kind), KINDS),
                where="" if kind is None else "kind",
            )
    return value


def _one_path(text: str) -> NetworkPath:
    try:
        return NetworkPath.from_any(text)
    except CcgymError as error:
        hint = did_you_mean(text, PRESETS) or did_you_mean(text, path_names(), error.hint)
        raise ConfigError(
            error.found,
            expected=f"paths: one of {', '.join(PRESETS)}, a path like `ccgym paths` lists, or a mapping with kind",
            hint=hint,
        ) from None


AnyDistribution: TypeAlias = Ranges | Traces | Fixed | Named | IndigoLinks | Extended | Mixture
"""Every distribution."""

PathDistributionField: TypeAlias = Annotated[
    AnyDistribution,
    Field(discriminator="kind"),
    BeforeValidator(_read, json_schema_input_type=AnyDistribution | str | dict[str, Any]),
]
"""A distribution in a model, given in any of the ways above except ``stages``."""

KINDS: Final[dict[str, type[PathDistribution]]] = {
    "ranges": Ranges,
    "traces": Traces,
    "fixed": Fixed,
    "named": Named,
    "indigo_links": IndigoLinks,
    "extended": Extended,
    "mixture": Mixture,
}
"""The distributions by ``kind``."""

Part.model_rebuild()
Extended.model_rebuild()
Mixture.model_rebuild()


class _Holder(BaseModel):
    model_config = ConfigDict(extra="forbid")

    paths: PathDistributionField


def read_distribution(value: object) -> PathDistribution:
    """Understand a distribution however it is given: a preset's name, a path, a mapping, or a distribution.

    Raises:
        ConfigError: It is none of these, or wrong.
    """
    if isinstance(value, PathDistribution):
        return value
    if isinstance(value, str):
        return _from_text(value)
    return _from_value(value)


@lru_cache(maxsize=64)
def _from_text(value: str) -> PathDistribution:
    return _from_value(value)


def _from_value(value: object) -> PathDistribution:
    data = {"paths": value}
    try:
        return _Holder.model_validate(data).paths
    except ValidationError as error:
        raise config_error(error, _Holder, Loaded(data)) from None
