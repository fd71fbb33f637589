"""Random values of an experiment, drawn once per run in the order of its YAML; all schemes get the same values.

The distributions are paths' (``{uniform: [10ms, 100ms]}``, ``log_uniform``, ``choice``), and ``grid``: every
multiple of ``step`` between two bounds with the same probability. With ``every: 10s``, a new value is drawn every
ten seconds; the result is a list of steps.

``walk`` is ccperf's random walk between two bounds (https://ccperf.net/experiments/random_walk): every step changes by
ΔX_t = ρ·ΔX_{t−1} + N(0, σ²), with ρ the ``correlation`` and σ the ``noise``, and the value is kept between the bounds.
It begins at ``start``, by default the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ccgym.config.random_variables import DISTRIBUTIONS, PLAIN, RATE, TIME, Dimension, read_random_variable
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.experiments.placeholders import Quantity, Unit
from ccgym.units import Nanoseconds, parse_positive_time

GRID: Final = "grid"
WALK: Final = "walk"
_DIMENSIONS: Final[Mapping[Unit, Dimension]] = {"rate": RATE, "time": TIME, "": PLAIN}


@dataclass(frozen=True)
class Draw:
    """The distribution of a value."""

    sample: Callable[[np.random.Generator, int | None], Any]
    """Function that draws one value, or an array of this length, in base units."""
    bounds: tuple[float, float]
    unit: Unit
    period_ns: int | None
    """Time between draws; None: one draw for the whole run."""

    def value(self, rng: np.random.Generator, duration_ns: int) -> Any:
        """Draw a :class:`Quantity`, or a list of steps for a run of this length."""
        if self.period_ns is None:
            return Quantity(float(self.sample(rng, None)), self.unit)
        starts = range(0, duration_ns, self.period_ns)
        return self._steps([float(one) for one in self.sample(rng, len(starts))])

    def bound(self, which: int) -> Any:
        """Return the minimum (0) or maximum (1), in the form of :meth:`value`."""
        quantity = Quantity(self.bounds[which], self.unit)
        return quantity if self.period_ns is None else self._steps([self.bounds[which]])

    def _steps(self, values: list[float]) -> list[list[Any]]:
        period = self.period_ns or 0
        return [[Nanoseconds(at * period), Quantity(one, self.unit).plain()] for at, one in enumerate(values)]


def read_draw(value: object) -> Draw:
    """Read a distribution; see the module's text.

    Raises:
        ConfigError: The value is no distribution, has an unknown key, or bounds in the wrong order.
    """
    known = (*DISTRIBUTIONS, GRID, WALK)
    if not isinstance(value, Mapping) or not any(name in value for name in known):
        keys = [str(key) for key in value] if isinstance(value, Mapping) else []
        near = next((hint for key in keys if (hint := did_you_mean(key, known))), "")
        expected = f"one of {', '.join(known)}, like {{uniform: [10ms, 20ms]}}"
        raise ConfigError("key-missing", shown(value), expected=expected, hint=near)
    rest = {key: part for key, part in value.items() if key != "every"}
    period = parse_positive_time(value["every"]) if "every" in value else None
    if GRID in rest:
        return _grid(rest, period)
    if WALK in rest:
        return _walk(rest, period)
    ends = next(rest[name] for name in DISTRIBUTIONS if name in rest)
    unit = Quantity.read(ends[0] if isinstance(ends, (list, tuple)) and ends else ends).unit
    if unit not in _DIMENSIONS:
        raise ConfigError("unit-mismatch", shown(ends), expected="rates, times or plain numbers")
    number = read_random_variable(rest, _DIMENSIONS[unit])
    sampler = number.sampler()

    def sample(rng: np.random.Generator, count: int | None) -> Any:
        return sampler(rng) if count is None else [sampler(rng) for _ in range(count)]

    return Draw(sample, number.bounds(), unit, period)


def _grid(value: Mapping[str, Any], period: int | None) -> Draw:
    if unknown := [key for key in value if key not in (GRID, "step")]:
        raise ConfigError("unknown-key", f"unknown key {shown(unknown[0])}", expected="grid, step, every")
    ends = value[GRID]
    if not isinstance(ends, (list, tuple)) or len(ends) != 2 or "step" not in value:
        raise ConfigError("key-missing", shown(dict(value)), expected="{grid: [low, high], step: step}")
    low, high, step = (Quantity.read(one) for one in (*ends, value["step"]))
    if not low.unit == high.unit == step.unit or not 0 < step.value <= high.value - low.value:
        raise ConfigError(
            "order-wrong", shown(dict(value)), expected="the smaller bound first, a step up to their distance, one unit"
        )
    first, last = round(low.value / step.value), round(high.value / step.value)

    def sample(rng: np.random.Generator, count: int | None) -> Any:
        return rng.integers(first, last, size=count, endpoint=True) * step.value

    return Draw(sample, (first * step.value, last * step.value), low.unit, period)


def _walk(value: Mapping[str, Any], period: int | None) -> Draw:
    if unknown := [key for key in value if key not in (WALK, "start", "noise", "correlation")]:
        raise ConfigError(
            "unknown-key", f"unknown key {shown(unknown[0])}", expected="walk, start, noise, correlation, every"
        )
    ends = value[WALK]
    if not isinstance(ends, (list, tuple)) or len(ends) != 2 or "noise" not in value or period is None:
        raise ConfigError(
            "key-missing", shown(dict(value)), expected="{walk: [low, high], noise: deviation of a step, every: time}"
        )
    low, high, noise = (Quantity.read(one) for one in (*ends, value["noise"]))
    start = Quantity.read(value["start"]) if "start" in value else Quantity((low.value + high.value) / 2, low.unit)
    correlation = Quantity.read(value.get("correlation", 0)).value
    if not low.unit == high.unit == noise.unit == start.unit or not low.value <= start.value <= high.value:
        raise ConfigError(
            "order-wrong", shown(dict(value)), expected="the smaller bound first, start between them, all in one unit"
        )
    if not 0 <= correlation <= 1 or noise.value < 0 or low.unit not in _DIMENSIONS:
        raise ConfigError(
            "out-of-range", shown(dict(value)), expected="a correlation from 0 to 1, and noise of 0 or more"
        )

    def sample(rng: np.random.Generator, count: int | None) -> Any:
        at, change, walked = start.value, 0.0, []
        for step in rng.normal(0.0, noise.value, size=count):
            walked.append(at)
            change = correlation * change + float(step)
            at = min(max(at + change, low.value), high.value)
        return walked

    return Draw(sample, (low.value, high.value), low.unit, period)
