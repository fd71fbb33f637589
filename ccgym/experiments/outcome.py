"""What a scheme reached in an experiment: its runs, their means per condition, criteria, verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ccgym.evaluation.spread import Spread
from ccgym.experiments.criteria import Criterion, Evidence
from ccgym.experiments.criterion_spec import CriterionSpec, Reference, reference
from ccgym.experiments.expand import Condition, Value, conditions
from ccgym.experiments.metrics.base import Metric
from ccgym.experiments.spec import ExperimentSpec

Series: TypeAlias = Mapping[str, Sequence[float]]
"""A run over time: ``t_s``, and ``rate_mbps`` and ``capacity_mbps`` of its length."""


Verdict: TypeAlias = Literal["pass", "fail", "undecided", "incomplete", "none"]
"""The outcome of a scheme in an experiment. ``undecided``: none is surely missed, and one may be; ``incomplete``: runs
are missing because they ended in errors; ``none``: there are no criteria for it."""


RATIOS: Final = frozenset({"", "%"})
"""Units of metrics that can be averaged over links of different rates and delays."""


WORST_FIRST: Final[tuple[Verdict, ...]] = ("fail", "incomplete", "undecided", "pass")
"""The verdicts of criteria, the one that decides first."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts; ``none`` where there is none."""
    found = set(verdicts)
    return next((verdict for verdict in WORST_FIRST if verdict in found), "none")


@dataclass(frozen=True)
class RunResult:
    """What a run left."""

    condition: str
    """Key of its condition."""
    run: int
    """Its number, from 1."""
    seed: int
    values: Mapping[str, float | None]
    """By metric; None where a run has no such number."""
    trajectory: str
    series: Series | None = None
    """What figures show of it over time; of first runs only."""
    backlog: bool = False
    """Whether nothing was dropped or missed: what counts as lost was on its way when the run ended."""
    kept: str = ""
    """The file with its flows over time and all tables (:mod:`ccgym.experiments.detail`), relative to the results
    directory; of first runs only."""


@dataclass(frozen=True)
class Test:
    """An experiment with its conditions, and what tables and figures say of it."""

    __test__ = False  # for pytest

    spec: ExperimentSpec

    @property
    def name(self) -> str:
        """Name in files."""
        return self.spec.name

    @property
    def title(self) -> str:
        """Label."""
        return self.spec.title

    @property
    def brief(self) -> str:
        """What passes, in a few words; empty without criteria."""
        return self.spec.brief or ", ".join(
            f"{self.by_key(key).label} {self._bound(one, key)}" for one in self.spec.criteria for key in one.metrics
        )

    def _bound(self, one: CriterionSpec, key: str) -> str:
        bounds = (("≥", one.min), ("≤", one.max), ("<", one.below))
        shown = (
            (sign, found.text if isinstance(found := reference(bound), Reference) else self.by_key(key).show(found))
            for sign, bound in bounds
            if bound is not None
        )
        return " and ".join(f"{sign} {text}" for sign, text in shown)

    @cached_property
    def conditions(self) -> list[Condition]:
        """Its conditions."""
        return conditions(self.spec)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """Its metrics, the most important first; options that depend on the condition are those of the first one."""
        return self.conditions[0].bounds()[0].metrics

    @cached_property
    def _links(self) -> dict[str, tuple[tuple[float, ...], ...]]:
        """By key of a condition: rates and delays of its links."""
        return {one.key: tuple(map(tuple, one.bounds()[0].rates_and_delays)) for one in self.conditions}

    @property
    def links_differ(self) -> bool:
        """Whether conditions differ in rates or delays of their links: rates and delays then have no common mean."""
        return len(set(self._links.values())) > 1

    def has_mean(self, metric: Metric, keys: Iterable[str]) -> bool:
        """Whether a metric has a mean over conditions: a ratio always, anything else over those of one link."""
        return metric.unit in RATIOS or len({self._links[key] for key in keys}) <= 1

    def ranks(self, metric: Metric) -> bool:
        """Whether what stands for all conditions together is the mean rank of a scheme in this metric."""
        return not self.has_mean(metric, self._links)

    @property
    def figures(self) -> list[Any]:
        """Its figures, with coordinates in place of the parameters that their options name."""
        names = {name: at for one in self.conditions for name, at in zip(one.written, one.at, strict=False)}
        return [_translated(one, names) for one in self.spec.figures]

    def by_key(self, key: str) -> Metric:
        """One of the metrics."""
        return next(metric for metric in self.metrics if metric.key == key)


def _translated(options: Any, names: Mapping[str, str]) -> Any:
    if isinstance(options, Mapping):
        return {names.get(key, key): _translated(value, names) for key, value in options.items()}
    if isinstance(options, (list, tuple)):
        return [_translated(one, names) for one in options]
    return names.get(options, options) if isinstance(options, str) else options


