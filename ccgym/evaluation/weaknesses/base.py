"""What a weakness test is: scenarios as data, measures of a run, and criteria that decide.

A test makes *scenarios* from *conditions* (points of its sweep: rate, delay, buffer) and a repetition's random stream.
Every scheme meets the same scenarios. A run leaves one number per *measure*; a *criterion* is the mean of a measure
over a group of conditions, and the interval that it has to lie in. A scheme passes a test if it meets all of its
criteria.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from ccgym.config.path import NetworkPath
from ccgym.evaluation.weaknesses.sample import Sample
from ccgym.evaluation.weaknesses.training_range import TrainingRange

RUNS: Final = 5
"""Repetitions of every condition, unless asked otherwise."""
QUICK_RUNS: Final = 1
"""Repetitions of a quick look."""

Series: TypeAlias = Mapping[str, Sequence[float]]
"""What a figure shows of a run over time: ``t_s`` and further columns of its length."""


@dataclass(frozen=True)
class PlannedFlow:
    """A flow of a scenario. Times in nanoseconds."""

    scheme: str | None = None
    """A scheme of the registry; None: the one that is tested."""
    start_ns: int = 0
    """When it starts."""
    stop_ns: int | None = None
    """When it stops; None: at the end."""


@dataclass(frozen=True)
class Scenario:
    """One run, but for the scheme."""

    path: NetworkPath
    """The path: a dumbbell with a plain FIFO bottleneck."""
    flows: tuple[PlannedFlow, ...]
    """The flows."""
    duration_ns: int
    """Length of the run."""
    rates_mbps: tuple[float, float]
    """Lowest and highest rate of the bottleneck; where it is drawn, of all that could be."""
    one_way_ms: tuple[float, float]
    """Smallest and largest one-way propagation delay, likewise."""
    times_s: Mapping[str, float] = field(default_factory=dict)
    """Instants that the measures refer to, seconds."""

    @property
    def duration_s(self) -> float:
        """Length of the run, seconds."""
        return self.duration_ns / 1e9


@dataclass(frozen=True)
class Condition:
    """A point of a test's sweep."""

    key: str
    """Its name in files, unique within the test: ``owd=10ms,buffer=0.2bdp``."""
    at: Mapping[str, float | str]
    """Its coordinates, for tables and figures; numbers carry their unit in the name: ``one_way_ms``."""
    make: Callable[[np.random.Generator], Scenario] = field(repr=False, compare=False)
    """The scenario of a repetition; the generator is the repetition's, the same for every scheme."""
    repeat: int = 1
    """Runs per repetition asked for: tests over random paths take more seeds."""


@dataclass(frozen=True)
class Measure:
    """A number of a run."""

    key: str
    """Its name in files."""
    label: str
    """Its name for people."""
    unit: str = ""
    """Its unit as shown; ``%`` shows a fraction times hundred."""

    def show(self, value: float | None) -> str:
        """The value as text."""
        if value is None:
            return "–"
        if self.unit == "%":
            text = f"{100 * value:.{2 if abs(value) < 0.0995 else 1}f}"
            return f"{text.removesuffix('.0').removesuffix('.00')} %"
        return f"{value:.2f}{f' {self.unit}' if self.unit else ''}"


@dataclass(frozen=True)
class Criterion:
    """A mean over a group of conditions, and where it has to lie."""

    measure: str
    """Key of the measure."""
    group: str
    """The group in words; empty: all conditions."""
    value: float | None
    """The mean over the group's conditions, each the mean of its runs; None where runs are missing."""
    low: float | None = None
    """Least value that passes."""
    high: float | None = None
    """Greatest value that passes."""
    strict: bool = False
    """Whether the bounds themselves fail."""
    at: Mapping[str, float | str] = field(default_factory=dict)
    """Coordinates that the group's conditions share, where it is one."""

    @property
    def passed(self) -> bool | None:
        """Whether it is met; None where runs are missing."""
        if self.value is None:
            return None
        if not np.isfinite(self.value):
            return False
        if self.strict and self.value in (self.low, self.high):
            return False
        return (self.low is None or self.value >= self.low) and (self.high is None or self.value <= self.high)

    @property
    def margin(self) -> float:
        """How far inside (positive) or outside (negative), as a share of the bound; the smallest decides."""
        if self.value is None or not np.isfinite(self.value):
            return -np.inf
        margins = []
        if self.low is not None:
            margins.append((self.value - self.low) / (abs(self.low) or 1.0))
        if self.high is not None:
            margins.append((self.high - self.value) / (abs(self.high) or 1.0))
        return min(margins, default=np.inf)


