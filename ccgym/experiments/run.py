"""Running experiments: every condition with every scheme, run in threads, kept run by run, judged by their criteria."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ccgym.errors import ConfigError
from ccgym.evaluation.backends import is_real
from ccgym.evaluation.budget import Budget
from ccgym.evaluation.collapse import collapsed
from ccgym.evaluation.engine import RUNNING, SIMULATING, RunOutcome, measure
from ccgym.evaluation.flags import BACKLOG_LOSS, BACKLOG_TEXT
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.progress_file import ProgressFile
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.results_file import Measurement, write_results
from ccgym.evaluation.run import Contender, Run, contender, contenders
from ccgym.evaluation.store import RunStore
from ccgym.experiments.comparison import Counting
from ccgym.experiments.criteria import Evidence, judged
from ccgym.experiments.criterion_spec import CriterionSpec
from ccgym.experiments.expand import Condition
from ccgym.experiments.metrics.loss import Loss
from ccgym.experiments.metrics.throughput import Throughput
from ccgym.experiments.outcome import ConditionResult, Outcome, RunResult, Test, evidence_of, spreads
from ccgym.experiments.plan import PlannedRun, planned, reduction, takes_part, training_range
from ccgym.experiments.request import Request
from ccgym.experiments.results import ExperimentResults
from ccgym.experiments.spec import ExperimentSet
from ccgym.experiments.training import TrainingRange
from ccgym.schemes.reading import parse_scheme


@dataclass(frozen=True)
class Executed:
    """Experiments that were run, before anything is made of their runs."""

    source: ExperimentSet
    request: Request
    schemes: tuple[Contender, ...]
    """The tested schemes."""
    tests: tuple[Test, ...]
    plans: Mapping[str, Sequence[PlannedRun]] = field(repr=False)
    """By experiment."""
    found: Mapping[str, Mapping[str, RunOutcome]] = field(repr=False)
    """By experiment and digest of the run."""
    started: float
    """Seconds since the epoch."""

    def ran(self, test: Test) -> dict[str, list[RunResult]]:
        """The runs that ended well, by scheme."""
        return ran_of(self.plans[test.name], self.found[test.name])

    def rows(self) -> Iterator[Measurement]:
        """Every metric of every run; fractions stay fractions."""
        for test in self.tests:
            units = {one.key: "fraction" if one.unit == "%" else one.unit for one in test.metrics}
            for scheme, runs in self.ran(test).items():
                for run in runs:
                    for metric, value in run.values.items():
                        yield Measurement(test.name, run.condition, scheme, None, run.run, metric, value, units[metric])

    @property
    def _ended(self) -> list[RunOutcome]:
        return [one for outcomes in self.found.values() for one in outcomes.values()]

    @property
    def parameters(self) -> dict[str, Any]:
        """What was asked for."""
        request = self.request
        return {
            "experiment": self.source.name,
            "schemes": [one.text for one in self.schemes],
            "seed": request.seed,
            "runs": request.runs,
            "quick": request.quick,
            **({"backend": request.backend} if is_real(request.backend) else {}),
        }

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions, machine, command line, time, policies."""
        took = time.time() - self.started
        made = provenance(self.source.title, self.request.command, self.started, took, self.request.backend)
        return {
            **made,
            "policies": {key: found for one in self.schemes for key, found in one.provenance.items()},
            "runs_s": round(sum(one.stored.wall_s for one in self._ended if one.stored is not None), 1),
        }

    @property
    def failures(self) -> tuple[str, ...]:
        """Runs that ended in an error."""
        failed = (one for one in self._ended if one.error is not None)
        return tuple(sorted(f"{one.run.name}, seed {one.run.seed}: {one.error}" for one in failed))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out; of real packets: schemes that cannot run here, runs that the machine could not hold."""
        notes = (note for one in self._ended if (note := _note(one)) is not None)
        left = self.left
        up = (f"time was up: {left} of {len(self._ended)} runs are left; the same command goes on",) if left else ()
        return (*up, *self.source.left_out, *dict.fromkeys(notes))

    @property
    def left(self) -> int:
        """How many runs were left because time was up."""
        return sum(one.left for one in self._ended)


def execute(source: ExperimentSet, request: Request, store: RunStore, observer: Observer) -> Executed:
    """Run what is not in the store yet.

    Interrupted, the same request goes on where it stopped; further schemes and repetitions are added to what is there.

    Raises:
        ConfigError: The request makes no sense: a length of runs, kernel TCP in the simulator.
        PlatformError: This machine lacks something that the backend needs.
    """
    started = time.time()
    schemes = checked(source, request)
    tests = tuple(Test(one) for one in source.experiments)
    plans = {
        test.name: planned(test, schemes, runs=request.runs, seed=request.seed, backend=request.backend)
        for test in tests
    }
    # A flow alone is the same for many schemes, and run once.
    needed = {
        name: list({run.digest: run for one in plan for run in one.runs}.values()) for name, plan in plans.items()
    }
    stage = RUNNING if is_real(request.backend) else SIMULATING
    counting = Counting(observer, stage, sum(map(len, needed.values())))
    found: dict[str, dict[str, RunOutcome]] = {test.name: {} for test in tests}
    # The runs of a condition's repetition share their seed.
    budget = None if request.budget_s is None else Budget(request.budget_s, lambda run: (run.number, run.seed))
    with ProgressFile(store.directory, sum(map(len, needed.values()))) as progress:
        for test, runs in _batches(tests, needed, balanced=budget is not None):
            counting.part = test.title
            outcomes = measure(
                runs,
                reduce=reduction(test, plans[test.name]),
                store=store,
                jobs=request.jobs,
                observer=counting,
                repeat_limited=request.repeat_limited,
                retries=request.retries,
                budget=budget,
                progress=progress,
                cluster=request.cluster,
            )
            found[test.name] |= {one.run.digest: one for one in outcomes}
    return Executed(source, request, schemes, tests, plans, found, started)


def _batches(
    tests: Sequence[Test], needed: Mapping[str, Sequence[Run]], *, balanced: bool
) -> Iterator[tuple[Test, Sequence[Run]]]:
    """What is measured one after the other: experiment by experiment; or repetition by repetition, and within one the
    conditions in random order, so that those of an unfinished repetition are from all parts of a sweep."""
    if not balanced:
        yield from ((test, needed[test.name]) for test in tests)
        return
    for number in sorted({run.number for runs in needed.values() for run in runs}):
        for test in tests:
            groups: dict[int, list[Run]] = {}
            for run in needed[test.name]:
                if run.number == number:
                    groups.setdefault(run.seed, []).append(run)
            order = list(groups)
            random.Random(f"ccgym budget {number}").shuffle(order)
            yield test, [run for seed in order for run in groups[seed]]


def run_experiments(source: ExperimentSet, request: Request, observer: Observer | None = None) -> ExperimentResults:
    """Run what is not in ``request.out`` yet, judge it, and write the results there.

    Raises:
        CcgymError: As :func:`execute`; or the directory cannot be used.
    """
    checked(source, request)  # before the directory is made
    with RunStore(request.out, "experiment") as store:
        ran = execute(source, request, store, observer or Silent())
        results = results_of(ran)
        write_results(request.out, results.to_json(), ran.rows())
    return results


def checked(source: ExperimentSet, request: Request) -> tuple[Contender, ...]:
    """The schemes, if the request can be met."""
    if request.runtime_ns is not None:
        raise ConfigError(
            "options-conflict",
            f"runs of {request.runtime_ns / 1e9:g} s",
            where="runtime",
            expected="nothing: the experiment says how long runs are",
            hint="a quick look takes fewer conditions and repetitions",
        )
    schemes = request.schemes or contenders(source.schemes, "schemes")
    for one in schemes:
        one.refuse("real path" if is_real(request.backend) else "simulator", "schemes")
    return schemes


def results_of(ran: Executed) -> ExperimentResults:
    """What was measured, judged."""
    ranges = {one.key: known for one in ran.schemes if (known := training_range(one)) is not None}
    return ExperimentResults(
        source=ran.source,
        parameters=ran.parameters,
        provenance=ran.provenance,
        styles=tuple(one.style for one in ran.schemes),
        trained_on={key: known.text for key, known in ranges.items()},
        tests=ran.tests,
        outcomes={
            (test.name, key): outcome
            for test in ran.tests
            for key, outcome in judge(
                test, ran.schemes, ran.plans[test.name], ran.ran(test), intervals=ran.source.intervals
            ).items()
        },
        failures=ran.failures,
        directory=ran.request.out,
        left=ran.left,
        notes=(
            *ran.notes,
            *(note for test in ran.tests for made in (_collapses, _backlogs) for note in made(test, ran.ran(test))),
        ),
    )


def _collapses(test: Test, ran: Mapping[str, Sequence[RunResult]]) -> Iterator[str]:
    """Runs whose throughput collapsed against their siblings: the same scheme under the same condition."""
    kinds = {one.key for one in test.metrics if isinstance(one, Throughput)}
    if not test.spec.compare or not kinds or test.spec.draw:
        return  # where paths are drawn, runs differ by their paths
    metric = test.by_key(min(kinds))
    for scheme, runs in ran.items():
        for condition in test.conditions:
            own = [one for one in runs if one.condition == condition.key and one.values[metric.key] is not None]
            values = [float(one.values[metric.key] or 0) for one in own]
            for place in collapsed(values):
                yield (
                    f"collapsed: {scheme}, {condition.key}, run {own[place].run} (seed {own[place].seed}) carried "
                    f"{metric.show(values[place])}, others up to {metric.show(max(values))}"
                )


def _backlogs(test: Test, ran: Mapping[str, Sequence[RunResult]]) -> Iterator[str]:
    """Conditions whose loss was only on its way at the end: what evaluations flag as ``loss-is-backlog``."""
    for metric in (one for one in test.metrics if isinstance(one, Loss)):
        for scheme, runs in ran.items():
            over = {}
            for condition in test.conditions:
                own = [one for one in runs if one.condition == condition.key]
                spread = spreads(test, condition.key, own).get(metric.key)
                if spread is not None and spread.mean > BACKLOG_LOSS and all(one.backlog for one in own):
                    over[condition.key] = spread.mean
            if over:
                where = next(iter(over)) if len(over) == 1 else f"{len(over)} of {len(test.conditions)} conditions"
                yield f"loss-is-backlog: {scheme}, {where}: up to {100 * max(over.values()):.1f} % {BACKLOG_TEXT}"


def _note(ended: RunOutcome) -> str | None:
    """What to know of a run with real packets."""
    if ended.unavailable is not None:
        return f"{ended.run.contender.label} cannot run here: {ended.unavailable}"
    if ended.stored is not None and ended.stored.limited is not None:
        return f"emulator-limited: {ended.run.name}: {ended.stored.limited}"
    return None


def ran_of(plan: Sequence[PlannedRun], outcomes: Mapping[str, RunOutcome]) -> dict[str, list[RunResult]]:
    """The runs that ended well, those of flows alone included, by scheme."""
    runs: dict[str, list[RunResult]] = {}
    for one in plan:
        outcome = outcomes[one.run.digest]
        alone = {number: outcomes[run.digest] for number, run in one.alone.items()}
        if outcome.stored is not None and all(known.stored is not None for known in alone.values()):
            values = outcome.data["values"]
            compared = {
                metric.key: metric.compared(values[metric.key], alone[metric.alone].data["values"][metric.key])
                for metric in one.scenario.metrics
                if metric.alone is not None
            }
            result = RunResult(
                condition=one.condition.key,
                run=one.number,
                seed=one.run.seed,
                values={**values, **compared},
                trajectory=outcome.stored.trajectory_hash,
                series=outcome.data["series"],
                backlog=outcome.data["backlog"],
                kept=outcome.file if outcome.data["detail"] is not None else "",
            )
            runs.setdefault(one.tested.key, []).append(result)
    return runs


def judge(
    test: Test,
    schemes: Sequence[Contender],
    plan: Sequence[PlannedRun],
    runs: Mapping[str, Sequence[RunResult]],
    *,
    intervals: bool = False,
) -> dict[str, Outcome]:
    """The outcome of each scheme, by its key.

    Args:
        test: The experiment.
        schemes: The schemes.
        plan: What was to be run.
        runs: What was run, by scheme.
        intervals: As in :func:`~ccgym.experiments.criteria.judged`.
    """
    expected: dict[str, int] = {}
    for one in plan:
        expected[one.condition.key] = max(expected.get(one.condition.key, 0), one.number)
    baselines: dict[str, Evidence] = {
        name: evidence_of(test, expected, runs.get(contender(name).key, []), {}) for name in test.spec.baselines
    }
    simulated = not any(is_real(one.run.backend) for one in plan)
    judgments = {}
    for tested in schemes:
        trained = training_range(tested)
        inside = {one.key: inside_range(one.trained(trained), trained) for one in test.conditions}
        own = runs.get(tested.key, [])
        evidence = evidence_of(test, expected, own, inside)
        criteria = [one for one in test.spec.criteria if takes_part(test, tested) and _concerns(one, tested)]
        judgments[tested.key] = Outcome(
            test=test,
            scheme=tested.key,
            criteria=tuple(judged(criteria, evidence, baselines, intervals=intervals)),
            conditions=tuple(
                ConditionResult(
                    c.key, c.at, inside[c.key], spreads(test, c.key, own), simulated and _identical(c.key, own)
                )
                for c in test.conditions
            ),
            runs=tuple(own),
        )
    return judgments


def _identical(condition: str, runs: Sequence[RunResult]) -> bool:
    """Whether there are several runs of a condition, and all were the same packets."""
    own = [(run.trajectory, run.values) for run in runs if run.condition == condition]
    # The hash leaves out what was still on its way at the end.
    return len(own) > 1 and all(one == own[0] for one in own)


def _concerns(criterion: CriterionSpec, tested: Contender) -> bool:
    """Whether a scheme has to meet a criterion: all have to, or those that it names, by any implementation."""
    own = tested.choice
    return not criterion.schemes or any(
        own is not None and own.algorithm == named.algorithm and named.settings.items() <= own.settings.items()
        for named in map(parse_scheme, criterion.schemes)
    )


def inside_range(condition: Condition, trained: TrainingRange | None) -> bool | None:
    """Whether all that a condition can draw lies within a training range; None where there is none, or where the path
    is drawn from a distribution, of which that is not known."""
    if trained is None or condition.distribution:
        return None
    corners = [scenario.rates_and_delays for scenario in condition.bounds()]
    rates, delays = ([one for corner in corners for one in corner[which]] for which in (0, 1))
    return trained.contains(min(rates), min(delays)) and trained.contains(max(rates), max(delays))
