"""What came out of experiments: runs, their means per condition, criteria, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ccgym.config.display import html_table
from ccgym.evaluation.differences import Difference, differences
from ccgym.evaluation.results_file import as_document
from ccgym.evaluation.spread import Spread
from ccgym.experiments.detail import KeptRun
from ccgym.experiments.metrics.base import Better, Metric
from ccgym.experiments.outcome import (
    Outcome,
    Test,
    Verdict,
    worst,
)
from ccgym.experiments.spec import ExperimentSet, Row
from ccgym.schemes.style import SchemeStyle


@dataclass(frozen=True)
class Confirmed:
    """A metric of a run that was made once more with real packets."""

    test: str
    scheme: str
    condition: str
    metric: str
    simulated: Spread
    """Of all simulated runs of that condition."""
    real: float | None
    """None where the run has no such number."""
    agrees: bool
    """Whether the real number is within the span of the simulated ones, or no further from it than a tenth of their
    mean, or of a threshold, the larger one."""


@dataclass(frozen=True)
class ExperimentResults:
    """All experiments of a file, all schemes."""

    source: ExperimentSet
    parameters: Mapping[str, Any]
    """What was asked for: seed, repetitions, whether it was a quick look."""
    provenance: Mapping[str, Any]
    """Versions, machine, command line, time."""
    styles: tuple[SchemeStyle, ...]
    """The schemes, in order, and how they are drawn."""
    trained_on: Mapping[str, str]
    """By scheme: the range of its training in words; only of learned ones whose card says."""
    tests: tuple[Test, ...]
    outcomes: Mapping[tuple[str, str], Outcome]
    """By name of the experiment and key of the scheme."""
    failures: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Runs that are left or collapsed; of real packets: schemes that this machine lacks, runs whose schedule it could
    not hold."""
    left: int = 0
    """How many runs were left because time was up."""
    confirmed: tuple[Confirmed, ...] = ()
    """A sample with real packets, where one was asked for."""
    directory: Path | None = None
    """Where the runs are kept."""

    def __repr__(self) -> str:
        labels = ", ".join(style.label for style in self.styles)
        return f"ExperimentResults: {self.source.title}; {labels}; {self.extent}"

    def _repr_html_(self) -> str:
        def text(outcome: Outcome) -> str:
            return f"{outcome.headline} ({outcome.verdict})" if outcome.verdict != "none" else outcome.headline

        rows = [(test.title, *(text(outcome) for _, outcome in self.of_test(test))) for test in self.tests]
        return html_table(repr(self), ("experiment", *(style.label for style in self.styles)), rows)

    def kept(self, test: Test, scheme: str, condition: str) -> KeptRun | None:
        """The first run of a scheme in a condition, in detail; None where nothing is kept of it.

        Raises:
            ResultsError: Its file is damaged.
        """
        for run in self.outcomes[test.name, scheme].runs:
            if run.condition == condition and run.kept and self.directory is not None:
                return KeptRun.read(self.directory / run.kept)
        return None

    @property
    def name(self) -> str:
        """Name in files."""
        return self.source.name

    def outcome(self, test: Test, scheme: str) -> Outcome:
        """The outcome of a scheme in an experiment."""
        return self.outcomes[test.name, scheme]

    def of_test(self, test: Test) -> list[tuple[SchemeStyle, Outcome]]:
        """The outcomes of all schemes in an experiment."""
        return [(style, self.outcomes[test.name, style.key]) for style in self.styles]

    def differences(self, test: Test, condition: str = "") -> list[Difference]:
        """All pairs of schemes compared in each metric that has a better side. Runs of one number share seed and draws.

        Args:
            test: The experiment.
            condition: Key of a condition; empty: means over all conditions, of the repetitions that have every one.
                Where links differ, those of rates and delays are mean ranks, ``METRIC_rank``.
        """
        found = []
        for metric in test.metrics:
            if metric.better in ("higher", "lower"):
                values = self._by_run(test, metric, condition)
                seed = int(self.parameters["seed"])
                ranked = not condition and test.ranks(metric)
                name = f"{metric.key}_rank" if ranked else metric.key
                found += differences(name, "lower" if ranked else metric.better, values, paired=True, seed=seed)
        return found

    def overall(self, test: Test, metric: Metric) -> dict[str, Spread]:
        """By scheme: a metric over all conditions, and its spread over the repetitions; the mean rank from 1, the best,
        where :meth:`Test.ranks` says so. Empty where there is nothing to rank."""
        if test.ranks(metric) and (metric.better == "neither" or len(self.styles) == 1):
            return {}
        found = {key: Spread.of(own.values()) for key, own in self._by_run(test, metric, "").items()}
        return {key: spread for key, spread in found.items() if spread is not None}

    def _by_run(self, test: Test, metric: Metric, condition: str) -> dict[str, dict[int, float]]:
        """A metric by scheme and number of the repetition; with an empty condition, of all together."""
        wanted = {condition} if condition else {one.key for one in test.conditions}
        values: dict[tuple[int, str], dict[str, float]] = {}
        for style, outcome in self.of_test(test):
            for run in outcome.runs:
                value = run.values[metric.key]
                if run.condition in wanted and value is not None:
                    values.setdefault((run.run, run.condition), {})[style.key] = value
        if not condition and test.ranks(metric):
            values = {place: ranks(metric.better, own) for place, own in values.items()}
        found: dict[str, dict[int, list[float]]] = {style.key: {} for style in self.styles}
        for (number, _), own in values.items():
            for key, value in own.items():
                found[key].setdefault(number, []).append(value)
        return {
            key: {number: float(np.mean(all_)) for number, all_ in own.items() if len(all_) == len(wanted)}
            for key, own in found.items()
        }

    def compared(self) -> list[dict[str, Any]]:
        """The differences of all experiments that compare, as rows: over all conditions, then for each of them."""
        return [
            {"test": test.name, "condition": condition, **one.row()}
            for test in self.tests
            if test.spec.compare
            for condition in ("", *(known.key for known in test.conditions))
            for one in self.differences(test, condition)
        ]

    def row_verdict(self, row: Row, scheme: str) -> Verdict:
        """What the experiments of a row say together: the worst of their verdicts; ``none`` without experiments."""
        found = [self.outcomes[test.name, scheme].verdict for test in self.tests if test.name in row.names]
        return worst(found)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                **row.model_dump(exclude={"tests"}),
                "tests": list(row.names),
                "verdicts": {style.key: self.row_verdict(row, style.key) for style in self.styles},
            }
            for row in self.source.rows
        ]

    def _outcomes(self, test: Test) -> list[dict[str, Any]]:
        overall = {metric.key: self.overall(test, metric) for metric in test.metrics if test.links_differ}
        return [
            {
                **outcome.as_dict(),
                "overall": {key: asdict(found[style.key]) for key, found in overall.items() if style.key in found},
            }
            for style, outcome in self.of_test(test)
        ]

    def scores(self) -> list[dict[str, str]]:
        """What each scheme reached: ``experiment``, ``scheme``, ``verdict``, ``numbers`` and their ``quantity``."""
        return [
            {
                "experiment": outcome.test.name,
                "scheme": outcome.scheme,
                "verdict": outcome.verdict,
                "quantity": outcome.quantity,
                "numbers": outcome.headline,
            }
            for outcome in self.outcomes.values()
        ]

    def passed_text(self, scheme: str) -> str:
        """How many experiments a scheme passed, ``5 of 7``; empty where none has criteria for it."""
        verdicts = [self.outcomes[test.name, scheme].verdict for test in self.tests]
        judged = [one for one in verdicts if one != "none"]
        return f"{judged.count('pass')} of {len(judged)}" if judged else ""

    @property
    def extent(self) -> str:
        """How much was run, in words."""
        runs = self.parameters["runs"] or "/".join(str(one) for one in sorted({test.spec.runs for test in self.tests}))
        total = sum(len(outcome.runs) for outcome in self.outcomes.values())
        quick = "; a quick look: fewer conditions" if self.parameters["quick"] else ""
        return f"{runs} repetition{'s' if str(runs) != '1' else ''} of every condition, {total} runs{quick}"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, documented in ``docs/guides/experiments.md``."""
        return as_document(
            {
                "kind": self.source.kind,
                "name": self.name,
                "parameters": dict(self.parameters),
                "provenance": dict(self.provenance),
                "schemes": [{**asdict(style), "trained_on": self.trained_on.get(style.key)} for style in self.styles],
                "tests": [_test_dict(test) for test in self.tests],
                "outcomes": [one for test in self.tests for one in self._outcomes(test)],
                **({"differences": found} if (found := self.compared()) else {}),
                **({"document": self.source.document, "rows": self._rows()} if self.source.rows else {}),
                **({"confirmed": [asdict(one) for one in self.confirmed]} if self.confirmed else {}),
                "failures": list(self.failures),
                "notes": list(self.notes),
                "left": self.left,
            }
        )


def merit(better: Better, value: float) -> float:
    """A number that is the larger, the better a value is."""
    return {"higher": value, "lower": -value, "one": -abs(value - 1), "neither": 0.0}[better]


def ranks(better: Better, values: Mapping[str, float]) -> dict[str, float]:
    """Ranks of schemes, 1 is the best; equal ones share the mean of theirs."""
    merits = {key: merit(better, value) for key, value in values.items()}
    return {
        key: 1
        + sum(other > own for other in merits.values())
        + (sum(other == own for other in merits.values()) - 1) / 2
        for key, own in merits.items()
    }


def _test_dict(test: Test) -> dict[str, Any]:
    words = ("name", "title", "question", "setting", "threshold", "brief", "source")
    return {
        **{word: getattr(test.spec, word) for word in words},
        "baselines": list(test.spec.baselines),
        "metrics": [
            {"key": one.key, "label": one.label, "unit": one.unit, "better": one.better} for one in test.metrics
        ],
    }
