"""Random variables with units, for path distributions.

In YAML a random variable is a constant, or a mapping with one distribution::

    loss: 1%                                                    constant
    rate: {uniform: [1.2mbps, 6mbps]}                           uniform between two bounds
    rate: {uniform: [100, 500], unit: packets/s}                one unit for plain numbers
    rate: {log_uniform: [0.1mbps, 100mbps]}                     logarithm is uniform
    rate: {choice: [12mbps, 24mbps, 48mbps], weights: [2, 1, 1]}
    packets: {exp_uniform: [0, 8], floor: true, plus: 1}        1 + ⌊exp(U(0, 8))⌋
    start_rate: {uniform: [0.3, 1.5], of: rate}                 a multiple of a value drawn before

First ``floor`` rounds down, then ``plus`` is added, then values below ``zero_below`` become zero.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ccgym.errors import ConfigError, did_you_mean, located, shown
from ccgym.units import (
    MAX_NS,
    MAX_RATE_BPS,
    NS_PER_MS,
    format_probability,
    format_rate,
    format_time,
    parse_flow_rate,
    parse_probability,
    parse_size,
    parse_time,
)

Sampler: TypeAlias = "Callable[[np.random.Generator], float]"
"""Draws a value in base units."""

DISTRIBUTIONS: Final = ("constant", "uniform", "log_uniform", "exp_uniform", "choice")
"""Distributions of random variables."""
MODIFIERS: Final = ("unit", "weights", "of", "floor", "plus", "zero_below")
"""Other keys in the mapping of a random variable."""
MAX_CHOICES: Final = 10_000
"""Max number of choices."""


@dataclass(frozen=True)
class Dimension:
    """The quantity of a random variable: its reader, writer, unit and range."""

    name: str
    """Name of the quantity, such as ``rate``."""
    read: Callable[[Any], float]
    """Converts text or a number to base units; raises :class:`~ccgym.errors.UnitError`."""
    write: Callable[[float], Any]
    """Converts base units to the form that :attr:`read` accepts."""
    shown_unit: str
    """Unit in output for users; empty for a plain number."""
    shown_scale: float
    """Number of base units in :attr:`shown_unit`."""
    floor: float = 0.0
    """Minimum valid value, base units."""
    ceiling: float = math.inf
    bare_unit: bool = True
    """Whether ``unit:`` can set the unit of plain numbers."""


def _plain(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError("wrong-type", shown(value), expected="a number")
    return float(value)


def _packets(value: Any) -> float:
    if isinstance(value, str):
        size = parse_size(value)
        if size.packets is None:
            raise ConfigError("wrong-type", shown(value), expected="a number of packets, like 94 or '94p'")
        return float(size.packets)
    return _plain(value)


def _rounded(value: float) -> Any:
    return int(value) if value == int(value) else value


def _write_rate(value: float) -> str:
    return format_rate(round(value))


def _write_time(value: float) -> str:
    return format_time(round(value))


RATE: Final = Dimension("rate", parse_flow_rate, _write_rate, "Mbit/s", 1e6, floor=1.0, ceiling=float(MAX_RATE_BPS))
"""Bits per second."""
TIME: Final = Dimension("time", parse_time, _write_time, "ms", NS_PER_MS, ceiling=float(MAX_NS // 4))
"""Nanoseconds."""
PROBABILITY: Final = Dimension("probability", parse_probability, format_probability, "", 1.0, ceiling=1.0)
"""From 0 to 1."""
PACKETS: Final = Dimension("number of packets", _packets, _rounded, "packets", 1.0, floor=1.0, ceiling=float(2**32))
"""Packets."""
PLAIN: Final = Dimension("number", _plain, _rounded, "", 1.0, ceiling=1e6, bare_unit=False)
"""A number without unit: a multiple of another value."""


@dataclass(frozen=True)
class RandomVariable:
    """A random variable, or a constant."""

    dimension: Dimension
    """Quantity of the variable; a plain number if :attr:`of` is given."""
    distribution: str
    """One of :data:`DISTRIBUTIONS`."""
    values: tuple[float, ...]
    """Base units: the constant; both bounds (for ``exp_uniform``, bounds of the exponent); or the choices."""
    weights: tuple[float, ...] = ()
    """Weights of the choices; empty: equal weights."""
    of: str = ""
    """Name of the value that the variable is a multiple of; empty if it is not a multiple."""
    floor: bool = False
    """Whether to round down."""
    plus: float = 0.0
    """Value added after rounding, base units."""
    zero_below: float = 0.0
    """Threshold below which values become zero, base units."""
    written: Any = field(default=None, compare=False)
    """The variable as written in the configuration."""

    def sampler(self) -> Sampler:
        """Return a fast function that draws a value; a constant uses no random number."""
        draw = self._drawn()
        return (lambda rng: self._modified(draw(rng))) if self.floor or self.plus or self.zero_below else draw

    def _drawn(self) -> Sampler:
        low, high = self.values[0], self.values[-1]
        span = high - low
        if self.distribution == "exp_uniform":
            return lambda rng: math.exp(low + span * rng.random())
        if self.distribution == "constant" or (low == high and len(self.values) == 2):
            return lambda rng: low
        if self.distribution == "choice":
            steps = cumulative(self.weights or (1.0,) * len(self.values))
            return lambda rng: self.values[pick(steps, rng)]
        if self.distribution == "log_uniform":
            log_low, log_span = math.log(low), math.log(high / low)
            return lambda rng: min(max(math.exp(log_low + log_span * rng.random()), low), high)
        return lambda rng: low + span * rng.random()

    def _modified(self, value: float) -> float:
        value = (float(math.floor(value)) if self.floor else value) + self.plus
        return 0.0 if value < self.zero_below else value

    @property
    def is_range(self) -> bool:
        """Whether the distribution is uniform or log-uniform between two different bounds."""
        return self.distribution in ("uniform", "log_uniform") and self.values[0] < self.values[1]

    def at(self, part: float) -> RandomVariable:
        """Return the constant at a position of the range: 0 is the lower bound, 1 the upper bound.

        Args:
            part: Position from 0 to 1, on a linear scale (uniform) or logarithmic scale (log-uniform).
        """
        assert self.is_range
        low, high = self.values
        value = low + (high - low) * part if self.distribution == "uniform" else low * (high / low) ** part
        modifiers = {name: word for name, word in (self.written or {}).items() if name in MODIFIERS and name != "unit"}
        written = {"constant": self.dimension.write(min(max(value, low), high)), **modifiers}
        return read_random_variable(written, self.dimension, (self.of,) if self.of else ())

    def bounds(self) -> tuple[float, float]:
        """Return the min and max of drawn values, in base units (multiples if :attr:`of` is given)."""
        low, high = min(self.values), max(self.values)
        if self.distribution == "exp_uniform":
            low, high = math.exp(low), math.exp(high)
        return self._modified(low), self._modified(high)

    def describe(self) -> str:
        """Describe the distribution in a few words."""
        ends = [self.show(value) if self.distribution != "exp_uniform" else f"{value:g}" for value in self.values]
        if self.distribution == "constant":
            text = ends[0]
        elif self.distribution == "choice":
            text = f"one of {', '.join(ends[:8])}{', …' if len(ends) > 8 else ''}"
            text += " (weighted)" if self.weights else ""
        else:
            span = f"U({ends[0]}, {ends[1]})"
            text = {"uniform": span, "log_uniform": f"log-{span}", "exp_uniform": f"exp({span})"}[self.distribution]
        if self.floor:
            text = f"⌊{text}⌋"
        if self.plus:
            text = f"{self.show(self.plus)} + {text}"
        if self.of:
            text += f" × {self.of}"
        if self.zero_below:
            text += f", 0 below {self.show(self.zero_below)}"
        return text

    def show(self, value: float) -> str:
        """Write a value in the unit for users."""
        return f"{value / self.dimension.shown_scale:.6g}"


def cumulative(weights: Iterable[float]) -> tuple[float, ...]:
    """Return cumulative sums of weights, scaled to end at 1."""
    sums = list(accumulate(weights))
    return (*(part / sums[-1] for part in sums[:-1]), 1.0)


def pick(steps: tuple[float, ...], rng: np.random.Generator) -> int:
    """Draw a position by its weight; ``steps`` are :func:`cumulative` weights."""
    return bisect_right(steps, rng.random(), hi=len(steps) - 1)


def read_random_variable(value: object, dimension: Dimension, of: tuple[str, ...] = ()) -> RandomVariable:
    """Read a random variable from YAML data; see the module's docstring.

    Args:
        value: A constant, a mapping with one distribution, or a :class:`RandomVariable`.
        dimension: Quantity of the variable.
        of: Names of values that the variable can be a multiple of.

    Raises:
        ConfigError: There is no distribution or several, a key is unknown, or bounds are out of order or out of range.
        UnitError: A quantity cannot be read.
    """
    if isinstance(value, RandomVariable):
        return value
    if not isinstance(value, Mapping):
        constant = float(dimension.read(value))
        _in_range(constant, dimension, value)
        return RandomVariable(dimension, "constant", (constant,), written=value)
    known = (*DISTRIBUTIONS, *MODIFIERS)
    for key in value:
        if key not in known:
            with located(str(key)):
                found, hint = f"unknown key {shown(key)}", did_you_mean(str(key), known)
                raise ConfigError("unknown-key", found, expected=", ".join(known), hint=hint)
    given = [name for name in DISTRIBUTIONS if name in value]
    if len(given) != 1:
        raise ConfigError(
            "exactly-one",
            " and ".join(given) + " together" if given else f"a {dimension.name} without a distribution",
            expected="exactly one of " + ", ".join(DISTRIBUTIONS),
            hint="" if given else f"write a constant {dimension.name} without braces",
        )
    distribution, target, unit = given[0], value.get("of", ""), value.get("unit")
    measured = PLAIN if target else dimension
    with located("of"):
        if target and target not in of:
            hint = did_you_mean(str(target), of)
            raise ConfigError("unknown-name", shown(target), expected=" or ".join(of) or "no `of` here", hint=hint)
    with located("unit"):
        if unit is not None and (not isinstance(unit, str) or not measured.bare_unit):
            expected = "a unit such as packets/s" if measured.bare_unit else "no unit"
            raise ConfigError("unknown-unit", shown(unit), expected=expected)

    def read(part: Any) -> float:
        bare = unit is not None and isinstance(part, (int, float)) and not isinstance(part, bool)
        return float(measured.read(f"{part!r} {unit}" if bare else part))

    with located(distribution):
        values = _read_values(value[distribution], distribution, read)
    with located("floor"):
        floor = value.get("floor", False)
        if not isinstance(floor, bool):
            raise ConfigError("wrong-type", shown(floor), expected="true or false")
    weights = read_weights(value["weights"], len(values)) if "weights" in value else ()
    added = {}
    for key in ("plus", "zero_below"):
        with located(key):
            added[key] = read(value[key]) if key in value else 0.0
    number = RandomVariable(measured, distribution, values, weights, str(target), floor, **added, written=dict(value))
    with located("weights"):
        if weights and distribution != "choice":
            raise ConfigError("option-needed", f"weights with {distribution}", expected="weights only with choice")
    with located(distribution):
        for end in number.bounds():
            _in_range(end, measured, value[distribution])
    return number


def _read_values(given: Any, distribution: str, read: Callable[[Any], float]) -> tuple[float, ...]:
    """Read the constant, the bounds or the choices of a distribution."""
    if distribution == "constant":
        return (read(given),)
    expected = f"1 to {MAX_CHOICES} values" if distribution == "choice" else "two bounds, like [low, high]"
    if not isinstance(given, (list, tuple)) or not 1 <= len(given) <= MAX_CHOICES:
        raise ConfigError("wrong-type", shown(given), expected=expected)
    if distribution == "choice":
        return tuple(map(read, given))
    if len(given) != 2:
        raise ConfigError("wrong-count", f"{len(given)} numbers", expected=expected)
    low, high = map(_plain if distribution == "exp_uniform" else read, given)
    if low > high:
        raise ConfigError("order-wrong", f"{given[0]} before {given[1]}", expected="the smaller bound first")
    if distribution == "log_uniform" and low <= 0.0:
        expected = "a bound above zero, because zero has no logarithm"
        raise ConfigError("out-of-range", shown(given[0]), expected=expected)
    if distribution == "exp_uniform" and max(abs(low), abs(high)) > 50:
        raise ConfigError("out-of-range", shown(given), expected="exponents from -50 to 50")
    return low, high


def read_weights(value: object, count: int) -> tuple[float, ...]:
    """Read the weights of ``count`` choices. Raises :class:`ConfigError`."""
    with located("weights"):
        if not isinstance(value, (list, tuple)) or len(value) != count:
            raise ConfigError("wrong-count", shown(value), expected=f"{count} weights, one for each choice")
        weights = tuple(_plain(part) for part in value)
        if min(weights) < 0 or not 0 < sum(weights) < math.inf:
            raise ConfigError("out-of-range", shown(value), expected="weights of zero or more, not all zero")
    return weights


def _in_range(value: float, dimension: Dimension, written: object) -> None:
    if not dimension.floor <= value <= dimension.ceiling:
        low, high = dimension.write(dimension.floor), dimension.write(dimension.ceiling)
        found = f"{shown(written)}, which reaches {dimension.write(value)}"
        raise ConfigError("out-of-range", found, expected=f"a {dimension.name} from {low} to {high}")


@dataclass(frozen=True)
class Reads:
    """Metadata of the field of a random variable: its quantity, and the values that it can be a multiple of."""

    dimension: Dimension
    of: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def write(number: RandomVariable) -> Any:
            return number.dimension.write(number.values[0]) if number.written is None else number.written

        return core_schema.no_info_plain_validator_function(
            lambda value: read_random_variable(value, self.dimension, self.of),
            serialization=core_schema.plain_serializer_function_ser_schema(write),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": ["string", "number"]}, {"type": "object"}]}


RandomRate: TypeAlias = Annotated[RandomVariable, Reads(RATE)]
"""A rate: ``"3mbps"``, ``{uniform: [100, 500], unit: packets/s}``."""
RandomStartRate: TypeAlias = Annotated[RandomVariable, Reads(RATE, of=("rate", "packets_per_rtt"))]
"""A rate, or a multiple of the drawn rate or of one packet per base RTT."""
RandomTime: TypeAlias = Annotated[RandomVariable, Reads(TIME)]
RandomProbability: TypeAlias = Annotated[RandomVariable, Reads(PROBABILITY)]
RandomPackets: TypeAlias = Annotated[RandomVariable, Reads(PACKETS)]
"""A number of packets; drawn numbers are rounded down."""
RandomNumber: TypeAlias = Annotated[RandomVariable, Reads(PLAIN)]
"""A number without unit."""

ZERO_LOSS: Final = RandomVariable(PROBABILITY, "constant", (0.0,), written=0.0)
"""No loss."""