@dataclass(frozen=True)
class ConditionResult:
    """A condition, measured."""

    key: str
    at: Mapping[str, Value]
    inside: bool | None
    """Whether it lies within the range that the scheme was trained on; None: not trained, or unknown."""
    metrics: Mapping[str, Spread]
    """By metric; without those that no run has a number of."""
    identical: bool = False
    """Whether there are several simulated runs, and all were the same packets: nothing was random."""

    @property
    def told(self) -> Mapping[str, Spread]:
        """The metrics. Identical runs count as one run, since equal numbers do not show how much runs scatter."""
        return {key: replace(one, std=None, count=1) if self.identical else one for key, one in self.metrics.items()}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a scheme in an experiment."""

    test: Test
    scheme: str
    criteria: tuple[Criterion, ...]
    conditions: tuple[ConditionResult, ...]
    runs: tuple[RunResult, ...] = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        """``pass`` if every criterion is met, ``fail`` if one is not."""
        return worst(criterion.verdict for criterion in self.criteria)

    @property
    def headline(self) -> str:
        """The numbers of the overview, one per deciding metric: of several criteria the one with the smallest margin;
        with both a minimum and a maximum, the range of values. Without criteria: the mean of each ratio over the
        conditions, and the range of every other metric: rates and delays of different links have no common mean."""
        return ", ".join(self._headline(metric) for metric in self.deciding)

    @property
    def quantity(self) -> str:
        """What these numbers are."""
        return ", ".join(metric.label for metric in self.deciding)

    @property
    def deciding(self) -> list[Metric]:
        """The metrics of criteria; all of them without criteria."""
        keys = {key for one in self.test.spec.criteria for key in one.metrics} or {m.key for m in self.test.metrics}
        return [metric for metric in self.test.metrics if metric.key in keys]

    def _headline(self, metric: Metric) -> str:
        own = [one for one in self.criteria if one.metric == metric.key]
        if not own:
            means = [one.metrics[metric.key].mean for one in self.conditions if metric.key in one.metrics]
            shown = list(dict.fromkeys(metric.show(one) for one in sorted(means)))
            if len(shown) > 1 and metric.unit not in RATIOS:
                return f"{shown[0]} to {shown[-1]}"
            return metric.show(float(np.mean(means)) if means else None)
        if all(one.min is not None and one.max is not None for one in own):
            found = [one.value for one in own if one.value is not None]
            return f"{metric.show(min(found))} to {metric.show(max(found))}" if found else metric.show(None)
        return metric.show(self.value(metric.key))

    def value(self, metric: str) -> float | None:
        """The value of a metric's criterion with the smallest margin."""
        own = [one for one in self.criteria if one.metric == metric]
        return min(own, key=lambda one: one.margin).value if own else None

    def series(self) -> dict[str, Series]:
        """What is there over time, by condition."""
        return {run.condition: run.series for run in self.runs if run.series is not None}

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "test": self.test.name,
            "scheme": self.scheme,
            "verdict": self.verdict,
            "headline": self.headline,
            "criteria": [{**asdict(one), "passed": one.passed, "verdict": one.verdict} for one in self.criteria],
            "conditions": [asdict(one) for one in self.conditions],
            "runs": [
                {"condition": run.condition, "run": run.run, "seed": run.seed, "values": dict(run.values),
                 "trajectory": run.trajectory, **({"kept": run.kept} if run.kept else {})}
                for run in self.runs
            ],
        }  # fmt: skip


def evidence_of(
    test: Test, expected: Mapping[str, int], runs: Sequence[RunResult], inside: Mapping[str, bool | None]
) -> Evidence:
    """The means that criteria are made of.

    Args:
        test: The experiment.
        expected: How many runs each condition should have; the mean of one that lacks a run is None.
        runs: Those that there are.
        inside: By condition: whether it lies within the training range.
    """
    means: dict[tuple[str, str], float | None] = {}
    by_number: dict[tuple[str, str], dict[int, float]] = {}
    for condition in test.conditions:
        own = {run.run: run.values for run in runs if run.condition == condition.key}
        for metric in test.metrics:
            complete = own and len(own) == expected[condition.key]
            # A run without a number, as a delay where nothing arrived, meets no criterion.
            values = {number: float("nan") if (v := one[metric.key]) is None else v for number, one in own.items()}
            means[condition.key, metric.key] = float(np.mean(list(values.values()))) if complete else None
            by_number[condition.key, metric.key] = values
    return Evidence(means, test.conditions, {one.key: inside.get(one.key) for one in test.conditions}, by_number)


def spreads(test: Test, condition: str, runs: Iterable[RunResult]) -> dict[str, Spread]:
    """The metrics of a condition over its runs."""
    own = [run.values for run in runs if run.condition == condition]
    found = {one.key: Spread.of(values[one.key] for values in own) for one in test.metrics}
    return {key: spread for key, spread in found.items() if spread is not None}
