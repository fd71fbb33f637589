"""Rates that change over time, drawn by path distributions; see :mod:`ccgym.config.bottleneck`."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Self, TypeAlias

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from ccgym.config.declared import Strict
from ccgym.config.quantities import PeriodField
from ccgym.config.random_variables import PLAIN, RandomNumber, RandomRate, RandomTime, RandomVariable
from ccgym.config.sampled_path import ParameterRow, parameter_row
from ccgym.errors import ConfigError
from ccgym.units import NS_PER_MS, NS_PER_S, format_time

MAX_RATE_STEPS: Final = 100_000
"""Max number of changes of the rate in one path."""

Steps: TypeAlias = "list[list[int]]"
"""A rate over time: pairs of nanoseconds and bit/s."""


class Changing(Strict):
    """A rate that changes at regular intervals; each value is drawn between the two bounds of the episode."""

    max: RandomRate
    """Upper bound of an episode."""
    min: RandomRate
    """Lower bound of an episode, truncated at the drawn upper bound."""
    every: RandomTime
    """Time between changes, rounded up to the grid; zero: the rate never changes."""
    grid: PeriodField = 100 * NS_PER_MS
    """Time unit of changes: they happen at whole multiples of it."""
    log: bool = False
    """Whether values are drawn uniformly by their logarithm, so that a rate often changes by a factor."""

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

    def draw(self, rng: np.random.Generator, duration_ns: int, numbers: dict[str, float]) -> Steps:
        """Draw the rate over time; add its time mean and the other drawn values to ``numbers``."""
        high = self.max.sampler()(rng)
        low = self._min(rng, high)
        step = math.ceil(self.every.sampler()(rng) / self.grid) * self.grid
        count = 1 if step == 0 else max(1, -(-duration_ns // step))
        if count > MAX_RATE_STEPS:
            raise ConfigError(
                "too-large",
                f"{count} changes of the rate in {format_time(duration_ns)}",
                expected=f"at most {MAX_RATE_STEPS}",
                where="rate",
            )
        parts = rng.random(count)
        drawn = low * (high / low) ** parts if self.log else low + (high - low) * parts
        values = np.rint(drawn).astype(np.int64)
        last = duration_ns - (count - 1) * step
        mean = float(values[0]) if count == 1 else float(values[:-1].sum() * step + values[-1] * last) / duration_ns
        numbers.update(
            rate_mbps=mean / 1e6,
            rate_min_mbps=low / 1e6,
            rate_max_mbps=high / 1e6,
            change_every_s=step / NS_PER_S,
        )
        return [[place * step, rate] for place, rate in enumerate(values.tolist())]

    def _min(self, rng: np.random.Generator, high: float) -> float:
        """Draw the lower bound from its distribution, truncated at the drawn upper bound, as in Genet."""
        number = self.min
        if number.distribution in ("uniform", "log_uniform") and number.values[1] > high:
            number = RandomVariable(number.dimension, number.distribution, (number.values[0], high))
        return min(number.sampler()(rng), high)

    def ranges(self) -> dict[str, RandomVariable]:
        """Return the random variables, by the names of :meth:`rows`."""
        return {"rate.max": self.max, "rate.min": self.min, "rate.every": self.every}

    def rows(self) -> list[ParameterRow]:
        """Return the random variables as text."""
        more = ("", ", up to rate.max", f", on a grid of {format_time(self.grid)}")
        return [parameter_row(name, one, text) for (name, one), text in zip(self.ranges().items(), more, strict=True)]


class Staircase(Strict):
    """A rate that repeatedly decreases and increases in equal steps, like the rate that remains next to cross traffic
    that varies without reacting to congestion."""

    top: RandomRate
    """The highest rate."""
    bottom: float = Field(default=0.01, gt=0, le=1)
    """The lowest rate, as a fraction of the highest."""
    period: PeriodField
    """Time of one decrease and one increase."""
    steps: int = Field(default=11, ge=2, le=1000)
    """Number of steps of the decrease, and of the increase. All steps have equal length."""
    begin: RandomNumber = RandomVariable(PLAIN, "uniform", (0.0, 1.0), written={"uniform": [0, 1]})
    """Position in the period at the start of an episode, as a fraction; 0: at the top, 0.5: at the bottom."""

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        if self.period < 2 * self.steps * NS_PER_MS:
            raise ConfigError(
                "out-of-range",
                f"{format_time(self.period)} for {2 * self.steps} steps",
                expected="at least one millisecond per step",
                where="period",
            )
        return self

    def draw(self, rng: np.random.Generator, duration_ns: int, numbers: dict[str, float]) -> Steps:
        """Draw the top and return the rate over time; add its time mean to ``numbers``."""
        top = self.top.sampler()(rng)
        length = self.period // (2 * self.steps)
        place = self.begin.sampler()(rng) % 1.0 * 2 * self.steps
        first, rest = int(place), round((1.0 - place % 1.0) * length)
        starts = [0, *range(rest, max(rest + 1, duration_ns), length)] if rest < duration_ns else [0]
        steps = [[start, self._rate(top, first + number)] for number, start in enumerate(starts)]
        ends = [*starts[1:], duration_ns]
        volume = sum(rate * (end - start) for (start, rate), end in zip(steps, ends, strict=True))
        numbers["rate_mbps"] = volume / duration_ns / 1e6
        return steps

    def _rate(self, top: float, step: int) -> int:
        """Return the rate of a step of the period: first ``steps`` decreasing values, then increasing values."""
        place = step % (2 * self.steps)
        depth = min(place, 2 * self.steps - 1 - place) / (self.steps - 1)
        return max(1, round(top * (1.0 - (1.0 - self.bottom) * depth)))

    def ranges(self) -> dict[str, RandomVariable]:
        """Return the random variables, by the names of :meth:`rows`."""
        return {"rate.top": self.top}

    def rows(self) -> list[ParameterRow]:
        """Return the random variables as text."""
        low = f"; in {self.steps} steps to {100 * self.bottom:g} % of it and up again in {format_time(self.period)}"
        return [parameter_row("rate.top", self.top, low)]


def _kind(value: Any) -> str:
    for tag, kind in (("changing", Changing), ("staircase", Staircase)):
        if isinstance(value, kind) or (isinstance(value, dict) and not kind.model_fields.keys().isdisjoint(value)):
            return tag
    return "number"


RateOverTime: TypeAlias = Annotated[
    Annotated[RandomRate, Tag("number")]
    | Annotated[Changing, Tag("changing")]
    | Annotated[Staircase, Tag("staircase")],
    Discriminator(_kind),
]
"""A constant rate, or a rate that changes."""
