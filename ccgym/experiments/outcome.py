"""Outcome of a scheme in an experiment: its runs, their means per condition, criteria, verdict."""

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
"""A run over time: ``t_s``, and ``rate_mbps`` and ``capacity_mbps`` of the same length."""


Verdict: TypeAlias = Literal["pass", "fail", "undecided", "incomplete", "none"]
"""The outcome of a scheme in an experiment. ``undecided``: no criterion surely fails, but one may; ``incomplete``: runs
are missing because they ended in errors; ``none``: there are no criteria for the scheme."""


RATIOS: Final = frozenset({"", "%"})
"""Units of metrics that can be averaged over links of different rates and delays."""


WORST_FIRST: Final[tuple[Verdict, ...]] = ("fail", "incomplete", "undecided", "pass")
"""The verdicts of criteria; the first one that occurs decides."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts; ``none`` if there are no verdicts."""
    found = set(verdicts)
    return next((verdict for verdict in WORST_FIRST if verdict in found), "none")


@dataclass(frozen=True)
class RunResult:
    """The results of a run."""

    condition: str
    """Key of its condition."""
    run: int
    """Number of the run, from 1."""
    seed: int
    values: Mapping[str, float | None]
    """Values by metric; None if the run has no such number."""
    trajectory: str
    series: Series | None = None
    """Data over time for figures; only for first runs."""
    backlog: bool = False
    """Whether no packet was dropped or missing: all packets that count as lost were on their way at the end."""
    kept: str = ""
    """The file with its flows over time and all tables (:mod:`ccgym.experiments.detail`), relative to the results
    directory; only for first runs."""


@dataclass(frozen=True)
class Test:
    """An experiment with its conditions, and its texts in tables and figures."""

    __test__ = False  # for pytest

    spec: ExperimentSpec

    @property
    def name(self) -> str:
        """Name in files."""
        return self.spec.name

    @property
    def title(self) -> str:
        """Label of the experiment."""
        return self.spec.title

    @property
    def brief(self) -> str:
        """The thresholds in a few words; empty without criteria."""
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
        """Conditions of the experiment."""
        return conditions(self.spec)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics, the most important first; options that depend on the condition have the first condition's values."""
        return self.conditions[0].bounds()[0].metrics

    @cached_property
    def _links(self) -> dict[str, tuple[tuple[float, ...], ...]]:
        """Rates and delays of the links, by key of the condition."""
        return {one.key: tuple(map(tuple, one.bounds()[0].rates_and_delays)) for one in self.conditions}

    @property
    def links_differ(self) -> bool:
        """Whether conditions differ in rates or delays of their links: then rates and delays have no common mean."""
        return len(set(self._links.values())) > 1

    def has_mean(self, metric: Metric, keys: Iterable[str]) -> bool:
        """Return whether a metric has a mean over conditions: ratios always, other metrics only over equal links."""
        return metric.unit in RATIOS or len({self._links[key] for key in keys}) <= 1

    def ranks(self, metric: Metric) -> bool:
        """Return whether the number for all conditions together is a scheme's mean rank in this metric."""
        return not self.has_mean(metric, self._links)

    @property
    def figures(self) -> list[Any]:
        """Figures of the experiment; parameters in their options are replaced by coordinates."""
        names = {name: at for one in self.conditions for name, at in zip(one.written, one.at, strict=False)}
        return [_translated(one, names) for one in self.spec.figures]

    def by_key(self, key: str) -> Metric:
        """Return the metric with this key."""
        return next(metric for metric in self.metrics if metric.key == key)


def _translated(options: Any, names: Mapping[str, str]) -> Any:
    if isinstance(options, Mapping):
        return {names.get(key, key): _translated(value, names) for key, value in options.items()}
    if isinstance(options, (list, tuple)):
        return [_translated(one, names) for one in options]
    return names.get(options, options) if isinstance(options, str) else options


@dataclass(frozen=True)
class ConditionResult:
    """The results of a condition."""

    key: str
    at: Mapping[str, Value]
    inside: bool | None
    """Whether the condition is inside the scheme's training range; None: not trained, or unknown."""
    metrics: Mapping[str, Spread]
    """Values by metric; without metrics that have no number in any run."""
    identical: bool = False
    """Whether there are several simulated runs with identical packets: nothing was random."""

    @property
    def told(self) -> Mapping[str, Spread]:
        """The metrics. Identical runs count as one run, since equal numbers do not show the spread of runs."""
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
        """The verdict: ``pass`` if all criteria are met, ``fail`` if one is not."""
        return worst(criterion.verdict for criterion in self.criteria)

    @property
    def headline(self) -> str:
        """The numbers of the overview, one per deciding metric: the value with the smallest margin or, with both a
        minimum and a maximum, the range of values. Without criteria: the mean of each ratio over the conditions, and
        the range of every other metric, since rates and delays of different links have no common mean."""
        return ", ".join(self._headline(metric) for metric in self.deciding)

    @property
    def quantity(self) -> str:
        """Names of the numbers in :attr:`headline`."""
        return ", ".join(metric.label for metric in self.deciding)

    @property
    def deciding(self) -> list[Metric]:
        """The metrics of criteria; without criteria, all metrics."""
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
        """Return the value of a metric's criterion with the smallest margin."""
        own = [one for one in self.criteria if one.metric == metric]
        return min(own, key=lambda one: one.margin).value if own else None

    def series(self) -> dict[str, Series]:
        """Return the stored series by condition."""
        return {run.condition: run.series for run in self.runs if run.series is not None}

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
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
    """Return the means for the criteria.

    Args:
        test: The experiment.
        expected: Required number of runs of each condition; with fewer runs, the mean is None.
        runs: The runs that ended well.
        inside: By condition: whether it is inside the training range.
    """
    means: dict[tuple[str, str], float | None] = {}
    by_number: dict[tuple[str, str], dict[int, float]] = {}
    for condition in test.conditions:
        own = {run.run: run.values for run in runs if run.condition == condition.key}
        for metric in test.metrics:
            complete = own and len(own) == expected[condition.key]
            # A run without a number, such as a delay when nothing arrived, meets no criterion.
            values = {number: float("nan") if (v := one[metric.key]) is None else v for number, one in own.items()}
            means[condition.key, metric.key] = float(np.mean(list(values.values()))) if complete else None
            by_number[condition.key, metric.key] = values
    return Evidence(means, test.conditions, {one.key: inside.get(one.key) for one in test.conditions}, by_number)


def spreads(test: Test, condition: str, runs: Iterable[RunResult]) -> dict[str, Spread]:
    """Return the metrics of a condition over its runs."""
    own = [run.values for run in runs if run.condition == condition]
    found = {one.key: Spread.of(values[one.key] for values in own) for one in test.metrics}
    return {key: spread for key, spread in found.items() if spread is not None}
