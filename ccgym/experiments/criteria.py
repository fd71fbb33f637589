"""Criteria: the mean of a metric over a group of conditions, and its bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from ccgym.evaluation.bootstrap import Interval, resampled_means, stretched
from ccgym.experiments.criterion_spec import Bound, CriterionSpec, Reference, reference
from ccgym.experiments.expand import Condition, Value, coordinate

GROUP_NAMES: Final = {"owd": "one-way delay"}
"""Labels of parameters that differ from their names."""


@dataclass(frozen=True)
class Criterion:
    """A mean over a group of conditions, and its bounds."""

    metric: str
    """Key of the metric."""
    group: str
    """The group as text; empty: all conditions."""
    value: float | None
    """Mean over the group's conditions, each the mean of its runs; None if runs are missing."""
    min: float | None = None
    """Min value that passes."""
    max: float | None = None
    """Max value that passes."""
    strict: bool = False
    """Whether values equal to a bound fail."""
    at: Mapping[str, Value] = field(default_factory=dict)
    """Coordinates that the group's conditions share."""
    low: float | None = None
    """Lower end of the mean's 95 % interval; None if it was not requested, or if there are too few runs."""
    high: float | None = None
    """Upper end of this interval."""
    undecided: bool = False
    """Whether a bound is inside the interval. For a measured bound: whether the interval of the difference between runs
    with the same number contains zero."""

    @property
    def passed(self) -> bool | None:
        """Whether the criterion is met; None if runs are missing."""
        if self.value is None:
            return None
        if not np.isfinite(self.value):
            return False
        if self.strict and self.value in (self.min, self.max):
            return False
        return (self.min is None or self.value >= self.min) and (self.max is None or self.value <= self.max)

    @property
    def verdict(self) -> Literal["pass", "fail", "undecided", "incomplete"]:
        """The outcome in a word."""
        if self.passed is None:
            return "incomplete"
        return "undecided" if self.undecided else "pass" if self.passed else "fail"

    @property
    def margin(self) -> float:
        """Distance inside (positive) or outside (negative) of the bound, as a fraction of it; the smallest decides."""
        if self.value is None or not np.isfinite(self.value):
            return -np.inf
        margins = []
        if self.min is not None:
            margins.append((self.value - self.min) / (abs(self.min) or 1.0))
        if self.max is not None:
            margins.append((self.max - self.value) / (abs(self.max) or 1.0))
        return min(margins, default=np.inf)


@dataclass(frozen=True)
class Evidence:
    """The means of a scheme."""

    means: Mapping[tuple[str, str], float | None]
    """Mean over the runs, by key of the condition and of the metric; None if a run is missing."""
    conditions: Sequence[Condition]
    inside: Mapping[str, bool | None]
    """By key of the condition: whether it is inside the scheme's training range. None: the scheme was not trained, or
    its card has no training range."""
    runs: Mapping[tuple[str, str], Mapping[int, float]] = field(default_factory=dict)
    """The values behind the means, by number of the run."""

    def by_run(self, metric: str, chosen: Callable[[Condition], bool]) -> dict[int, float]:
        """Return the mean over conditions for each run number that all conditions have."""
        own = [self.runs.get((one.key, metric), {}) for one in self.conditions if chosen(one)]
        numbers = [number for number in own[0] if all(number in values for values in own)] if own else []
        return {number: float(np.mean([values[number] for values in own])) for number in numbers}

    def mean(self, metric: str, chosen: Callable[[Condition], bool] = lambda _: True) -> float | None:
        """Return the mean over conditions; None if there are no conditions, or if runs are missing."""
        values = [self.means.get((one.key, metric)) for one in self.conditions if chosen(one)]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if values and len(known) == len(values) else None


def judged(
    criteria: Sequence[CriterionSpec],
    evidence: Evidence,
    others: Mapping[str, Evidence],
    *,
    intervals: bool = False,
) -> list[Criterion]:
    """Return the criteria with the measured values.

    Args:
        criteria: The criteria of the experiment.
        evidence: The scheme's means.
        others: Means of the schemes that criteria compare with, by name.
        intervals: Whether a criterion is undecided if the interval of its mean contains a bound.
    """
    return [found for one in criteria for found in _judged(one, evidence, others, intervals)]


def _judged(
    one: CriterionSpec, evidence: Evidence, others: Mapping[str, Evidence], intervals: bool
) -> Iterator[Criterion]:
    for group in groups(one, evidence.conditions):

        def chosen(condition: Condition, group: Mapping[str, Any] = group) -> bool:
            return matches(one, group, condition) and _in_range(one, evidence.inside[condition.key])

        if not any(chosen(condition) for condition in evidence.conditions):
            continue
        for metric in one.metrics:
            low, high = (_number(bound, metric, group, evidence, others, chosen) for bound in (one.min, one.max))
            # Without a number of the baseline, no comparison is possible: the criterion is incomplete, not met.
            missing = (low is None) != (one.min is None) or (high is None) != (one.max is None)
            found = evidence.by_run(metric, chosen) if intervals and not missing else {}
            own = _interval(found.values())
            bounds = [
                _by_run(bound, metric, group, evidence, others, chosen) for bound in (one.min, one.max, one.below)
            ]
            yield Criterion(
                low=None if own is None else own.low,
                high=None if own is None else own.high,
                undecided=any(_open(found, bound) for bound in bounds if bound is not None),
                metric=metric,
                group=group_text(one, group, evidence),
                value=None if missing else evidence.mean(metric, chosen),
                min=None if missing else low,
                max=None if missing else high if one.below is None else one.below,
                strict=one.below is not None,
                at=_shared(one, group),
            )


