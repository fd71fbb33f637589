"""What came out of the tests: runs, their means per condition, criteria, verdicts; as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ccgym.evaluation.weaknesses.base import Condition, Criterion, Evidence, Series, Weakness
from ccgym.evaluation.weaknesses.runs import RunResult
from ccgym.schemes.style import SchemeStyle

FORMAT: Final = "ccgym-weaknesses"
FORMAT_VERSION: Final = 1

Verdict: TypeAlias = Literal["pass", "fail", "incomplete"]
"""How a test ended. ``incomplete``: runs are missing because they ended in errors."""


@dataclass(frozen=True)
class Spread:
    """A measure over the repetitions of a condition."""

    mean: float
    """Mean."""
    std: float
    """Standard deviation of the sample; 0 for one run."""
    low: float
    """Least."""
    high: float
    """Greatest."""
    count: int
    """Runs."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        array = np.asarray(values, dtype=np.float64)
        std = float(array.std(ddof=1)) if array.size > 1 else 0.0
        return cls(float(array.mean()), std, float(array.min()), float(array.max()), int(array.size))


@dataclass(frozen=True)
class ConditionResult:
    """A condition, measured."""

    key: str
    """Its key."""
    at: Mapping[str, float | str]
    """Its coordinates."""
    inside: bool | None
    """Whether it lies within the range that the scheme was trained on; None: not trained, or unknown."""
    measures: Mapping[str, Spread]
    """By measure; empty where every run failed."""


@dataclass(frozen=True)
class Outcome:
    """How a scheme came off in a test."""

    test: Weakness
    """The test."""
    scheme: str
    """Key of the scheme."""
    criteria: tuple[Criterion, ...]
    """What had to hold."""
    conditions: tuple[ConditionResult, ...]
    """Every condition."""
    runs: tuple[RunResult, ...] = field(repr=False)
    """Every run."""

    @property
    def verdict(self) -> Verdict:
        """``pass`` if every criterion is met, ``fail`` if one is not."""
        found = [criterion.passed for criterion in self.criteria]
        if any(one is False for one in found):
            return "fail"
        return "incomplete" if None in found or not found else "pass"

    @property
    def headline(self) -> str:
        """The number of the overview."""
        return self.test.headline(self.criteria)

    @property
    def quantity(self) -> str:
        """What the numbers of the overview are."""
        return self.test.quantity(self.criteria)

    def value(self, measure: str) -> float | None:
        """The criterion of a measure that came off worst: its value."""
        own = [one for one in self.criteria if one.measure == measure]
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
            "criteria": [{**asdict(one), "passed": one.passed} for one in self.criteria],
            "conditions": [asdict(one) for one in self.conditions],
            "runs": [
                {"condition": run.condition, "run": run.run, "seed": run.seed, "values": dict(run.values),
                 "trajectory": run.trajectory}
                for run in self.runs
            ],
        }  # fmt: skip


def judge(
    test: Weakness,
    scheme: str,
    conditions: Sequence[Condition],
    expected: Mapping[str, int],
    runs: Sequence[RunResult],
    inside: Mapping[str, bool | None],
    baseline: Evidence | None,
) -> Outcome:
    """Make the outcome of the runs.

    Args:
        test: The test.
        scheme: Key of the scheme.
        conditions: All conditions.
        expected: How many runs each of them should have.
        runs: Those that there are.
        inside: By condition: within the range of training?
        baseline: What the test compares with.
    """
    evidence = evidence_of(test, conditions, expected, runs, inside)
    return Outcome(
        test=test,
        scheme=scheme,
        criteria=tuple(test.criteria(evidence, baseline)),
        conditions=tuple(
            ConditionResult(one.key, one.at, inside.get(one.key), _spreads(test, one.key, runs)) for one in conditions
        ),
        runs=tuple(runs),
    )