@dataclass(frozen=True)
class Evidence:
    """What is there to judge a scheme by."""

    means: Mapping[tuple[str, str], float | None]
    """Mean over the runs, by condition's key and measure's key; None where a run is missing."""
    conditions: Sequence[Condition]
    """The conditions."""
    inside: Mapping[str, bool | None]
    """By condition's key: whether it lies within the range that the scheme was trained on; None: it was not trained,
    or nobody knows."""

    def mean(self, measure: str, chosen: Callable[[Condition], bool] = lambda _: True) -> float | None:
        """The mean over conditions; None where there is none, or runs are missing."""
        values = [self.means.get((one.key, measure)) for one in self.conditions if chosen(one)]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if values and len(known) == len(values) else None


class Weakness(ABC):
    """A test. Subclasses say what is run, what is measured, and what passes."""

    name: ClassVar[str]
    """Name in files: ``intra_rtt_fairness``."""
    title: ClassVar[str]
    """Name for people: what is tested, in a few words."""
    question: ClassVar[str]
    """What is asked, in a sentence."""
    setting: ClassVar[str]
    """Paths and flows, in a sentence."""
    pass_mark: ClassVar[str]
    """What passes, in a sentence."""
    brief: ClassVar[str]
    """The same in a few words."""
    source: ClassVar[str]
    """Who asked first."""
    measures: ClassVar[tuple[Measure, ...]]
    """The measures, the deciding one first."""
    baseline: ClassVar[str | None] = None
    """A scheme that the mark refers to; it is run, too."""
    figures: ClassVar[tuple[str | Mapping[str, Any], ...]] = ("sweep",)
    """Figures of the test, by name or as ``{name: options}`` (:mod:`ccgym.report.figures`)."""
    version: ClassVar[int] = 1
    """Rises when scenarios or measures mean something else: kept runs are then run again."""
    series_step_ms: ClassVar[int] = 100
    """Spacing of the samples that the measures are computed from, ms."""

    @abstractmethod
    def conditions(self, *, quick: bool) -> list[Condition]:
        """The points of the sweep; fewer of them for a quick look."""

    @abstractmethod
    def measure(self, sample: Sample, scenario: Scenario) -> dict[str, float]:
        """The measures of a run."""

    @abstractmethod
    def criteria(self, evidence: Evidence, baseline: Evidence | None) -> list[Criterion]:
        """What has to hold, with the values found.

        Args:
            evidence: The scheme's.
            baseline: That of :attr:`baseline`, where the test has one.
        """

    def series(self, sample: Sample, scenario: Scenario) -> Series | None:
        """What the figure shows of a run over time; None for tests without such a figure."""
        return None

    def by_key(self, key: str) -> Measure:
        """One of the measures."""
        return next(measure for measure in self.measures if measure.key == key)

    def quantity(self, criteria: Sequence[Criterion]) -> str:
        """What the numbers of :meth:`headline` are, in their order: ``utilization, queueing delay``."""
        deciding = {one.measure for one in criteria}
        return ", ".join(measure.label for measure in self.measures if measure.key in deciding)

    def headline(self, criteria: Sequence[Criterion]) -> str:
        """The number of the overview: of each measure the criterion that comes off worst."""
        parts = []
        for measure in self.measures:
            own = [one for one in criteria if one.measure == measure.key]
            if own:
                parts.append(measure.show(min(own, key=lambda one: one.margin).value))
        return ", ".join(parts)


def located(**at: float | str) -> Callable[[Condition], bool]:
    """Picks the conditions with these coordinates."""
    return lambda condition: at.items() <= condition.at.items()


def inside_range(condition: Condition, trained_on: TrainingRange | None) -> bool | None:
    """Whether all of a condition lies within the range of training; None where there is none."""
    if trained_on is None:
        return None
    scenario = condition.make(np.random.Generator(np.random.PCG64(0)))
    corners = zip(scenario.rates_mbps, scenario.one_way_ms, strict=True)
    return all(trained_on.contains(rate, delay) for rate, delay in corners)