def _shared(one: CriterionSpec, group: Mapping[str, Any]) -> dict[str, Value]:
    single = {name: value for name, value in one.where.items() if not isinstance(value, list)}
    return dict(coordinate(name, value) for name, value in {**single, **group}.items())


def _number(
    bound: Bound | None,
    metric: str,
    group: Mapping[str, Any],
    evidence: Evidence,
    others: Mapping[str, Evidence],
    chosen: Callable[[Condition], bool],
) -> float | None:
    """Return a bound as a number; None if there is no bound, or if its reference was not measured."""
    found = None if bound is None else reference(bound)
    if not isinstance(found, Reference):
        return found
    other, chosen = _referred(found, group, evidence, others, chosen)
    mean = None if other is None else other.mean(metric, chosen)
    return None if mean is None else found.times * mean + found.plus


def _referred(
    found: Reference,
    group: Mapping[str, Any],
    evidence: Evidence,
    others: Mapping[str, Evidence],
    chosen: Callable[[Condition], bool],
) -> tuple[Evidence | None, Callable[[Condition], bool]]:
    """Return the scheme and the conditions that a bound refers to."""
    if found.where:
        chosen = _where(found.where, {name: value for name, value in group.items() if name not in found.where})
    return (others.get(found.scheme) if found.scheme else evidence), chosen


def _by_run(
    bound: Bound | None,
    metric: str,
    group: Mapping[str, Any],
    evidence: Evidence,
    others: Mapping[str, Evidence],
    chosen: Callable[[Condition], bool],
) -> float | dict[int, float] | None:
    """Return a bound like :func:`_number`; a measured bound has a value for each run number."""
    found = None if bound is None else reference(bound)
    if not isinstance(found, Reference):
        return found
    other, chosen = _referred(found, group, evidence, others, chosen)
    measured = {} if other is None else other.by_run(metric, chosen)
    return {number: found.times * value + found.plus for number, value in measured.items()}


def _interval(values: Iterable[float]) -> Interval | None:
    """Return the interval of a mean; None if there are fewer than two values, or if a value is not a number."""
    known = list(values)
    if len(known) < 2 or not np.isfinite(known).all():
        return None
    return stretched(float(np.mean(known)), resampled_means(known, 1, "criterion"), len(known) - 1)


def _open(found: Mapping[int, float], bound: float | Mapping[int, float]) -> bool:
    """Return whether the runs do not decide on which side of a bound their mean is."""
    at = {number: bound for number in found} if isinstance(bound, float | int) else bound
    between = _interval(value - at[number] for number, value in found.items() if number in at)
    return between is not None and between.low < 0 < between.high


def _where(where: Mapping[str, Any], group: Mapping[str, Any]) -> Callable[[Condition], bool]:
    """Return whether a condition has these values, or one of a list, and is in this group."""
    wanted = {name: value if isinstance(value, list) else [value] for name, value in where.items()}
    return lambda condition: (
        all(condition.written.get(name) in values for name, values in wanted.items())
        and all(condition.written.get(name) == value for name, value in group.items())
    )


def groups(one: CriterionSpec, conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """Return the values of ``per`` that have conditions."""
    values = [
        list(dict.fromkeys(c.written[name] for c in conditions if name in c.written and matches(one, {}, c)))
        for name in one.split
    ]
    return [dict(zip(one.split, row, strict=True)) for row in itertools.product(*values)]


def matches(one: CriterionSpec, group: Mapping[str, Any], condition: Condition) -> bool:
    """Return whether a criterion and its group include a condition."""
    return _where(one.where, group)(condition)


def _in_range(one: CriterionSpec, inside: bool | None) -> bool:
    return one.training_range is None or (inside is not False) == (one.training_range == "inside")


def group_text(one: CriterionSpec, group: Mapping[str, Any], evidence: Evidence) -> str:
    """Return the group as text: ``buffer 0.2bdp, cubic first``."""
    words = [f"{GROUP_NAMES.get(name, name)} {value}" for name, value in group.items()]
    words += [
        f"{GROUP_NAMES.get(name, name)} {' or '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in one.where.items()
        if name not in group
    ]
    trained = any(inside is not None for inside in evidence.inside.values())
    if one.training_range is not None and trained:
        words.append(f"{one.training_range} the training range")
    return ", ".join(words)
