"""A report on a document's requirements: its experiments, and a sample of their runs repeated with real packets."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ccgym.evaluation.engine import RUNNING, measure
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.results_file import write_results
from ccgym.evaluation.spread import Spread
from ccgym.evaluation.store import RunStore
from ccgym.experiments.comparison import Counting
from ccgym.experiments.outcome import Outcome, Test
from ccgym.experiments.plan import PlannedRun, planned, reduction
from ccgym.experiments.request import Request
from ccgym.experiments.run import Executed, checked, execute, ran_of
from ccgym.experiments.spec import ExperimentSet
from ccgym.experiments.views.results import Confirmed, ExperimentResults
from ccgym.experiments.views.verdicts import results_of

BACKEND: Final = "emulated"
"""Backend of the sample."""
MOST_S: Final = 60.0
"""Max length of sampled runs, seconds: a run with real packets takes its full length."""
MOST_MBPS: Final = 100.0
"""Max rate of links in sampled runs, Mbit/s: an ordinary machine may not keep the schedule of faster links."""
TOLERANCE: Final = 0.1
"""Max distance of a real number that agrees from the simulated range, as a fraction of their mean or of a threshold."""


def run_requirements(source: ExperimentSet, request: Request, observer: Observer | None = None) -> ExperimentResults:
    """Make missing runs in ``request.out``, judge them, run the sample with real packets, and write the results.

    Raises:
        CcgymError: As in :func:`~ccgym.experiments.run.execute`; or the machine cannot run real packets.
    """
    checked(source, request)  # before the directory is created
    with RunStore(request.out, "experiment") as store:
        ran = execute(source, request, store, observer or Silent())
        results = results_of(ran)
        if request.confirm:
            results = _confirm(ran, results, store, observer or Silent())
        write_results(request.out, results.to_json(), ran.rows())
    return results


def sample(ran: Executed, count: int) -> list[tuple[Test, PlannedRun]]:
    """Return the runs to repeat: first repetitions, from different experiments as long as there are enough."""
    rng = random.Random(f"ccgym confirm {ran.request.seed}")
    found: dict[str, list[PlannedRun]] = {}
    for test in ran.tests:
        tested = {one.key for one in ran.schemes}
        plan = planned(test, ran.schemes, runs=1, seed=ran.request.seed, backend=BACKEND)
        own = [one for one in plan if one.tested.key in tested and one.number == 1 and _possible(one)]
        rng.shuffle(own)
        found[test.name] = own
    tests = list(ran.tests)
    rng.shuffle(tests)
    rounds = max(map(len, found.values()), default=0)
    every = [
        (test, found[test.name][place]) for place in range(rounds) for test in tests if place < len(found[test.name])
    ]
    return every[:count]


def _possible(one: PlannedRun) -> bool:
    if one.scenario.path.links or any(flow.simulated_only for flow in one.run.contender.flows):
        return False
    return one.scenario.duration_ns / 1e9 <= MOST_S and one.scenario.path.mean_rate_mbps <= MOST_MBPS


def _confirm(ran: Executed, results: ExperimentResults, store: RunStore, observer: Observer) -> ExperimentResults:
    chosen = sample(ran, ran.request.confirm)
    counting = Counting(observer, RUNNING, sum(len(one.runs) for _, one in chosen))
    confirmed: list[Confirmed] = []
    failures: list[str] = []
    notes: list[str] = []
    for test, one in chosen:
        counting.part = test.title
        ended = measure(one.runs, reduce=reduction(test, [one]), store=store, jobs=1, observer=counting)
        failures += [f"{run.run.name}, real packets: {run.error}" for run in ended if run.error is not None]
        notes += [
            f"emulator-limited: {run.run.name}: {run.stored.limited}"
            for run in ended
            if run.stored is not None and run.stored.limited is not None
        ]
        real = ran_of([one], {run.run.digest: run for run in ended}).get(one.tested.key, [])
        outcome = results.outcome(test, one.tested.key)
        confirmed += [found for run in real for found in _compared(test, outcome, one, run.values)]
    return replace(
        results,
        confirmed=tuple(confirmed),
        failures=(*results.failures, *failures),
        notes=(*results.notes, *notes),
    )


def _compared(test: Test, outcome: Outcome, one: PlannedRun, real: Mapping[str, float | None]) -> Iterator[Confirmed]:
    known = next(condition for condition in outcome.conditions if condition.key == one.condition.key)
    for metric in outcome.deciding:
        simulated = known.metrics.get(metric.key)
        if simulated is not None:
            thresholds = [bound for own in outcome.criteria if own.metric == metric.key for bound in (own.min, own.max)]
            value = real[metric.key]
            agrees = value is not None and _near(value, simulated, [abs(one) for one in thresholds if one is not None])
            yield Confirmed(test.name, outcome.scheme, one.condition.key, metric.key, simulated, value, agrees)


def _near(value: float, simulated: Spread, thresholds: Sequence[float]) -> bool:
    allowed = TOLERANCE * max([abs(simulated.mean), *thresholds])
    return simulated.low - allowed <= value <= simulated.high + allowed
