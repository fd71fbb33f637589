"""Results of experiments: runs, their means per condition, criteria, verdicts."""

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
    """A metric of a run that was repeated with real packets."""

    test: str
    scheme: str
    condition: str
    metric: str
    simulated: Spread
    """Spread over all simulated runs of the condition."""
    real: float | None
    """Number with real packets; None if the run has no such number."""
    agrees: bool
    """Whether the real number is in the range of the simulated numbers, or at most a tenth of their mean or of a
    threshold (the larger one) away from it."""


@dataclass(frozen=True)
class ExperimentResults:
    """All experiments of a file, all schemes."""

    source: ExperimentSet
    parameters: Mapping[str, Any]
    """Options of the command: seed, repetitions, whether ``--quick`` was used."""
    provenance: Mapping[str, Any]
    """Versions, machine, command line, time."""
    styles: tuple[SchemeStyle, ...]
    """The schemes, in order, with their plot styles."""
    trained_on: Mapping[str, str]
    """Training range as text, by scheme; only for learned schemes with a training range in their cards."""
    tests: tuple[Test, ...]
    outcomes: Mapping[tuple[str, str], Outcome]
    """Outcomes by name of the experiment and key of the scheme."""
    failures: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Notes on runs that are left or collapsed; with real packets, on schemes that are missing on this machine, and on
    emulator-limited runs."""
    left: int = 0
    """Number of runs that were left because time was up."""
    confirmed: tuple[Confirmed, ...] = ()
    """A sample with real packets, if requested."""
    directory: Path | None = None
    """Directory of the stored runs."""

    def __repr__(self) -> str:
        labels = ", ".join(style.label for style in self.styles)
        return f"ExperimentResults: {self.source.title}; {labels}; {self.extent}"

    def _repr_html_(self) -> str:
        def text(outcome: Outcome) -> str:
            return f"{outcome.headline} ({outcome.verdict})" if outcome.verdict != "none" else outcome.headline

        rows = [(test.title, *(text(outcome) for _, outcome in self.of_test(test))) for test in self.tests]
        return html_table(repr(self), ("experiment", *(style.label for style in self.styles)), rows)

    def kept(self, test: Test, scheme: str, condition: str) -> KeptRun | None:
        """Return the details of a scheme's first run in a condition; None if they were not kept.

        Raises:
            ResultsError: The file is damaged.
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
        """Return the outcome of a scheme in an experiment."""
        return self.outcomes[test.name, scheme]

    def of_test(self, test: Test) -> list[tuple[SchemeStyle, Outcome]]:
        """Return the outcomes of all schemes in an experiment."""
        return [(style, self.outcomes[test.name, style.key]) for style in self.styles]

    def differences(self, test: Test, condition: str = "") -> list[Difference]:
        """Compare all pairs of schemes in each metric with a better direction. Runs with equal numbers share the seed.

        Args:
            test: The experiment.
            condition: Key of a condition; empty: means over all conditions, of repetitions that have every condition.
                If links differ, rates and delays are compared by mean ranks, ``METRIC_rank``.
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
        """Return a metric over all conditions by scheme, with its spread over the repetitions; the mean rank (1 is the
        best) if :meth:`Test.ranks` is true. Empty if there is nothing to rank."""
        if test.ranks(metric) and (metric.better == "neither" or len(self.styles) == 1):
            return {}
        found = {key: Spread.of(own.values()) for key, own in self._by_run(test, metric, "").items()}
        return {key: spread for key, spread in found.items() if spread is not None}

    def _by_run(self, test: Test, metric: Metric, condition: str) -> dict[str, dict[int, float]]:
        """Return a metric by scheme and number of the repetition; an empty condition means all conditions together."""
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
        """Return the differences in all experiments with ``compare`` as rows: over all conditions, then for each."""
        return [
            {"test": test.name, "condition": condition, **one.row()}
            for test in self.tests
            if test.spec.compare
            for condition in ("", *(known.key for known in test.conditions))
            for one in self.differences(test, condition)
        ]

    def row_verdict(self, row: Row, scheme: str) -> Verdict:
        """Return the verdict of a row: the worst verdict of its experiments; ``none`` without experiments."""
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
        """Return the result of each scheme: ``experiment``, ``scheme``, ``verdict``, ``numbers``, ``quantity``."""
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
        """Return how many experiments a scheme passed, ``5 of 7``; empty if none has criteria for it."""
        verdicts = [self.outcomes[test.name, scheme].verdict for test in self.tests]
        judged = [one for one in verdicts if one != "none"]
        return f"{judged.count('pass')} of {len(judged)}" if judged else ""

    @property
    def extent(self) -> str:
        """Number of repetitions and runs as text."""
        runs = self.parameters["runs"] or "/".join(str(one) for one in sorted({test.spec.runs for test in self.tests}))
        total = sum(len(outcome.runs) for outcome in self.outcomes.values())
        quick = "; a quick look: fewer conditions" if self.parameters["quick"] else ""
        return f"{runs} repetition{'s' if str(runs) != '1' else ''} of every condition, {total} runs{quick}"

    def to_json(self) -> dict[str, Any]:
        """Return all results as plain data, documented in ``docs/guides/experiments.md``."""
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
    """Return a number that is larger for better values."""
    return {"higher": value, "lower": -value, "one": -abs(value - 1), "neither": 0.0}[better]


def ranks(better: Better, values: Mapping[str, float]) -> dict[str, float]:
    """Return the ranks of schemes, 1 is the best; equal schemes share the mean of their ranks."""
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
