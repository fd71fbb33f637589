"""Experiments with criteria: run every condition with every scheme, and judge it by the means over its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ccgym.evaluation.backends import is_real
from ccgym.evaluation.collapse import collapsed
from ccgym.evaluation.flags import BACKLOG_LOSS, BACKLOG_TEXT
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.results_file import write_results
from ccgym.evaluation.run import Contender, contender
from ccgym.evaluation.store import RunStore
from ccgym.experiments.criteria import Evidence, judged
from ccgym.experiments.criterion_spec import CriterionSpec
from ccgym.experiments.expand import Condition
from ccgym.experiments.metrics.loss import Loss
from ccgym.experiments.metrics.throughput import Throughput
from ccgym.experiments.outcome import ConditionResult, Outcome, RunResult, Test, evidence_of, spreads
from ccgym.experiments.plan import PlannedRun, takes_part
from ccgym.experiments.request import Request
from ccgym.experiments.run import Executed, checked, execute
from ccgym.experiments.spec import ExperimentSet
from ccgym.experiments.training import TrainingRange, training_range
from ccgym.experiments.views.results import ExperimentResults
from ccgym.schemes.reading import parse_scheme


def run_experiments(source: ExperimentSet, request: Request, observer: Observer | None = None) -> ExperimentResults:
    """Make the runs that are not in ``request.out`` yet, judge them, and write the results there.

    Raises:
        CcgymError: As in :func:`execute`; or the directory cannot be used.
    """
    checked(source, request)  # before the directory is created
    with RunStore(request.out, "experiment") as store:
        ran = execute(source, request, store, observer or Silent())
        results = results_of(ran)
        write_results(request.out, results.to_json(), ran.rows())
    return results


def results_of(ran: Executed) -> ExperimentResults:
    """Return the results with verdicts."""
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
    """Yield runs with a much lower throughput than other runs of the same scheme under the same condition."""
    kinds = {one.key for one in test.metrics if isinstance(one, Throughput)}
    if not test.spec.compare or not kinds or test.spec.draw:
        return  # if paths are drawn, runs differ by their paths
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
    """Yield conditions with loss that was only on its way at the end: the flag ``loss-is-backlog`` of evaluations."""
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


def judge(
    test: Test,
    schemes: Sequence[Contender],
    plan: Sequence[PlannedRun],
    runs: Mapping[str, Sequence[RunResult]],
    *,
    intervals: bool = False,
) -> dict[str, Outcome]:
    """Return the outcome of each scheme, by its key.

    Args:
        test: The experiment.
        schemes: The schemes.
        plan: The planned runs.
        runs: The finished runs, by scheme.
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
    """Return whether there are several runs of a condition, all with identical packets."""
    own = [(run.trajectory, run.values) for run in runs if run.condition == condition]
    # The hash does not include packets that were still on their way at the end.
    return len(own) > 1 and all(one == own[0] for one in own)


def _concerns(criterion: CriterionSpec, tested: Contender) -> bool:
    """Return whether a scheme must meet a criterion: all schemes, or the named schemes in any implementation."""
    own = tested.choice
    return not criterion.schemes or any(
        own is not None and own.algorithm == named.algorithm and named.settings.items() <= own.settings.items()
        for named in map(parse_scheme, criterion.schemes)
    )


def inside_range(condition: Condition, trained: TrainingRange | None) -> bool | None:
    """Return whether all possible draws of a condition are inside a training range. None if there is no range, or if
    the path is drawn from a distribution: then this is unknown."""
    if trained is None or condition.distribution:
        return None
    corners = [scenario.rates_and_delays for scenario in condition.bounds()]
    rates, delays = ([one for corner in corners for one in corner[which]] for which in (0, 1))
    return trained.contains(min(rates), min(delays)) and trained.contains(max(rates), max(delays))