def evidence_of(
    test: Weakness,
    conditions: Sequence[Condition],
    expected: Mapping[str, int],
    runs: Sequence[RunResult],
    inside: Mapping[str, bool | None],
) -> Evidence:
    """The means that criteria are made of; None for conditions that lack a run."""
    means: dict[tuple[str, str], float | None] = {}
    for condition in conditions:
        spreads = _spreads(test, condition.key, runs)
        for measure in test.measures:
            spread = spreads.get(measure.key)
            complete = spread is not None and spread.count == expected[condition.key]
            means[condition.key, measure.key] = spread.mean if spread is not None and complete else None
    return Evidence(means, conditions, {one.key: inside.get(one.key) for one in conditions})


def _spreads(test: Weakness, condition: str, runs: Iterable[RunResult]) -> dict[str, Spread]:
    own = [run.values for run in runs if run.condition == condition]
    return {one.key: Spread.of([values[one.key] for values in own]) for one in test.measures} if own else {}


@dataclass(frozen=True)
class WeaknessResults:
    """All tests of all schemes."""

    parameters: Mapping[str, Any]
    """What was asked for: seed, repetitions, whether it was a quick look."""
    provenance: Mapping[str, Any]
    """Versions, machine, command line, time."""
    styles: tuple[SchemeStyle, ...]
    """The schemes, in order, and how they are drawn."""
    trained_on: Mapping[str, str]
    """By scheme: the range of its training in words; only of learned ones whose card tells."""
    tests: tuple[Weakness, ...]
    """The tests, in order."""
    outcomes: Mapping[tuple[str, str], Outcome]
    """By name of the test and key of the scheme."""
    failures: tuple[str, ...]
    """Runs that ended in an error."""

    def outcome(self, test: Weakness, scheme: str) -> Outcome:
        """How a scheme came off in a test."""
        return self.outcomes[test.name, scheme]

    def of_test(self, test: Weakness) -> list[tuple[SchemeStyle, Outcome]]:
        """How all schemes came off in a test."""
        return [(style, self.outcomes[test.name, style.key]) for style in self.styles]

    def passed(self, scheme: str) -> int:
        """How many tests a scheme passed."""
        return sum(self.outcomes[test.name, scheme].verdict == "pass" for test in self.tests)

    @property
    def extent(self) -> str:
        """How much was run, in words."""
        runs = self.parameters["runs"]
        total = sum(len(outcome.runs) for outcome in self.outcomes.values())
        quick = "; a quick look: fewer conditions" if self.parameters["quick"] else ""
        return f"{runs} repetition{'s' if runs != 1 else ''} of every condition, {total} runs{quick}"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; numbers that are not finite do not occur."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "parameters": dict(self.parameters),
            "provenance": dict(self.provenance),
            "schemes": [{**asdict(style), "trained_on": self.trained_on.get(style.key)} for style in self.styles],
            "tests": [_test_dict(test) for test in self.tests],
            "outcomes": [self.outcomes[test.name, style.key].as_dict() for test in self.tests for style in self.styles],
            "failures": list(self.failures),
        }

    def to_csv(self) -> str:
        """One line per test, scheme, condition and measure, with its spread over the runs."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        heads = ["test", "scheme", "condition", "inside_training_range", "measure", "unit"]
        writer.writerow([*heads, "mean", "std", "min", "max", "runs", "verdict_of_test"])
        for test in self.tests:
            for style, outcome in self.of_test(test):
                for row in outcome.conditions:
                    for measure in test.measures:
                        if (spread := row.measures.get(measure.key)) is None:
                            continue
                        inside = {None: "", True: "yes", False: "no"}[row.inside]
                        # Fractions stay fractions in files.
                        unit = "fraction" if measure.unit == "%" else measure.unit
                        numbers = [f"{value:.6g}" for value in (spread.mean, spread.std, spread.low, spread.high)]
                        place = [test.name, style.key, row.key, inside, measure.key, unit]
                        writer.writerow([*place, *numbers, spread.count, outcome.verdict])
        return text.getvalue()


def _test_dict(test: Weakness) -> dict[str, Any]:
    words = ("name", "title", "question", "setting", "pass_mark", "brief", "source", "baseline", "version")
    return {**{word: getattr(test, word) for word in words}, "measures": [asdict(one) for one in test.measures]}
